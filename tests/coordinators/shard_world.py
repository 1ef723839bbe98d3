"""A shard of groups with what a broker has around it: topics, two clocks, timers, a log of bytes.

After every decision a second shard is loaded from the bytes and must hold the same durable state.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.coordinators.assignors import ASSIGNORS
from lamina.coordinators.classic import ClassicGroup
from lamina.coordinators.decision import CancelTimer, Decision, Now, Producer, Reply, ResolveRegexes, SetTimer
from lamina.coordinators.group_context import GroupContext, GroupSettings
from lamina.coordinators.group_requests import (
    Client,
    CommittedPartition,
    ConsumerHeartbeatRequest,
    ConsumerHeartbeatResponse,
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeavingMember,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncRequest,
)
from lamina.coordinators.group_shard import GroupCounts, GroupShard
from lamina.coordinators.patterns import matching
from lamina.coordinators.records.consumer_protocol import Subscription, write_assignment, write_subscription
from lamina.coordinators.records.group_codec import decode_record, encode_record
from lamina.coordinators.records.group_records import GroupRecord
from lamina.coordinators.replaying import History, replay
from lamina.errors import KafkaError
from lamina.image.image import Image
from lamina.image.topic import Topic, new_partition
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch
from tests.coordinators.snapshots import snapshot

GROUP = "g"
CLIENT = Client("client", "/127.0.0.1")


class Waiting:
    """A request that is not answered yet."""

    def __init__(self) -> None:
        self.responses: list[Any] = []

    @property
    def response(self) -> Any:
        (response,) = self.responses
        if isinstance(response, KafkaError):
            raise response
        return response


class ShardWorld:
    def __init__(self, **settings: Any) -> None:
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.now = Now(1_000_000, 5_000)
        self.image = Image("test")
        self.image_version = 0
        self.counts = GroupCounts()
        self.shard = self.new()
        self.log: list[bytes] = []
        self.timers: dict[tuple[str, ...], int] = {}
        self.resolving: list[ResolveRegexes] = []
        self._waiting: dict[int, Waiting] = {}
        self._count = 0
        self.begin()

    def new(self) -> GroupShard:
        return GroupShard(self._context, self.counts)

    def _context(self, group_id: str) -> GroupContext:
        return GroupContext(self.settings, self.image, self.image_version, ASSIGNORS)

    # Around the shard

    def topic(self, name: str, partitions: int = 4) -> bytes:
        number = len(self.image.topics) + 1
        topic = Topic(name, number.to_bytes(16, "big"), tuple(new_partition((1,)) for _ in range(partitions)))
        self.image = Image("test", topics={**self.image.topics, name: topic})
        self.image_version += 1
        return topic.id

    def carry_out(self, decision: Decision[GroupRecord]) -> None:
        if decision.records:
            self._append(decision.records, decision.producer)
            for record in decision.records:
                self.shard.replay(record, decision.producer)
        for change in decision.soft_changes:
            change()
        for effect in decision.effects:
            if isinstance(effect, Reply):
                self._waiting.pop(effect.waiter).responses.append(effect.response)
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.at_monotonic_ms
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.name, None)
            elif isinstance(effect, ResolveRegexes):
                self.resolving.append(effect)
        assert durable(self.loaded()) == durable(self.shard)

    def _append(self, records: list[GroupRecord], producer: Producer | None) -> None:
        pairs = [encode_record(record) for record in records]
        batch = [Record(number, self.now.wall_ms, key, value) for number, (key, value) in enumerate(pairs)]
        if producer is None:
            self.log.append(bytes(build_batch(batch)))
        else:
            self.log.append(
                bytes(build_batch(batch, producer_id=producer.id, producer_epoch=producer.epoch, is_transactional=True))
            )

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        control = ControlType.COMMIT if is_committed else ControlType.ABORT
        marker = build_marker(
            control, offset=0, timestamp_ms=1, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
        )
        self.log.append(bytes(marker))
        self.shard.end_transaction(producer_id, is_committed=is_committed)
        assert durable(self.loaded()) == durable(self.shard)

    def loaded(self) -> GroupShard:
        """A shard that knows what the log says and has not begun to work."""
        history = History()
        history.feed(b"".join(self.log))
        shard, steps = self.new(), history.steps()
        while replay(shard, steps, decode_record, 100):
            pass
        return shard

    def restart(self) -> None:
        """Go on with what the log says; whoever waited is gone."""
        self.shard = self.loaded()
        self.timers.clear()
        self._waiting.clear()
        self.begin()

    def begin(self) -> None:
        self.carry_out(self.shard.loaded(self.now))

    def ask(self, decide: Callable[[int], Decision[GroupRecord]]) -> Any:
        """The answer, which is raised if it is an error, or what waits for it."""
        self._count += 1
        waiting = self._waiting[self._count] = Waiting()
        known = snapshot(self.shard)
        try:
            decision = decide(self._count)
        except KafkaError:
            del self._waiting[self._count]
            assert snapshot(self.shard) == known, "a refusal changes nothing"
            assert durable(self.loaded()) == durable(self.shard)
            raise
        assert snapshot(self.shard) == known or not decision.is_refusable, "deciding changes nothing"
        self.carry_out(decision)
        return waiting.response if waiting.responses else waiting

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass; timers fire when they are due, in order."""
        end_ms = self.now.monotonic_ms + duration_ms
        while due := sorted((at_ms, name) for name, at_ms in self.timers.items() if at_ms <= end_ms):
            at_ms, name = due[0]
            del self.timers[name]
            step_ms = max(at_ms - self.now.monotonic_ms, 0)
            self.now = Now(self.now.wall_ms + step_ms, self.now.monotonic_ms + step_ms)
            self.carry_out(self.shard.on_timer(name, self.now))
        rest_ms = end_ms - self.now.monotonic_ms
        self.now = Now(self.now.wall_ms + rest_ms, self.now.monotonic_ms + rest_ms)

    def resolve(self) -> None:
        while self.resolving:
            effect = self.resolving.pop(0)
            results = {regex: matching(regex, list(self.image.topics)) for regex in effect.regexes}
            self.carry_out(self.shard.resolved(effect.group_id, results, self.now))

    # What clients do

    def join(
        self,
        member_id: str = "",
        *topics: str,
        group: str = GROUP,
        instance: str | None = None,
        new_id: str = "m",
        session_ms: int = 10_000,
        protocol_type: str = "consumer",
        protocols: tuple[str, ...] = ("range",),
        knows_id: bool = True,
    ) -> Any:
        metadata = write_subscription(Subscription(1, topics))
        request = JoinRequest(
            group,
            member_id,
            instance,
            CLIENT,
            protocol_type,
            tuple((name, metadata) for name in protocols),
            session_ms,
            60_000,
            new_id,
            requires_known_member_id=not knows_id,
            may_skip_assignment=True,
        )
        return self.ask(lambda waiter: self.shard.join(request, waiter, self.now))

    def sync(self, joined: JoinResponse, assignments: Mapping[str, Mapping[str, tuple[int, ...]]] | None = None) -> Any:
        written = {member: write_assignment(given, 1) for member, given in (assignments or {}).items()}
        request = SyncRequest(GROUP, joined.generation, joined.member_id, None, None, None, written)
        return self.ask(lambda waiter: self.shard.sync(request, waiter, self.now))

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None, group: str = GROUP) -> Any:
        request = HeartbeatRequest(group, generation, member_id, instance)
        return self.ask(lambda waiter: self.shard.heartbeat(request, waiter, self.now))

    def leave(self, member_id: str, instance: str | None = None) -> Any:
        request = LeaveRequest(GROUP, (LeavingMember(member_id, instance),))
        return self.ask(lambda waiter: self.shard.leave(request, waiter, self.now))

    def stable(self, *topics: str, assigned: Mapping[str, tuple[int, ...]] | None = None, **how: Any) -> JoinResponse:
        """One classic member that has joined and was assigned."""
        joined: JoinResponse = self.join("", *topics, **how)
        self.sync(joined, {joined.member_id: assigned or {}})
        return joined

    def consumer(
        self,
        member_id: str,
        epoch: int,
        *topics: str,
        regex: str | None = None,
        owned: Mapping[bytes, tuple[int, ...]] | None = None,
        instance: str | None = None,
        group: str = GROUP,
    ) -> ConsumerHeartbeatResponse:
        is_joining = epoch == 0
        request = ConsumerHeartbeatRequest(
            group,
            member_id,
            epoch,
            instance,
            None,
            30_000 if is_joining else -1,
            topics if is_joining or topics else None,
            regex,
            None,
            {} if is_joining else owned,
            CLIENT,
            "new",
        )
        response: ConsumerHeartbeatResponse = self.ask(
            lambda waiter: self.shard.consumer_heartbeat(request, waiter, self.now)
        )
        return response

    def commit(
        self,
        offset: int = 7,
        *,
        group: str = GROUP,
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        topic: str = "t",
        partition: int = 0,
        metadata: str | None = "",
        version: int = 9,
        retention_ms: int | None = None,
    ) -> Any:
        """The error of the one partition, or ``None``."""
        one = CommittedPartition(topic, partition, offset, -1, metadata)
        request = OffsetCommitRequest(group, member, generation, instance, (one,), retention_ms, version)
        (error,) = self.ask(lambda waiter: self.shard.commit(request, waiter, self.now))
        return error

    def fetch(
        self, *keys: tuple[str, int], group: str = GROUP, member: str | None = None, epoch: int = -1, **how: Any
    ) -> list[int]:
        request = OffsetFetchRequest(group, keys or None, member, epoch, **how)
        found = self.ask(lambda waiter: self.shard.fetch_offsets(request, waiter))
        return [one.offset for one in found]

    def delete_offsets(self, *keys: tuple[str, int], group: str = GROUP) -> list[KafkaError | None]:
        request = OffsetDeleteRequest(group, keys)
        errors: list[KafkaError | None] = self.ask(lambda waiter: self.shard.delete_offsets(request, waiter))
        return errors

    def delete(self, group: str = GROUP) -> None:
        while not self.ask(lambda waiter: self.shard.delete(group, waiter)):
            pass

    def expire(self, group: str = GROUP) -> None:
        self.carry_out(self.shard.expire(group, self.now))

    def listed(self) -> dict[str, tuple[str, str]]:
        return {one.group_id: (one.type, one.state) for one in self.shard.listings()}


def durable(shard: GroupShard) -> Any:
    """Everything that must be the same after loading."""
    groups: dict[str, Any] = {}
    for group_id, group in shard._groups.items():
        if isinstance(group, ClassicGroup):
            if group.stored is not None:
                groups[group_id] = group.stored
        else:
            state = group.state
            groups[group_id] = (
                state.epoch,
                state.metadata_hash,
                state.target_epoch,
                state.members,
                state.targets,
                state.regexes,
                state.static_members,
                +state.regex_subscribers,
                state.classic_count,
                state._holders,
            )
    pending = {
        producer_id: {key: one.value for key, one in keys.items()}
        for producer_id, keys in shard.offsets._pending.items()
        if keys
    }
    return groups, shard.offsets._committed, pending, shard.offsets._pending_counts
