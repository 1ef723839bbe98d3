"""A classic group with everything around it that a broker would be: clocks, timers, a log, requests that wait."""

from collections.abc import Callable, Mapping

from lamina.coordinators.classic import ClassicGroup
from lamina.coordinators.decision import CancelTimer, Decision, Now, Reply, SetTimer, TimerName
from lamina.coordinators.group_context import GroupSettings
from lamina.coordinators.group_requests import (
    Client,
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    LeavingMember,
    SyncRequest,
    SyncResponse,
)
from lamina.coordinators.records.consumer_protocol import Subscription, write_subscription
from lamina.coordinators.records.group_records import ClassicGroupKey, ClassicGroupValue, GroupRecord
from lamina.errors import KafkaError

GROUP = "g"
CLIENT = Client("client", "/127.0.0.1")
DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
WALL_MS = 1_700_000_000_000
"""How far the wall clock is ahead of the other one."""

Protocols = tuple[tuple[str, bytes], ...]


def subscribed(*topics: str) -> bytes:
    return write_subscription(Subscription(3, topics))


RANGE: Protocols = (("range", subscribed("t")),)
RANGE_OR_STICKY: Protocols = (("range", subscribed("t")), ("sticky", subscribed("t")))
STICKY_OR_RANGE: Protocols = (("sticky", subscribed("t")), ("range", subscribed("t")))
STICKY: Protocols = (("sticky", subscribed("t")),)

Generation = tuple[int, str | None, str | None, tuple[tuple[str, str | None, bytes], ...]]


def generation_of(group: ClassicGroup) -> Generation:
    members = tuple((one.member_id, one.instance_id, one.assignment) for one in group.members)
    return group.generation, group.protocol, group.members.leader, members


class World:
    def __init__(self, **settings: int) -> None:
        self.settings = GroupSettings(initial_rebalance_delay_ms=settings.pop("delay_ms", DELAY_MS), **settings)  # type: ignore[arg-type]
        self.group = ClassicGroup(GROUP, self.settings)
        self.log: list[ClassicGroupValue | None] = []
        self.live: list[Generation] = []
        """What the group was when each record was written."""
        self.timers: dict[TimerName, int] = {}
        self.waiting: set[int] = set()
        self.replies: dict[int, object] = {}
        self.now_ms = 1_000_000
        self.fired = 0
        self._waiter = 0

    @property
    def now(self) -> Now:
        return Now(self.now_ms + WALL_MS, self.now_ms)

    @property
    def state(self) -> str:
        return self.group.state.value

    # What a runtime does

    def carry_out(self, decision: Decision[GroupRecord]) -> None:
        for record in decision.records:
            assert record.key == ClassicGroupKey(GROUP)
            assert record.value is None or isinstance(record.value, ClassicGroupValue)
            self.log.append(record.value)
            self.live.append(generation_of(self.group))
            self.group.replay(record.value)
        for effect in decision.effects:
            match effect:
                case SetTimer(name, at_monotonic_ms):
                    assert name[0] == GROUP
                    self.timers[name] = at_monotonic_ms
                case CancelTimer(name):
                    self.timers.pop(name, None)
                case Reply(waiter, response):
                    assert waiter in self.waiting, "nobody waits for this answer"
                    self.waiting.remove(waiter)
                    self.replies[waiter] = response
                case _:
                    raise AssertionError(effect)

    def ask(self, decide: Callable[[int, Now], Decision[GroupRecord]]) -> int:
        self._waiter += 1
        waiter = self._waiter
        self.waiting.add(waiter)
        try:
            decision = decide(waiter, self.now)
        except KafkaError as error:
            self.waiting.remove(waiter)
            self.replies[waiter] = error
        else:
            self.carry_out(decision)
        return waiter

    def pass_time(self, milliseconds: int) -> None:
        """Let timers fire in their order."""
        until_ms = self.now_ms + milliseconds
        while due := [name for name, at_ms in self.timers.items() if at_ms <= until_ms]:
            name = min(due, key=lambda each: (self.timers[each], each))
            self.now_ms = max(self.now_ms, self.timers.pop(name))
            self.fired += 1
            self.carry_out(self.group.on_timer(name, self.now))
        self.now_ms = until_ms

    def load(self, records: int | None = None) -> None:
        """Lose everything but the log and read that; requests that wait are lost too."""
        self.group = ClassicGroup(GROUP, self.settings)
        self.timers.clear()
        self.waiting.clear()
        for value in self.log[:records]:
            self.group.replay(value)
        self.carry_out(self.group.loaded(self.now))

    # Requests

    def ask_to_join(
        self,
        member_id: str = "",
        *,
        gets: str = "",
        instance: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        two_step: bool = False,
        may_skip: bool = True,
        client: Client = CLIENT,
    ) -> int:
        request = JoinRequest(
            GROUP,
            member_id,
            instance,
            client,
            protocol_type,
            protocols,
            session_ms,
            rebalance_ms,
            new_member_id=gets,
            requires_known_member_id=two_step,
            may_skip_assignment=may_skip,
        )
        return self.ask(lambda waiter, now: self.group.join(request, waiter, now))

    def ask_to_sync(
        self,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> int:
        request = SyncRequest(
            GROUP,
            self.group.generation if generation is None else generation,
            member_id,
            instance,
            protocol_type,
            protocol,
            assignments or {},
        )
        return self.ask(lambda waiter, now: self.group.sync(request, waiter, now))

    def heartbeat(
        self, member_id: str, *, generation: int | None = None, instance: str | None = None
    ) -> KafkaError | None:
        request = HeartbeatRequest(
            GROUP, self.group.generation if generation is None else generation, member_id, instance
        )
        waiter = self.ask(lambda waiter, now: self.group.heartbeat(request, waiter, now))
        response = self.replies[waiter]
        assert response is None or isinstance(response, KafkaError)
        return response

    def leave(self, *members: tuple[str, str | None]) -> list[KafkaError | None]:
        request = LeaveRequest(GROUP, tuple(LeavingMember(*member) for member in members))
        waiter = self.ask(lambda waiter, now: self.group.leave(request, waiter, now))
        response = self.replies[waiter]
        assert isinstance(response, LeaveResponse)
        assert [leaving[:2] for leaving, _ in response.members] == list(members)
        return [error for _, error in response.members]

    # Answers

    def error(self, waiter: int) -> type[KafkaError] | None:
        response = self.replies[waiter]
        if isinstance(response, JoinResponse) and response.error is not None:
            return type(response.error)
        return type(response) if isinstance(response, KafkaError) else None

    def joined(self, waiter: int) -> JoinResponse:
        response = self.replies[waiter]
        assert isinstance(response, JoinResponse), response
        assert response.error is None
        return response

    def assigned(self, waiter: int) -> bytes:
        response = self.replies[waiter]
        assert isinstance(response, SyncResponse), response
        return response.assignment

    # Together

    def join_all(self, *member_ids: str, **how: object) -> dict[str, int]:
        """Members of an empty group join it and begin a generation together, under these ids."""
        waiters = {
            member_id: self.ask_to_join(gets=member_id, **how)  # type: ignore[arg-type]
            for member_id in member_ids
        }
        while self.state == "PreparingRebalance":
            self.pass_time(DELAY_MS)
        return waiters

    def assign(self) -> None:
        """The leader gives each member a part that says whose it is; the members fetch it."""
        parts = {one.member_id: self.part(one.member_id) for one in self.group.members}
        leader = self.group.members.leader
        assert leader is not None
        self.ask_to_sync(leader, parts)
        for member_id in parts.keys() - {leader}:
            self.ask_to_sync(member_id)

    def part(self, member_id: str) -> bytes:
        return f"{member_id} in {self.group.generation}".encode()

    def form(self, *member_ids: str, **how: object) -> None:
        """A stable group; the first member leads."""
        self.join_all(*member_ids, **how)
        self.assign()
        assert self.state == "Stable"

    def form_static(self, *instances: str, **how: object) -> None:
        """As :meth:`form`; the member of instance ``x`` has the id ``x-1``."""
        for instance in instances:
            self.ask_to_join(gets=f"{instance}-1", instance=instance, **how)  # type: ignore[arg-type]
        self.join_all()
        self.assign()
        assert self.state == "Stable"

    @property
    def ids(self) -> list[str]:
        return [one.member_id for one in self.group.members]
