"""A group of the classic protocol: members join, one of them assigns, all are told; heartbeats keep them in.

Owns the group's state and its five transitions. What is durable is the last generation that was completed
(:attr:`ClassicGroup.stored`); everything else is soft, and a restart finds the group as it was then. Must not know
offsets, other groups, nor what the members' bytes mean.
"""

from enum import StrEnum

from lamina.coordinators.classic_member import ClassicMember, from_stored
from lamina.coordinators.classic_members import ClassicMembers
from lamina.coordinators.conversion import ClassicGroupSnapshot, ClassicMemberSnapshot
from lamina.coordinators.decision import Decision, Now, TimerName, Waiter
from lamina.coordinators.group_requests import (
    ClassicDescription,
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveAnswer,
    LeaveRequest,
    LeavingMember,
    SyncAnswer,
    SyncRequest,
)
from lamina.coordinators.group_settings import GroupSettings
from lamina.coordinators.offsets import Expiry
from lamina.coordinators.records.group_records import ClassicGroupKey, ClassicGroupValue, GroupRecord
from lamina.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)

CONSUMER_PROTOCOL = "consumer"
NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""How long somebody who joins for the first time is waited for while nothing is heard of it."""

_NO_GENERATION = 0


class State(StrEnum):
    """Kafka's names; a group that is gone is Dead, and is not here."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class ClassicGroup:
    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        self.group_id = group_id
        self.settings = settings
        self.stored: ClassicGroupValue | None = None
        """What the log says; changed by :meth:`replay` alone."""
        self.state = State.EMPTY
        self.state_since_ms = -1
        """Wall time of the last transition; -1 for a group that never had members."""
        self.protocol_type: str | None = None
        self.generation = _NO_GENERATION
        self.protocol: str | None = None
        self.members = ClassicMembers()
        self.subscribed_topics: frozenset[str] | None = None
        self._is_initial = False
        """The group was empty: whoever comes soon shall be part of its first generation."""
        self._has_grown = False
        self._initial_remaining_ms = 0
        self._syncing: set[str] = set()
        """Members that were told of the generation and have not asked for their assignment yet."""

    # Durable state

    def replay(self, value: ClassicGroupValue | None) -> None:
        self.stored = value

    def loaded(self, now: Now) -> Decision[GroupRecord]:
        """Take up the stored generation; every member gets a full session to be heard of."""
        decision = Decision[GroupRecord]()
        stored = self.stored
        if stored is None:
            return decision
        self.protocol_type = stored.protocol_type or None
        self.generation = stored.generation
        self.protocol = stored.protocol
        self.state_since_ms = stored.state_timestamp_ms
        for value in stored.members:
            self.members.add(from_stored(value, stored.protocol))
        self.members.leader = stored.leader
        self.state = State.STABLE if self.members else State.EMPTY
        self._know_topics()
        for member in self.members:
            self._expect(member, now, decision)
        return decision

    def record(self) -> GroupRecord:
        """The generation as it is now."""
        return GroupRecord(
            ClassicGroupKey(self.group_id),
            ClassicGroupValue(
                self.protocol_type or "",
                self.generation,
                self.protocol,
                self.members.leader,
                self.state_since_ms,
                tuple(member.stored(self.protocol) for member in self.members),
            ),
        )

    # Joining

    def join(self, request: JoinRequest, waiter: Waiter, now: Now) -> Decision[GroupRecord]:
        decision = Decision[GroupRecord]()
        known = self.members.get(request.member_id)
        self._check_room(request, known)
        self._check_protocols(request)
        if not request.member_id:
            self._join_new(request, waiter, now, decision)
        elif request.member_id in self.members.pending and request.instance_id is None:
            decision.cancel_timer(self._timer("pending", request.member_id))
            self._add(request, request.member_id, waiter, now, decision)
        else:
            member = self.members.require(request.member_id, request.instance_id)
            self._rejoin(member, request, waiter, now, decision)
        return decision

    def _check_room(self, request: JoinRequest, known: ClassicMember | None) -> None:
        members, limit = self.members, self.settings.max_size
        if self.state is State.PREPARING_REBALANCE:
            # Places of those who have not come back yet are taken by whoever comes first.
            is_full = (known is None or known.joins is None) and members.joining >= limit
        else:
            is_full = known is None and members.of_instance(request.instance_id) is None and len(members) >= limit
        if is_full:
            raise GroupMaxSizeReached(f"{self.group_id} has {limit} members, as many as it may have")

    def _check_protocols(self, request: JoinRequest) -> None:
        names = {name for name, _ in request.protocols}
        if not request.protocol_type or not names:
            raise InconsistentGroupProtocol("a member has to name a protocol type and a protocol")
        if not self.members:
            return
        if request.protocol_type != self.protocol_type:
            raise InconsistentGroupProtocol(f"{self.group_id} is a group of type {self.protocol_type}")
        if not names & self.members.common_protocols():
            raise InconsistentGroupProtocol(f"{self.group_id} has members that support none of {sorted(names)}")

    def _join_new(self, request: JoinRequest, waiter: Waiter, now: Now, decision: Decision[GroupRecord]) -> None:
        static = self.members.of_instance(request.instance_id)
        if static is not None:
            self._replace(static, request, waiter, now, decision)
        elif request.instance_id is None and request.requires_known_member_id:
            self.members.pending.add(request.new_member_id)
            at_ms = now.monotonic_ms + request.session_timeout_ms
            decision.set_timer(self._timer("pending", request.new_member_id), at_ms)
            error = MemberIdRequired("join again with the member id that comes with this answer")
            decision.reply(waiter, JoinAnswer(request.new_member_id, error=error))
        else:
            self._add(request, request.new_member_id, waiter, now, decision)

    def _add(
        self, request: JoinRequest, member_id: str, waiter: Waiter, now: Now, decision: Decision[GroupRecord]
    ) -> None:
        if not self.members:
            self.protocol_type = request.protocol_type
        member = ClassicMember(
            member_id,
            request.instance_id,
            request.client,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            joins=waiter,
            is_new=True,
        )
        self.members.add(member)
        self._has_grown = self._is_initial
        decision.set_timer(self._timer("session", member_id), now.monotonic_ms + NEW_MEMBER_TIMEOUT_MS)
        self._rebalance(now, decision)

    def _rejoin(
        self, member: ClassicMember, request: JoinRequest, waiter: Waiter, now: Now, decision: Decision[GroupRecord]
    ) -> None:
        is_leader = member.member_id == self.members.leader
        is_same = member.protocols == request.protocols
        if self.state is State.EMPTY:
            raise UnknownMemberId(f"{self.group_id} is empty")
        if is_same and (self.state is State.COMPLETING_REBALANCE or (self.state is State.STABLE and not is_leader)):
            # It only missed the answer; the generation stands.
            self._keep(member, request)
            self._expect(member, now, decision)
            decision.reply(waiter, self._join_answer(member))
            return
        self._let_join(member, request, waiter, decision)
        self._rebalance(now, decision)

    def _keep(self, member: ClassicMember, request: JoinRequest) -> None:
        member.client = request.client
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms

    def _let_join(
        self, member: ClassicMember, request: JoinRequest, waiter: Waiter, decision: Decision[GroupRecord]
    ) -> None:
        self._keep(member, request)
        member.protocols = request.protocols
        if member.joins is not None and member.joins != waiter:
            decision.reply(member.joins, RebalanceInProgress("the member has joined again meanwhile"))
        member.joins = waiter

    def _replace(
        self, member: ClassicMember, request: JoinRequest, waiter: Waiter, now: Now, decision: Decision[GroupRecord]
    ) -> None:
        """A static member came back: it takes its old place, without a rebalance where the generation can stand."""
        old_leader = self.members.leader
        fenced = FencedInstanceId(f"another member has taken over the instance id {member.instance_id}")
        self._refuse(member, fenced, decision)
        decision.cancel_timer(self._timer("session", member.member_id))
        self._syncing.discard(member.member_id)
        self.members.rename(member, request.new_member_id)
        self._keep(member, request)
        member.protocols = request.protocols
        can_stand = self.state is State.STABLE and self.members.vote() == self.protocol
        if not can_stand:
            member.joins = waiter
            self._expect(member, now, decision)
            self._rebalance(now, decision)
            return
        self._know_topics()
        self._expect(member, now, decision)
        decision.records.append(self.record())
        answer = self._join_answer(member)
        if request.may_skip_assignment:
            answer = answer._replace(skip_assignment=member.member_id == self.members.leader)
        else:
            # A client that cannot be told to skip must not believe that it leads: it would assign anew.
            answer = answer._replace(leader=old_leader or "", members=())
        decision.reply(waiter, answer)

    def _join_answer(self, member: ClassicMember) -> JoinAnswer:
        leader = self.members.leader or ""
        members = tuple(one.joined(self.protocol) for one in self.members) if member.member_id == leader else ()
        return JoinAnswer(member.member_id, self.generation, self.protocol_type, self.protocol, leader, members=members)

    # Rebalancing

    def _rebalance(self, now: Now, decision: Decision[GroupRecord]) -> None:
        """Somebody came, went or changed: gather everybody, or see whether everybody is there."""
        if self.state is State.PREPARING_REBALANCE:
            self._complete_if_joined(now, decision)
            return
        was_empty = self.state is State.EMPTY
        if self.state is State.COMPLETING_REBALANCE:
            for member in self.members:
                member.assignment = b""
                if member.syncs is not None:
                    decision.reply(member.syncs, RebalanceInProgress(f"{self.group_id} is rebalancing"))
                    member.syncs = None
        self._stop_awaiting_syncs(decision)
        self._enter(State.PREPARING_REBALANCE, now)
        self._is_initial, self._has_grown = was_empty, False
        if was_empty:
            delay_ms = self.settings.initial_rebalance_delay_ms
            self._initial_remaining_ms = max(self.members.rebalance_timeout_ms - delay_ms, 0)
            if delay_ms:
                decision.set_timer(self._timer("join"), now.monotonic_ms + delay_ms)
            else:
                self._complete_join(now, decision)
            return
        decision.set_timer(self._timer("join"), now.monotonic_ms + self.members.rebalance_timeout_ms)
        self._complete_if_joined(now, decision)

    def _complete_if_joined(self, now: Now, decision: Decision[GroupRecord]) -> None:
        if not self._is_initial and self.members.have_all_joined:
            self._complete_join(now, decision)

    def _on_join_timer(self, now: Now, decision: Decision[GroupRecord]) -> None:
        if self.state is not State.PREPARING_REBALANCE:
            return
        if self._is_initial and self._has_grown and self._initial_remaining_ms:
            delay_ms = min(self.settings.initial_rebalance_delay_ms, self._initial_remaining_ms)
            self._initial_remaining_ms -= delay_ms
            self._has_grown = False
            decision.set_timer(self._timer("join"), now.monotonic_ms + delay_ms)
            return
        self._complete_join(now, decision)

    def _complete_join(self, now: Now, decision: Decision[GroupRecord]) -> None:
        """Begin the next generation with those who joined; static members that did not stay in it."""
        decision.cancel_timer(self._timer("join"))
        for member in [one for one in self.members if one.joins is None and one.instance_id is None]:
            decision.cancel_timer(self._timer("session", member.member_id))
            self.members.remove(member)
        if self.members and not self.members.elect_joined_leader():
            # Only static members are left and none has come: they are given as long again.
            decision.set_timer(self._timer("join"), now.monotonic_ms + self.members.rebalance_timeout_ms)
            return
        self._is_initial = False
        self.generation += 1
        if not self.members:
            self.protocol = None
            self.subscribed_topics = None
            self._enter(State.EMPTY, now)
            decision.records.append(self.record())
            return
        self.protocol = self.members.vote()
        self._know_topics()
        self._enter(State.COMPLETING_REBALANCE, now)
        for member in self.members:
            member.is_new = False
            if member.joins is not None:
                decision.reply(member.joins, self._join_answer(member))
                member.joins = None
            self._expect(member, now, decision)
            self._syncing.add(member.member_id)
        decision.set_timer(self._timer("sync"), now.monotonic_ms + self.members.rebalance_timeout_ms)

    def _stop_awaiting_syncs(self, decision: Decision[GroupRecord]) -> None:
        if self._syncing or self.state is State.COMPLETING_REBALANCE:
            decision.cancel_timer(self._timer("sync"))
        self._syncing.clear()

    def _on_sync_timer(self, now: Now, decision: Decision[GroupRecord]) -> None:
        """Those who were told of the generation and never asked for their part are gone."""
        late = [self.members[member_id] for member_id in self._syncing if member_id in self.members]
        self._syncing.clear()
        if self.state in (State.COMPLETING_REBALANCE, State.STABLE) and late:
            for member in late:
                self._remove(member, decision)
            self._rebalance(now, decision)

    def _enter(self, state: State, now: Now) -> None:
        self.state = state
        self.state_since_ms = now.wall_ms

    def _know_topics(self) -> None:
        self.subscribed_topics = None
        if self.protocol is not None and self.protocol_type == CONSUMER_PROTOCOL:
            self.subscribed_topics = self.members.subscribed_topics(self.protocol)

    # Assigning

    def sync(self, request: SyncRequest, waiter: Waiter, now: Now) -> Decision[GroupRecord]:
        member = self.members.require(request.member_id, request.instance_id)
        self._check_generation(request.generation)
        if request.protocol_type is not None and request.protocol_type != self.protocol_type:
            raise InconsistentGroupProtocol(f"{self.group_id} is a group of type {self.protocol_type}")
        if request.protocol is not None and request.protocol != self.protocol:
            raise InconsistentGroupProtocol(f"{self.group_id} has chosen the protocol {self.protocol}")
        if self.state is State.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"{self.group_id} is rebalancing")
        decision = Decision[GroupRecord]()
        self._synced(member, decision)
        if self.state is State.STABLE:
            self._expect(member, now, decision)
            decision.reply(waiter, self._sync_answer(member))
            return decision
        if member.syncs is not None:
            decision.reply(member.syncs, RebalanceInProgress("the member has asked again meanwhile"))
        member.syncs = waiter
        if member.member_id == self.members.leader:
            self._assign(request, now, decision)
        return decision

    def _assign(self, request: SyncRequest, now: Now, decision: Decision[GroupRecord]) -> None:
        for member in self.members:
            member.assignment = request.assignments.get(member.member_id, b"")
        self._enter(State.STABLE, now)
        decision.records.append(self.record())
        for member in self.members:
            if member.syncs is not None:
                decision.reply(member.syncs, self._sync_answer(member))
                member.syncs = None
                self._expect(member, now, decision)

    def _synced(self, member: ClassicMember, decision: Decision[GroupRecord]) -> None:
        self._syncing.discard(member.member_id)
        if not self._syncing:
            decision.cancel_timer(self._timer("sync"))

    def _sync_answer(self, member: ClassicMember) -> SyncAnswer:
        return SyncAnswer(self.protocol_type, self.protocol, member.assignment)

    # Staying and leaving

    def heartbeat(self, request: HeartbeatRequest, waiter: Waiter, now: Now) -> Decision[GroupRecord]:
        member = self.members.require(request.member_id, request.instance_id)
        self._check_generation(request.generation)
        decision = Decision[GroupRecord]()
        self._expect(member, now, decision)
        is_rebalancing = self.state is State.PREPARING_REBALANCE
        decision.reply(waiter, RebalanceInProgress(f"{self.group_id} is rebalancing") if is_rebalancing else None)
        return decision

    def leave(self, request: LeaveRequest, waiter: Waiter, now: Now) -> Decision[GroupRecord]:
        decision = Decision[GroupRecord]()
        outcomes: list[tuple[LeavingMember, KafkaError | None]] = []
        has_changed = False
        for leaving in request.members:
            try:
                has_changed |= self._leave(leaving, decision)
                outcomes.append((leaving, None))
            except KafkaError as error:
                outcomes.append((leaving, error))
        if has_changed:
            self._rebalance(now, decision)
        decision.reply(waiter, LeaveAnswer(tuple(outcomes)))
        return decision

    def _leave(self, leaving: LeavingMember, decision: Decision[GroupRecord]) -> bool:
        if leaving.member_id in self.members.pending:
            if leaving.instance_id is not None:
                raise UnknownMemberId("a member that has not joined yet has no instance id")
            self.members.pending.remove(leaving.member_id)
            decision.cancel_timer(self._timer("pending", leaving.member_id))
            return True
        if leaving.member_id or leaving.instance_id is None:
            member = self.members.require(leaving.member_id, leaving.instance_id)
        else:
            # An administrator removes a static member by its instance alone.
            static = self.members.of_instance(leaving.instance_id)
            if static is None:
                raise UnknownMemberId(f"no member has the instance id {leaving.instance_id}")
            member = static
        decision.cancel_timer(self._timer("session", member.member_id))
        self._remove(member, decision)
        return True

    def _remove(self, member: ClassicMember, decision: Decision[GroupRecord]) -> None:
        self._refuse(member, UnknownMemberId(f"{member.member_id} was removed from the group"), decision)
        decision.cancel_timer(self._timer("session", member.member_id))
        self._syncing.discard(member.member_id)
        self.members.remove(member)

    def _refuse(self, member: ClassicMember, error: KafkaError, decision: Decision[GroupRecord]) -> None:
        for waiter in (member.joins, member.syncs):
            if waiter is not None:
                decision.reply(waiter, error)
        member.joins = member.syncs = None

    def _expect(self, member: ClassicMember, now: Now, decision: Decision[GroupRecord]) -> None:
        """The member was heard of; it has a session's time until the next."""
        at_ms = now.monotonic_ms + member.session_timeout_ms
        decision.set_timer(self._timer("session", member.member_id), at_ms)

    def on_timer(self, name: TimerName, now: Now) -> Decision[GroupRecord]:
        decision = Decision[GroupRecord]()
        match name[1:]:
            case ("downgraded-by-leaving",):
                decision = self.take_over(now, is_stable=False)
            case ("downgraded",):
                decision = self.take_over(now, is_stable=True)
            case ("join",):
                self._on_join_timer(now, decision)
            case ("sync",):
                self._on_sync_timer(now, decision)
            case ("pending", member_id) if member_id in self.members.pending:
                self.members.pending.remove(member_id)
                if self.state is State.PREPARING_REBALANCE:
                    self._complete_if_joined(now, decision)
            case ("session", member_id) if member_id in self.members:
                member = self.members[member_id]
                # Whoever waits for us is not expected to be heard of.
                if member.is_new or not member.is_waiting:
                    self._remove(member, decision)
                    self._rebalance(now, decision)
        return decision

    def _timer(self, *name: str) -> TimerName:
        return (self.group_id, *name)

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
            self._check_generation(generation)
        elif not is_transactional:
            raise UnknownMemberId(f"{self.group_id} has members: only they may commit")
        if self.state is State.COMPLETING_REBALANCE and not is_transactional:
            raise RebalanceInProgress(f"{self.group_id} is rebalancing")
        return member

    def committed(self, member: ClassicMember, now: Now, decision: Decision[GroupRecord]) -> None:
        """A commit shows that the member is alive."""
        if self.state in (State.STABLE, State.PREPARING_REBALANCE):
            self._expect(member, now, decision)

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
        if self.state is not State.EMPTY and self.protocol_type != CONSUMER_PROTOCOL:
            raise NonEmptyGroup(f"{self.group_id} has members")

    def is_subscribed_to(self, topic: str) -> bool:
        """A group whose subscriptions are not known may read anything."""
        if self.state is State.EMPTY:
            return False
        return self.subscribed_topics is None or topic in self.subscribed_topics

    @property
    def is_abandoned(self) -> bool:
        return self.state is State.EMPTY and not self.members.pending

    def check_delete(self) -> None:
        if self.members or self.state is not State.EMPTY:
            raise NonEmptyGroup(f"{self.group_id} has members")

    def tombstones(self) -> list[GroupRecord]:
        return [] if self.stored is None else [GroupRecord(ClassicGroupKey(self.group_id), None)]

    # Becoming a consumer group

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

    def give_up(self) -> Decision[GroupRecord]:
        """The group goes on as another: whoever waits is told to join again."""
        decision = Decision[GroupRecord]()
        for member in self.members:
            self._refuse(member, RebalanceInProgress(f"{self.group_id} changes its protocol"), decision)
            decision.cancel_timer(self._timer("session", member.member_id))
        for member_id in self.members.pending:
            decision.cancel_timer(self._timer("pending", member_id))
        decision.cancel_timer(self._timer("join"))
        decision.cancel_timer(self._timer("sync"))
        return decision

    def take_over(self, now: Now, *, is_stable: bool) -> Decision[GroupRecord]:
        """The group was a consumer group until now; its members are here, as the record says."""
        decision = self.loaded(now)
        if not is_stable:
            self._rebalance(now, decision)
        return decision

    # Looking

    def describe(self) -> ClassicDescription:
        is_stable = self.state is State.STABLE
        protocol = self.protocol if is_stable else None
        return ClassicDescription(
            self.group_id,
            self.state.value,
            self.protocol_type or "",
            protocol or "",
            tuple(
                member.described(protocol) if is_stable else member.described(None)._replace(assignment=b"")
                for member in self.members
            ),
            self.generation,
            self.members.leader,
        )

    def _check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"{self.group_id} is at generation {self.generation}, not {generation}")
