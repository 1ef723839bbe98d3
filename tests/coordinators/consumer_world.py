"""A consumer group with everything around it that a broker would be: topics, a clock, timers, a log."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lamina.coordinators import hosted_classic
from lamina.coordinators.assignors import MemberSubscription
from lamina.coordinators.consumer import ConsumerGroup, GroupDecision
from lamina.coordinators.decision import CancelTimer, Now, Reply, ResolveRegexes, SetTimer, TimerName
from lamina.coordinators.group_context import GroupContext, GroupSettings
from lamina.coordinators.group_requests import (
    Client,
    ConsumerHeartbeatRequest,
    ConsumerHeartbeatResponse,
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    LeavingMember,
    SyncRequest,
    SyncResponse,
)
from lamina.coordinators.partitions_by_topic import NamePartitions
from lamina.coordinators.records.consumer_protocol import Subscription, write_subscription
from lamina.coordinators.records.group_records import GroupRecord, TopicIdPartitions
from lamina.errors import KafkaError
from lamina.image.image import Image
from lamina.image.topic import Topic, new_partition
from tests.coordinators.snapshots import snapshot

GROUP = "g"
CLIENT = Client("client", "/127.0.0.1")


def in_turn(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]
) -> Mapping[str, TopicIdPartitions]:
    """Each partition to the next of those that subscribe to its topic."""
    target: dict[str, dict[bytes, tuple[int, ...]]] = {member_id: {} for member_id in members}
    for topic_id, count in sorted(partition_counts.items()):
        subscribers = sorted(member_id for member_id, member in members.items() if topic_id in member.topics)
        for index, member_id in enumerate(subscribers):
            target[member_id][topic_id] = tuple(range(index, count, len(subscribers)))
    return target


def all_to_first(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]
) -> Mapping[str, TopicIdPartitions]:
    target: dict[str, dict[bytes, tuple[int, ...]]] = {}
    for topic_id, count in partition_counts.items():
        subscribers = sorted(member_id for member_id, member in members.items() if topic_id in member.topics)
        if subscribers:
            target.setdefault(subscribers[0], {})[topic_id] = tuple(range(count))
    return target


def subscription(topics: Iterable[str], owned: NamePartitions | None = None) -> bytes:
    return write_subscription(Subscription(3, tuple(topics), owned=owned or {}))


def topic_id(name: str, incarnation: int = 1) -> bytes:
    return name.encode().rjust(15, b"\0") + bytes([incarnation])


class World:
    def __init__(self, settings: GroupSettings | None = None, **topics: int) -> None:
        self.group = ConsumerGroup(GROUP)
        self.settings = settings or GroupSettings()
        self.log: list[GroupRecord] = []
        self.timers: dict[TimerName, int] = {}
        self.asked: list[tuple[str, ...]] = []
        """Expressions that are to be resolved."""
        self.replies: dict[int, object] = {}
        self.now_ms = 1_000_000
        self.image = Image("cluster")
        self.image_version = 0
        self._waiter = 0
        self._known: object = None
        """What the group knew after the last decision."""
        self._incarnations: dict[str, int] = {}
        for name, count in topics.items():
            self.make_topic(name, count)

    @property
    def context(self) -> GroupContext:
        return GroupContext(
            self.settings,
            self.image,
            self.image_version,
            {"uniform": in_turn, "range": all_to_first},
        )

    @property
    def now(self) -> Now:
        return Now(self.now_ms + 1_700_000_000_000, self.now_ms)

    # Topics

    def make_topic(self, name: str, count: int) -> None:
        self._incarnations[name] = self._incarnations.get(name, 0) + 1
        self.image_version += 1
        self._set_topics({**self.image.topics, name: self._topic(name, count)})

    def grow_topic(self, name: str, count: int) -> None:
        self._set_topics({**self.image.topics, name: self._topic(name, count)})

    def delete_topic(self, name: str) -> None:
        self._set_topics({other: topic for other, topic in self.image.topics.items() if other != name})

    def id(self, name: str) -> bytes:
        return self.image.topics[name].id

    def ids(self, **partitions: tuple[int, ...]) -> TopicIdPartitions:
        return {self.id(name): some for name, some in partitions.items()}

    def _topic(self, name: str, count: int) -> Topic:
        partitions = tuple(new_partition((0,)) for _ in range(count))
        return Topic(name, topic_id(name, self._incarnations[name]), partitions)

    def _set_topics(self, topics: dict[str, Topic]) -> None:
        self.image = Image("cluster", topics=topics, topic_names={topic.id: name for name, topic in topics.items()})

    # Decisions

    def carry_out(self, decision: GroupDecision) -> list[GroupRecord]:
        assert self._known in (None, snapshot(self.group)) or not decision.is_refusable, "deciding changes nothing"
        for record in decision.records:
            self.log.append(record)
            self.group.replay(record)
        for change in decision.soft_changes:
            change()
        for effect in decision.effects:
            match effect:
                case SetTimer(name, at_monotonic_ms):
                    self.timers[name] = at_monotonic_ms
                case CancelTimer(name):
                    self.timers.pop(name, None)
                case ResolveRegexes(group_id, regexes):
                    assert group_id == GROUP
                    self.asked.append(regexes)
                case Reply(waiter, response):
                    self.replies[waiter] = response
        self._known = snapshot(self.group)
        return decision.records

    def pass_time(self, milliseconds: int) -> None:
        """Let timers fire in their order."""
        until_ms = self.now_ms + milliseconds
        while due := [name for name, at_ms in self.timers.items() if at_ms <= until_ms]:
            name = min(due, key=lambda each: (self.timers[each], each))
            self.now_ms = max(self.now_ms, self.timers.pop(name))
            self.carry_out(self.group.on_timer(name, self.now, self.context))
        self.now_ms = until_ms

    def load(self) -> None:
        """Lose everything but the log and read that."""
        self.group = ConsumerGroup(GROUP)
        self._known = None
        self.timers.clear()
        self.asked.clear()
        for record in self.log:
            self.group.replay(record)
        self.carry_out(self.group.loaded(self.now, self.context))

    def resolve(self) -> list[GroupRecord]:
        """Resolve what was asked for, against the topics of now."""
        regexes = self.asked.pop(0)
        results = {regex: [name for name in self.image.topics if re.fullmatch(regex, name)] for regex in regexes}
        return self.carry_out(self.group.resolved(results, self.now, self.context))

    def _ask(self, decide: Any, request: object) -> tuple[Any, list[GroupRecord]]:
        self._waiter += 1
        records = self.carry_out(decide(request, self._waiter, self.now, self.context))
        return self.replies.pop(self._waiter), records

    # The consumer protocol

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        topics: tuple[str, ...] | None = None,
        regex: str | None = None,
        owned: TopicIdPartitions | None = None,
        instance_id: str | None = None,
        rack_id: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = -1,
        group_id: str = GROUP,
        client: Client = CLIENT,
        api_version: int = 1,
    ) -> tuple[ConsumerHeartbeatResponse, list[GroupRecord]]:
        request = ConsumerHeartbeatRequest(
            group_id,
            member_id,
            epoch,
            instance_id,
            rack_id,
            rebalance_timeout_ms,
            topics,
            regex,
            assignor,
            owned,
            client,
            "made-by-broker",
            api_version,
        )
        response, records = self._ask(self.group.heartbeat, request)
        assert isinstance(response, ConsumerHeartbeatResponse)
        return response, records

    def join(self, member_id: str, *topics: str, **fields: Any) -> ConsumerHeartbeatResponse:
        fields.setdefault("rebalance_timeout_ms", 60_000)
        return self.beat(member_id, 0, topics=topics, owned={}, **fields)[0]

    def epoch(self, member_id: str) -> int:
        return self.group.state.members[member_id].epoch

    def assigned(self, member_id: str) -> TopicIdPartitions:
        return self.group.state.members[member_id].current_assignment.assigned

    def settle(self) -> None:
        """Every member does what it is told, until nothing changes."""
        for _ in range(10):
            for member_id in sorted(self.group.state.members):
                self.beat(member_id, self.epoch(member_id), owned=self.assigned(member_id))
        assert self.group.state.name in ("Stable", "Empty")

    # The classic protocol

    def classic_join(
        self,
        member_id: str,
        *topics: str,
        owned: NamePartitions | None = None,
        instance_id: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        protocol_type: str = "consumer",
        metadata: bytes | None = None,
        session_timeout_ms: int = 45_000,
        requires_known_member_id: bool = True,
    ) -> tuple[JoinResponse, list[GroupRecord]]:
        data = subscription(topics, owned) if metadata is None else metadata
        request = JoinRequest(
            GROUP,
            member_id,
            instance_id,
            CLIENT,
            protocol_type,
            tuple((name, data) for name in protocols),
            session_timeout_ms,
            60_000,
            "made-by-broker",
            requires_known_member_id,
            True,
        )
        response, records = self._ask(lambda *args: hosted_classic.join(self.group, *args), request)
        assert isinstance(response, JoinResponse)
        return response, records

    def classic_sync(self, member_id: str, generation: int, **fields: Any) -> SyncResponse | KafkaError:
        request = SyncRequest(GROUP, generation, member_id, None, "consumer", "range", {})._replace(**fields)
        response, records = self._ask(lambda *args: hosted_classic.sync(self.group, *args), request)
        assert not records
        assert isinstance(response, SyncResponse | KafkaError)
        return response

    def classic_beat(self, member_id: str, generation: int, instance_id: str | None = None) -> KafkaError | None:
        request = HeartbeatRequest(GROUP, generation, member_id, instance_id)
        response, _ = self._ask(lambda *args: hosted_classic.heartbeat(self.group, *args), request)
        assert response is None or isinstance(response, KafkaError)
        return response

    def classic_leave(self, *members: LeavingMember) -> tuple[LeaveResponse, list[GroupRecord]]:
        request = LeaveRequest(GROUP, members)
        response, records = self._ask(lambda *args: hosted_classic.leave(self.group, *args), request)
        assert isinstance(response, LeaveResponse)
        return response, records


def durable(group: ConsumerGroup) -> dict[str, object]:
    """Everything durable of a group, and what is derived from it."""
    return {name: value for name, value in vars(group.state).items() if name != "_subscribed_names"}
