"""Simulated members of both protocols do what members do, and lose messages; the group keeps its promises."""

import re
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lamina.coordinators.consumer import ConsumerGroup
from lamina.coordinators.consumer_member import LEAVING_FOR_A_MOMENT_EPOCH, ConsumerMember
from lamina.coordinators.group_context import GroupSettings
from lamina.coordinators.group_requests import ConsumerHeartbeatResponse, LeavingMember, SyncResponse
from lamina.coordinators.partitions_by_topic import by_id, each
from lamina.coordinators.records.consumer_protocol import read_assignment
from lamina.errors import FencedInstanceId, FencedMemberEpoch, IllegalGeneration, UnknownMemberId, UnreleasedInstanceId
from tests.coordinators.consumer_world import GROUP, World, durable
from tests.examples import examples

TOPICS = ("a", "b", "c")
REGEXES = ("[ab]", "b|c", "nothing")
NAMES = st.sets(st.sampled_from(TOPICS)).map(lambda names: tuple(sorted(names)))
REGEX = st.sampled_from(("", *REGEXES))

Owned = frozenset[tuple[bytes, int]]


@dataclass(eq=False)
class Client:
    member_id: str
    topics: tuple[str, ...]
    regex: str
    instance_id: str | None = None
    epoch: int = 0
    owned: set[tuple[bytes, int]] = field(default_factory=set)
    assignment: Owned = frozenset()
    told: Owned | None = None
    """What it last said it owns and was heard with; None when it has to say everything again."""
    is_silent: bool = False
    """Died without a word."""
    is_classic: bool = False
    """Speaks the classic protocol, with a cooperative assignor."""

    def start_again(self) -> None:
        self.epoch, self.assignment, self.told = 0, frozenset(), None
        self.owned.clear()

    def take(self, response: ConsumerHeartbeatResponse) -> None:
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.take_assignment(frozenset(each(response.assignment)))

    def take_assignment(self, assignment: Owned) -> None:
        """Have what is new at once, and what is to be given up until it is."""
        self.assignment = assignment
        self.owned |= assignment

    def revoke(self) -> None:
        self.owned &= self.assignment


class ConsumerGroupModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(GroupSettings(consumer_migration_policy="upgrade"), a=3, b=2)
        self.clients: list[Client] = []
        self.count = 0
        self.epochs = (0, 0)
        self.member_epochs: dict[str, int] = {}

    # Members

    @initialize(subscriptions=st.lists(st.tuples(NAMES, REGEX), min_size=2, max_size=3))
    def begin(self, subscriptions: list[tuple[tuple[str, ...], str]]) -> None:
        for index, (topics, regex) in enumerate(subscriptions):
            self.join(topics, regex, is_static=index == 0)

    @rule(topics=NAMES, regex=REGEX, is_static=st.booleans())
    def join(self, topics: tuple[str, ...], regex: str, is_static: bool) -> None:
        if len(self.clients) < 5:
            self.count += 1
            self.clients.append(Client(f"m{self.count}", topics, regex, f"i{self.count}" if is_static else None))
            self._beat(self.clients[-1], "")

    @rule(topics=NAMES)
    def join_by_the_classic_protocol(self, topics: tuple[str, ...]) -> None:
        if len(self.clients) < 5 and self._members():
            self.count += 1
            self.clients.append(Client(f"m{self.count}", topics, "", is_classic=True))
            self._beat(self.clients[-1], "")

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), lost=st.sampled_from(("", "", "", "request", "answer")), revoke=st.booleans())
    def beat(self, data: st.DataObject, lost: str, revoke: bool) -> None:
        client = self._one(data)
        if revoke:
            client.revoke()
        if not client.is_silent:
            self._beat(client, lost)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topics=NAMES, regex=REGEX)
    def subscribe(self, data: st.DataObject, topics: tuple[str, ...], regex: str) -> None:
        client = self._one(data)
        client.topics, client.regex, client.told = topics, "" if client.is_classic else regex, None

    @precondition(lambda self: len(self.clients) > 2)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        self._one(data).is_silent = True

    @precondition(lambda self: len(self.clients) > 1)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        client = self._one(data)
        if client.member_id in self._members() and not client.is_silent:
            client.start_again()
            if client.is_classic:
                self.world.classic_leave(LeavingMember(client.member_id, None))
            else:
                self.world.beat(client.member_id, -1, instance_id=client.instance_id)
        self.clients.remove(client)

    @precondition(lambda self: any(client.instance_id for client in self.clients))
    @rule(data=st.data(), topics=st.none() | NAMES, is_same_id=st.booleans())
    def bounce(self, data: st.DataObject, topics: tuple[str, ...] | None, is_same_id: bool) -> None:
        client = data.draw(st.sampled_from([client for client in self.clients if client.instance_id]))
        if client.is_silent or client.member_id not in self._members():
            return
        held = self._members()[client.member_id].current_assignment.assigned
        client.start_again()
        self.world.beat(client.member_id, LEAVING_FOR_A_MOMENT_EPOCH, instance_id=client.instance_id)
        assert self.world.assigned(client.member_id) == held
        if not is_same_id:
            self.count += 1
            client.member_id = f"m{self.count}"
        if topics is not None:
            client.topics = topics

    # Everything else

    @rule(name=st.sampled_from(TOPICS), count=st.integers(1, 4))
    def make_or_grow_topic(self, name: str, count: int) -> None:
        topic = self.world.image.topics.get(name)
        if topic is None:
            self.world.make_topic(name, count)
        else:
            self.world.grow_topic(name, max(count, len(topic.partitions)))

    @precondition(lambda self: len(self.world.image.topics) > 1)
    @rule(name=st.sampled_from(TOPICS))
    def delete_topic(self, name: str) -> None:
        self.world.delete_topic(name)

    @rule(milliseconds=st.sampled_from((1_000, 11_000, 44_000, 61_000)))
    def pass_time(self, milliseconds: int) -> None:
        """Members that live and have nothing to do beat in between, so that only the dead and the slow are fenced."""
        for _ in range(milliseconds // 11_000):
            self.world.pass_time(11_000)
            for client in self.clients:
                if not client.is_silent and client.epoch > 0:
                    self._beat(client, "")
        self.world.pass_time(milliseconds % 11_000)

    @precondition(lambda self: self.world.asked)
    @rule()
    def resolve(self) -> None:
        self.world.resolve()

    @rule()
    def load(self) -> None:
        before = durable(self.world.group)
        self.world.load()
        assert durable(self.world.group) == before

    def _one(self, data: st.DataObject) -> Client:
        return data.draw(st.sampled_from(self.clients))

    def _members(self) -> dict[str, ConsumerMember]:
        return self.world.group.state.members

    def _beat(self, client: Client, lost: str) -> None:
        if client.is_classic:
            self._beat_by_the_classic_protocol(client, lost)
        else:
            self._beat_by_the_consumer_protocol(client, lost)

    def _beat_by_the_classic_protocol(self, client: Client, lost: str) -> None:
        """Beat, and when told to, give up what must be and join; give up, and join again, if that tells it to."""
        if lost == "request" or not self._members():
            return
        try:
            is_settled = client.epoch > 0 and client.told is not None and client.owned <= client.assignment
            if is_settled and self.world.classic_beat(client.member_id, client.epoch) is None:
                return
            owned: dict[str, tuple[int, ...]] = {}
            for topic_id, partition in sorted(client.owned):
                name = self.world.image.topic_names.get(topic_id)
                if name is not None:
                    owned[name] = (*owned.get(name, ()), partition)
            response, _ = self.world.classic_join(client.member_id, *client.topics, owned=owned)
            client.told = None
            if lost == "answer":
                return
            client.epoch = response.generation
            synced = self.world.classic_sync(client.member_id, client.epoch)
        except (IllegalGeneration, UnknownMemberId):
            client.start_again()
        else:
            if isinstance(synced, SyncResponse):
                client.told = frozenset(client.owned)
                partitions = by_id(read_assignment(synced.assignment).partitions, self.world.image)
                client.take_assignment(frozenset(each(partitions)))

    def _beat_by_the_consumer_protocol(self, client: Client, lost: str) -> None:
        owned = frozenset(client.owned)
        is_full = client.told is None
        if lost == "request":
            client.told = None
            return
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in sorted(owned):
            by_topic.setdefault(topic_id, []).append(partition)
        says_owned = is_full or owned != client.told
        try:
            response, _ = self.world.beat(
                client.member_id,
                client.epoch,
                topics=client.topics if is_full else None,
                regex=client.regex if is_full else None,
                instance_id=client.instance_id,
                owned={topic_id: tuple(some) for topic_id, some in by_topic.items()} if says_owned else None,
                rebalance_timeout_ms=50_000 if is_full else -1,
            )
        except (FencedMemberEpoch, UnknownMemberId):
            client.start_again()
        except (UnreleasedInstanceId, FencedInstanceId):
            self.clients.remove(client)
        else:
            client.told = owned
            if lost == "answer":
                client.told = None
            else:
                client.take(response)

    # Promises

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[tuple[bytes, int], str] = {}
        for client in self.clients:
            if client.member_id in self._members():
                for partition in client.owned:
                    assert owners.setdefault(partition, client.member_id) == client.member_id

    @invariant()
    def epochs_only_grow(self) -> None:
        state = self.world.group.state
        assert state.target_epoch <= state.epoch
        epochs = (state.epoch, state.target_epoch)
        assert epochs[0] >= self.epochs[0]
        assert epochs[1] >= self.epochs[1]
        self.epochs = epochs
        for member_id, member in state.members.items():
            if member.epoch > 0:
                assert self.member_epochs.get(member_id, 0) <= member.epoch <= state.epoch
                self.member_epochs[member_id] = member.epoch

    @invariant()
    def no_living_member_is_lost_that_said_it_has_no_more_than_it_shall(self) -> None:
        for client in self.clients:
            if client.told is not None and client.told <= client.assignment and not client.is_silent:
                assert client.member_id in self._members()

    @invariant()
    def the_log_says_everything(self) -> None:
        fresh = ConsumerGroup(GROUP)
        for record in self.world.log:
            fresh.replay(record)
        assert durable(fresh) == durable(self.world.group)

    def teardown(self) -> None:
        """Everybody does what it is told, and all ends well."""
        self.clients = [client for client in self.clients if not client.is_silent]
        for _ in range(8):
            for client in tuple(self.clients):
                client.revoke()
                self._beat(client, "")
            while self.world.asked:
                self.world.resolve()
            self.world.pass_time(11_000)
        state = self.world.group.state
        assert set(state.members) == {client.member_id for client in self.clients}
        assert state.name in ("Stable", "Empty")
        self.no_partition_has_two_owners()
        owned = {partition for client in self.clients for partition in client.owned}
        wanted = set()
        for client in self.clients:
            names = {
                name
                for name in self.world.image.topics
                if name in client.topics or (client.regex and re.fullmatch(client.regex, name))
            }
            ids = {self.world.id(name) for name in names}
            assert {topic_id for topic_id, _ in client.owned} <= ids
            assert client.owned == set(each(self.world.assigned(client.member_id)))
            wanted |= {
                (self.world.id(name), partition)
                for name in names
                for partition in range(len(self.world.image.topics[name].partitions))
            }
        assert owned == wanted


TestConsumerGroupModel = ConsumerGroupModel.TestCase
TestConsumerGroupModel.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
