"""Simulated members of a classic group do what members do, lose answers, stall, die; the group keeps its promises."""

import json
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lamina.coordinators.classic import ClassicGroup
from lamina.coordinators.group_requests import JoinResponse, SyncResponse
from lamina.coordinators.records.consumer_protocol import Subscription, read_subscription, write_subscription
from lamina.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.classic_world import GROUP, World, generation_of
from tests.examples import examples

PARTITIONS = frozenset(range(6))
HEARTBEAT_MS = 2_000
RETRY_MS = 3_000
SESSION_MS = 10_000
SETTLING_MS = 400_000
"""Longer than anything that may hold a group up."""
INSTANCES = ("i", "j")
SECONDS = st.sampled_from((20, 5, 2, 0))
"""How long everybody goes on after something happened."""


@dataclass(eq=False)
class Consumer:
    name: str
    is_cooperative: bool
    instance: str | None
    is_two_step: bool
    preferences: tuple[str, ...]
    rebalance_ms: int
    member_id: str = ""
    generation: int = -1
    phase: str = "joining"
    """``joining``, ``syncing`` or ``member``."""
    waiter: int | None = None
    leads: tuple[tuple[str, bytes], ...] | None = None
    """The others, with what they say, if it is to assign."""
    owned: frozenset[int] = frozenset()
    next_ms: int = 0
    """When it does something again."""
    loses_next: bool = False
    lost_ms: int = 0
    """When an answer was lost the last time."""
    is_slow: bool = False
    """It does not come to assign."""
    is_gone: bool = False
    is_late: bool = False
    """What it reads next may be of long ago."""
    is_kept: bool = False
    """It does everything in time since it was told a generation: the group must not lose it."""
    refusals: list[type[KafkaError]] = field(default_factory=list)

    @property
    def protocols(self) -> tuple[tuple[str, bytes], ...]:
        said = json.dumps(sorted(self.owned)).encode()
        return tuple((name, write_subscription(Subscription(3, ("t",), said))) for name in self.preferences)

    def start_again(self) -> None:
        self.member_id, self.generation, self.phase = "", -1, "joining"
        self.owned, self.leads, self.is_kept = frozenset(), None, False

    def end(self) -> None:
        self.is_gone, self.is_kept, self.owned, self.waiter = True, False, frozenset(), None


def distribute(generation: int, members: tuple[tuple[str, bytes], ...], *, is_cooperative: bool) -> dict[str, bytes]:
    """What a leader assigns; a cooperative one gives nothing away that somebody still has."""
    owners = {}
    for member_id, metadata in members:
        for partition in json.loads(read_subscription(metadata).user_data or b"[]"):
            owners[partition] = member_id
    ids = sorted(member_id for member_id, _ in members)
    parts: dict[str, list[int]] = {member_id: [] for member_id in ids}
    for partition in sorted(PARTITIONS):
        member_id = ids[partition % len(ids)]
        if not is_cooperative or owners.get(partition, member_id) == member_id:
            parts[member_id].append(partition)
    return {
        member_id: json.dumps({"generation": generation, "to": member_id, "parts": some}).encode()
        for member_id, some in parts.items()
    }


class ClassicGroupModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.consumers: list[Consumer] = []
        self.is_cooperative = False
        self.ids = 0
        self.assigned: dict[int, dict[str, bytes]] = {}
        """What leaders assigned, by generation and member."""
        self.lowest_generation = 0

    @initialize(is_cooperative=st.booleans(), max_size=st.sampled_from((3, 100)), delay_ms=st.sampled_from((0, 3_000)))
    def begin(self, is_cooperative: bool, max_size: int, delay_ms: int) -> None:
        self.is_cooperative = is_cooperative
        self.world = World(max_size=max_size, delay_ms=delay_ms)

    @property
    def living(self) -> list[Consumer]:
        return [consumer for consumer in self.consumers if not consumer.is_gone]

    def pick(self, number: int) -> Consumer:
        return self.living[number % len(self.living)]

    # What consumers do

    def act(self, consumer: Consumer) -> None:
        world = self.world
        if consumer.is_gone or consumer.next_ms > world.now_ms:
            return
        if consumer.waiter is not None:
            if consumer.waiter in world.waiting:
                return
            self.receive(consumer)
            return
        if consumer.phase == "joining":
            self.join(consumer)
        elif consumer.phase == "syncing" and not (consumer.is_slow and consumer.leads is not None):
            self.sync(consumer)
        else:
            self.heartbeat(consumer)

    def join(self, consumer: Consumer) -> None:
        world = self.world
        self.ids += 1
        new_id = f"{consumer.name}-{self.ids}"
        if not consumer.is_cooperative:
            consumer.owned = frozenset()
        old = world.group.members.of_instance(consumer.instance)
        old_id = None if old is None else old.member_id
        for rival in self.living:
            if consumer.instance is not None and rival.instance == consumer.instance and rival is not consumer:
                rival.is_kept, rival.is_late = False, True
        before = generation_of(world.group)[0], world.state
        consumer.is_late = False
        consumer.waiter = world.ask_to_join(
            consumer.member_id,
            gets=new_id,
            instance=consumer.instance,
            protocols=consumer.protocols,
            session_ms=SESSION_MS,
            rebalance_ms=consumer.rebalance_ms,
            two_step=consumer.is_two_step,
        )
        if isinstance(world.replies.get(consumer.waiter), GroupMaxSizeReached):
            consumer.is_kept = False
        if not consumer.member_id and old_id is not None and before == (world.group.generation, "Stable"):
            # It took the place of its former self.
            parts = self.assigned[world.group.generation]
            parts[new_id] = parts.get(old_id, b"")

    def sync(self, consumer: Consumer) -> None:
        world = self.world
        assignments = {}
        if consumer.leads is not None:
            assignments = distribute(consumer.generation, consumer.leads, is_cooperative=self.is_cooperative)
        was_completing = world.state == "CompletingRebalance"
        consumer.is_late = False
        consumer.waiter = world.ask_to_sync(
            consumer.member_id, assignments, generation=consumer.generation, instance=consumer.instance
        )
        if was_completing and world.state == "Stable":
            assert consumer.leads is not None
            assert consumer.generation not in self.assigned
            self.assigned[consumer.generation] = assignments

    def heartbeat(self, consumer: Consumer) -> None:
        consumer.next_ms = self.world.now_ms + HEARTBEAT_MS
        error = self.world.heartbeat(consumer.member_id, generation=consumer.generation, instance=consumer.instance)
        if error is not None:
            self.refused(consumer, error)

    def receive(self, consumer: Consumer) -> None:
        assert consumer.waiter is not None
        response = self.world.replies.get(consumer.waiter)
        consumer.waiter = None
        if isinstance(response, SyncResponse):
            expected = self.assigned[consumer.generation].get(consumer.member_id, b"")
            assert response.assignment == expected
        if response is None or consumer.loses_next:
            # Whoever loses one answer after the other is not heard of in time.
            if self.world.now_ms - consumer.lost_ms < 2 * SESSION_MS:
                consumer.is_kept, consumer.is_late = False, True
            consumer.loses_next = False
            consumer.lost_ms = self.world.now_ms
            consumer.next_ms = self.world.now_ms + RETRY_MS
        elif isinstance(response, JoinResponse) and response.error is None:
            self.told(consumer, response)
        elif isinstance(response, JoinResponse):
            assert isinstance(response.error, MemberIdRequired)
            consumer.member_id = response.member_id
        elif isinstance(response, SyncResponse):
            self.take(consumer, response.assignment)
        else:
            assert isinstance(response, KafkaError)
            self.refused(consumer, response)

    def told(self, consumer: Consumer, response: JoinResponse) -> None:
        assert response.generation >= consumer.generation or not consumer.is_kept
        consumer.member_id, consumer.generation, consumer.phase = response.member_id, response.generation, "syncing"
        is_to_assign = response.leader == response.member_id and not response.skip_assignment
        consumer.leads = tuple((one.member_id, one.metadata) for one in response.members) if is_to_assign else None
        consumer.is_kept = not consumer.is_slow and not consumer.is_late

    def take(self, consumer: Consumer, assignment: bytes) -> None:
        parts = frozenset(json.loads(assignment)["parts"]) if assignment else frozenset()
        is_to_join = self.is_cooperative and not consumer.owned <= parts
        consumer.owned = parts
        consumer.phase = "joining" if is_to_join else "member"

    def refused(self, consumer: Consumer, error: KafkaError) -> None:
        consumer.refusals.append(type(error))
        match error:
            case RebalanceInProgress():
                consumer.phase = "joining"
            case UnknownMemberId():
                assert not consumer.is_kept, "a member that did everything in time was lost"
                consumer.start_again()
            case IllegalGeneration():
                assert not consumer.is_kept, "a generation went on without a member that did everything in time"
                consumer.owned, consumer.phase = frozenset(), "joining"
            case FencedInstanceId() | GroupMaxSizeReached():
                consumer.end()
            case _:
                raise AssertionError(error)

    def come(self, is_two_step: bool, instance: str | None, prefers_second: bool, rebalance_ms: int) -> None:
        """With an instance id that is in use it is a static member that comes back, or a second one by mistake."""
        if len(self.living) >= 6:
            return
        preferences = ("second", "first") if prefers_second else ("first", "second")
        name = f"{instance or 'c'}{len(self.consumers)}"
        consumer = Consumer(name, self.is_cooperative, instance, is_two_step, preferences, rebalance_ms)
        self.consumers.append(consumer)
        self.act(consumer)

    # What happens

    @rule(
        is_two_step=st.booleans(),
        instance=st.sampled_from((None, None, *INSTANCES)),
        prefers_second=st.booleans(),
        rebalance_ms=st.sampled_from((30_000, 60_000)),
        seconds=SECONDS,
    )
    def somebody_comes(
        self, is_two_step: bool, instance: str | None, prefers_second: bool, rebalance_ms: int, seconds: int
    ) -> None:
        self.come(is_two_step, instance, prefers_second, rebalance_ms)
        self.run(seconds)

    @rule(count=st.integers(2, 4), is_two_step=st.booleans(), seconds=SECONDS)
    def several_come(self, count: int, is_two_step: bool, seconds: int) -> None:
        for number in range(count):
            instance = INSTANCES[0] if number == 2 else None
            self.come(is_two_step, instance, number == 1, 30_000)
        self.run(seconds)

    @precondition(lambda self: len(self.living) > 1)
    @rule(number=st.integers(0, 5), seconds=SECONDS)
    def somebody_dies(self, number: int, seconds: int) -> None:
        self.pick(number).end()
        self.run(seconds)

    @precondition(lambda self: self.living)
    @rule(number=st.integers(0, 5), seconds=SECONDS)
    def a_connection_breaks(self, number: int, seconds: int) -> None:
        """Whatever is answered next is lost, and what is waited for is asked again."""
        consumer = self.pick(number)
        if consumer.waiter in self.world.waiting:
            consumer.waiter = None
        else:
            consumer.loses_next = True
        self.run(seconds)

    @precondition(lambda self: self.living)
    @rule(number=st.integers(0, 5), is_slow=st.booleans(), seconds=SECONDS)
    def somebody_gets_slow_or_quick(self, number: int, is_slow: bool, seconds: int) -> None:
        consumer = self.pick(number)
        consumer.is_slow = is_slow
        consumer.is_kept = consumer.is_kept and not is_slow
        self.run(seconds)

    @precondition(lambda self: any(one.phase == "member" and one.leads is not None for one in self.living))
    @rule()
    def a_leader_does_not_come_to_assign(self) -> None:
        """It goes on to be heard of; the others wait for it until its time is over."""
        leader = next(one for one in self.living if one.phase == "member" and one.leads is not None)
        leader.is_slow, leader.is_kept, leader.phase = True, False, "joining"
        self.run(80)
        leader.is_slow = False

    @precondition(lambda self: self.living)
    @rule(number=st.integers(0, 5), seconds=st.integers(1, 80))
    def somebody_stalls(self, number: int, seconds: int) -> None:
        consumer = self.pick(number)
        consumer.next_ms = self.world.now_ms + seconds * 1_000
        consumer.is_kept, consumer.is_late = False, True

    @precondition(lambda self: len(self.living) > 1)
    @rule(number=st.integers(0, 5), is_by_instance=st.booleans())
    def somebody_leaves(self, number: int, is_by_instance: bool) -> None:
        consumer = self.pick(number)
        if not consumer.member_id:
            return
        if consumer.instance is not None:
            holder = self.world.group.members.of_instance(consumer.instance)
            if is_by_instance or holder is None or holder.member_id != consumer.member_id:
                for other in self.living:
                    if other.instance == consumer.instance:
                        other.end()
                self.world.leave(("", consumer.instance))
                return
        consumer.end()
        self.world.leave((consumer.member_id, consumer.instance))
        assert consumer.member_id not in self.world.group.members

    @precondition(lambda self: self.living)
    @rule(number=st.integers(0, 5), seconds=SECONDS)
    def somebody_prefers_another_protocol(self, number: int, seconds: int) -> None:
        consumer = self.pick(number)
        consumer.preferences = consumer.preferences[::-1]
        if consumer.phase == "member":
            consumer.phase = "joining"
        self.run(seconds)

    @rule(seconds=st.integers(1, 15), first=st.integers(0, 5))
    def time_passes(self, seconds: int, first: int) -> None:
        self.run(seconds, first)

    @rule(seconds=SECONDS)
    def the_coordinator_restarts(self, seconds: int) -> None:
        world = self.world
        world.load()
        self.lowest_generation = world.group.generation
        for consumer in self.living:
            consumer.is_late = True
            is_known = consumer.member_id in world.group.members
            consumer.is_kept = consumer.is_kept and is_known and consumer.generation == world.group.generation
        self.run(seconds)

    def run(self, seconds: int, first: int = 0) -> None:
        for _ in range(seconds):
            self.world.pass_time(1_000)
            consumers = self.living
            for consumer in consumers[first:] + consumers[:first]:
                self.act(consumer)
            self.keeps_promises()

    # What holds at any time

    @invariant()
    def keeps_promises(self) -> None:
        group = self.world.group
        assert group.generation >= self.lowest_generation
        self.lowest_generation = group.generation
        for consumer in self.living:
            if consumer.is_kept:
                assert consumer.member_id in group.members, consumer.refusals
        owned = [partition for consumer in self.living if consumer.is_kept for partition in consumer.owned]
        assert len(owned) == len(set(owned)), "a partition has two owners"
        if group.state.value in ("Stable", "Empty") and (group.stored is not None or group.generation):
            assert group.stored == group.record().value
        if group.stored is not None and group.stored.members:
            assert {one.member_id: one.assignment for one in group.stored.members}.items() <= self.assigned[
                group.stored.generation
            ].items()
        self.no_timer_is_missing()

    def no_timer_is_missing(self) -> None:
        timers, group = self.world.timers, self.world.group
        for member in group.members:
            if member.is_new or not member.is_waiting:
                assert (GROUP, "session", member.member_id) in timers
        if group.state.value == "PreparingRebalance":
            assert (GROUP, "join") in timers
        if group.state.value == "CompletingRebalance" and group.syncing:
            assert (GROUP, "sync") in timers
        for member_id in group.members.pending:
            assert (GROUP, "pending", member_id) in timers

    # What holds in the end

    def teardown(self) -> None:
        self.everybody_gets_its_part()
        self.every_prefix_of_the_log_is_a_group()
        self.nobody_waits_for_ever()

    def everybody_gets_its_part(self) -> None:
        """Nothing bad happens any more: those who live share all partitions, and nobody else is in the group."""
        for consumer in self.living:
            consumer.is_slow = consumer.loses_next = False
        for _ in range(SETTLING_MS // 1_000):
            if self.is_settled():
                break
            self.run(1)
        assert self.is_settled(), (self.world.state, self.consumers)

    def is_settled(self) -> bool:
        living = self.living
        if {one.member_id for one in self.world.group.members} != {consumer.member_id for consumer in living}:
            return False
        if not living:
            return self.world.state == "Empty"
        owned = sorted(partition for consumer in living for partition in consumer.owned)
        return (
            self.world.state == "Stable"
            and all(consumer.phase == "member" for consumer in living)
            and owned == sorted(PARTITIONS)
        )

    def every_prefix_of_the_log_is_a_group(self) -> None:
        for count, live in enumerate(self.world.live, start=1):
            world = World(max_size=100)
            world.log = self.world.log[:count]
            world.load()
            assert generation_of(world.group) == live
            self.goes_on_without_a_rebalance(world)

    def goes_on_without_a_rebalance(self, world: World) -> None:
        if not world.group.members:
            assert world.state == "Empty"
            return
        generation = generation_of(world.group)
        for _ in range(3):
            world.pass_time(SESSION_MS - 1)
            for member in world.group.members:
                assert world.heartbeat(member.member_id, instance=member.instance_id) is None
        assert world.state == "Stable"
        assert generation_of(world.group) == generation

    def nobody_waits_for_ever(self) -> None:
        """Nobody does anything any more."""
        self.world.pass_time(SETTLING_MS)
        assert self.world.waiting == set()
        assert self.world.timers == {}
        assert self.world.state == "Empty"
        if self.world.log:
            fresh = ClassicGroup(GROUP, self.world.settings)
            for value in self.world.log:
                fresh.replay(value)
            assert fresh.loaded(self.world.now).effects == []


TestClassicGroupModel = ClassicGroupModel.TestCase
TestClassicGroupModel.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
