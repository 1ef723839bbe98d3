"""A group of the classic protocol: members join, the leader assigns, heartbeats keep sessions alive.

Owns how the group answers requests and timers. Must not know offsets, other groups, nor what the members' bytes mean.
"""

from lamina.coordinators import classic_assigning, classic_joining
from lamina.coordinators.classic_members import ClassicMember
from lamina.coordinators.classic_rebalance import (
    complete_if_joined,
    complete_without_pending,
    on_join_timer,
    on_sync_timer,
    rebalance,
)
from lamina.coordinators.classic_state import ClassicState, GroupDecision, State
from lamina.coordinators.conversion import ClassicGroupSnapshot, ClassicMemberSnapshot
from lamina.coordinators.decision import CancelTimer, Effect, Now, Reply, TimerName, Waiter
from lamina.coordinators.group_requests import (
    ClassicDescription,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    LeaveResponse,
    LeavingMember,
    SyncRequest,
)
from lamina.coordinators.offsets import Expiry
from lamina.coordinators.records.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from lamina.coordinators.records.group_records import ClassicGroupKey, GroupRecord
from lamina.errors import KafkaError, NonEmptyGroup, RebalanceInProgress, UnknownMemberId


class ClassicGroup(ClassicState):
    def loaded(self, now: Now) -> GroupDecision:
        """Take up the stored generation; every member gets a full session timeout."""
        decision = GroupDecision()
        if self.stored is None:
            return decision
        self.take_up(self.stored)
        for member in self.members:
            self.renew_session(member, now, decision)
        if len(self.members) > self.settings.max_size:
            # The limit was lowered: those who join again first stay.
            rebalance(self, now, decision)
        return decision

    # Members

    def join(self, request: JoinRequest, waiter: Waiter, now: Now) -> GroupDecision:
        return classic_joining.join(self, request, waiter, now)

    def sync(self, request: SyncRequest, waiter: Waiter, now: Now) -> GroupDecision:
        return classic_assigning.sync(self, request, waiter, now)

    def heartbeat(self, request: HeartbeatRequest, waiter: Waiter, now: Now) -> GroupDecision:
        member = self.members.require(request.member_id, request.instance_id)
        self.check_generation(request.generation)
        decision = GroupDecision()
        self.renew_session(member, now, decision)
        is_rebalancing = self.state is State.PREPARING_REBALANCE
        decision.reply(waiter, RebalanceInProgress(f"{self.group_id} is rebalancing") if is_rebalancing else None)
        return decision

    def leave(self, request: LeaveRequest, waiter: Waiter, now: Now) -> GroupDecision:
        """Several members at a time, each with an answer of its own."""
        decision = GroupDecision()
        outcomes: list[tuple[LeavingMember, KafkaError | None]] = []
        count = len(self.members)
        for leaving in request.members:
            try:
                self._leave(leaving, decision)
                outcomes.append((leaving, None))
            except KafkaError as error:
                outcomes.append((leaving, error.without_frames()))
        if len(self.members) < count:
            rebalance(self, now, decision)
        else:
            # Who was told an id and leaves was no member, but may have been waited for.
            complete_if_joined(self, now, decision)
        decision.reply(waiter, LeaveResponse(tuple(outcomes)))
        return decision

    def _leave(self, leaving: LeavingMember, decision: GroupDecision) -> None:
        members = self.members
        if leaving.member_id in members.pending:
            self.forget_pending(leaving.member_id, decision)
        elif leaving.member_id or leaving.instance_id is None:
            self.remove(members.require(leaving.member_id, leaving.instance_id), decision)
        else:
            # An administrator removes a static member by its instance alone.
            static = members.of_instance(leaving.instance_id)
            if static is None:
                raise UnknownMemberId(f"no member has the instance id {leaving.instance_id}")
            self.remove(static, decision)

    def on_timer(self, name: TimerName, now: Now) -> GroupDecision:
        decision = GroupDecision()
        match name[1:]:
            case ("downgraded-by-leaving",):
                decision = self.take_over(now, is_stable=False)
            case ("downgraded",):
                decision = self.take_over(now, is_stable=True)
            case ("join",):
                on_join_timer(self, now, decision)
            case ("sync",):
                on_sync_timer(self, now, decision)
            case ("pending", member_id):
                self.forget_pending(member_id, decision)
                complete_without_pending(self, now, decision)
            case ("session", member_id) if member_id in self.members:
                self._on_session_timer(self.members[member_id], now, decision)
        return decision

    def _on_session_timer(self, member: ClassicMember, now: Now, decision: GroupDecision) -> None:
        # A member that waits for the group sends no heartbeats; a new one may never have learnt its id.
        if member.is_new or not member.is_waiting:
            self.remove(member, decision)
            rebalance(self, now, decision)

    # Offsets

    def check_commit(
        self, member_id: str, generation: int, instance_id: str | None, *, is_transactional: bool
    ) -> ClassicMember | None:
        """Raises what forbids a commit; returns the member that makes it, if one does."""
        if generation < 0 and self.state is State.EMPTY:
            return None
        member = None
        if generation >= 0 or member_id or instance_id is not None:
            member = self.members.require(member_id, instance_id)
            self.check_generation(generation)
        elif not is_transactional:
            raise UnknownMemberId(f"{self.group_id} has members: only they may commit")
        if self.state is State.COMPLETING_REBALANCE and not is_transactional:
            raise RebalanceInProgress(f"{self.group_id} is rebalancing")
        return member

    def committed(self, member: ClassicMember, now: Now, decision: GroupDecision) -> None:
        """A commit shows that the member is alive."""
        if self.state in (State.STABLE, State.PREPARING_REBALANCE):
            self.renew_session(member, now, decision)

    def expiry(self) -> Expiry | None:
        """How its offsets grow old; ``None`` while they must not."""
        if self.protocol_type is None:
            return Expiry()
        if self.state is State.EMPTY:
            return Expiry(since_ms=self.state_since_ms if self.state_since_ms >= 0 else None)
        if self.state is State.STABLE and self.subscribed_topics is not None:
            return Expiry(kept_topics=self.subscribed_topics)
        return None

    def check_offset_delete(self) -> None:
        if self.state is not State.EMPTY and self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise NonEmptyGroup(f"{self.group_id} has members")

    def is_subscribed_to(self, topic: str) -> bool:
        """A group whose subscriptions are not known may read anything."""
        if self.state is State.EMPTY:
            return False
        return self.subscribed_topics is None or topic in self.subscribed_topics

    # The end of the group

    @property
    def is_abandoned(self) -> bool:
        return self.state is State.EMPTY and not self.members.pending

    def check_delete(self) -> None:
        if self.state is not State.EMPTY:
            raise NonEmptyGroup(f"{self.group_id} has members")

    def tombstones(self) -> list[GroupRecord]:
        return [] if self.stored is None else [GroupRecord(ClassicGroupKey(self.group_id), None)]

    # Becoming a consumer group, and having been one

    def snapshot(self) -> ClassicGroupSnapshot:
        return ClassicGroupSnapshot(
            self.group_id,
            self.protocol_type,
            self.protocol,
            self.generation,
            tuple(
                ClassicMemberSnapshot(
                    member.member_id,
                    member.instance_id,
                    member.client.client_id,
                    member.client.host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    member.protocols,
                    member.assignment,
                )
                for member in self.members
            ),
        )

    def give_up(self) -> list[Effect]:
        """What tells waiting members to join again if the group becomes a consumer group. Changes nothing by itself."""
        error = RebalanceInProgress(f"{self.group_id} changes its protocol")
        waiting = [waiter for one in self.members for waiter in (one.joins, one.syncs) if waiter is not None]
        timers = [self.timer("join"), self.timer("sync")]
        timers += [self.timer("session", member.member_id) for member in self.members]
        timers += [self.timer("pending", member_id) for member_id in self.members.pending]
        return [*(Reply(waiter, error) for waiter in waiting), *(CancelTimer(name) for name in timers)]

    def take_over(self, now: Now, *, is_stable: bool) -> GroupDecision:
        """The group was a consumer group until now; it has taken up its members, who have a session from here on."""
        decision = GroupDecision()
        for member in self.members:
            self.renew_session(member, now, decision)
        if not is_stable and self.state is State.STABLE:
            rebalance(self, now, decision)
        return decision

    # Looking

    def describe(self) -> ClassicDescription:
        protocol = self.protocol if self.state is State.STABLE else None
        return ClassicDescription(
            self.group_id,
            self.state.value,
            self.protocol_type or "",
            protocol or "",
            tuple(member.described(protocol) for member in self.members),
            self.generation,
            self.members.leader,
        )
