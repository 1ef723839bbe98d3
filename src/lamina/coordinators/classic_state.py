"""The state of a classic group: its generation, its members, and the members that it waits for.

Owns the durable state (:attr:`ClassicState.stored`, changed by replay alone), the soft state, and the small steps that
every transition is made of. What is durable is the last generation that was completed; everything else is soft, and a
restart finds the group as it was then. Must not know when a transition is due.
"""

from dataclasses import dataclass
from enum import StrEnum

from lamina.coordinators.classic_members import ClassicMember, ClassicMembers, from_stored
from lamina.coordinators.decision import Decision, Now, TimerName
from lamina.coordinators.group_context import GroupSettings
from lamina.coordinators.group_requests import JoinResponse
from lamina.coordinators.records.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from lamina.coordinators.records.group_records import ClassicGroupKey, ClassicGroupValue, GroupRecord
from lamina.errors import IllegalGeneration, KafkaError, UnknownMemberId

GroupDecision = Decision[GroupRecord]


class State(StrEnum):
    """Kafka's names; a group that is gone is Dead, and is not here."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True)
class InitialRebalance:
    """The group was empty: members that join soon become part of its first generation."""

    remaining_ms: int
    """How much longer the group may wait for others, beyond the timer that runs."""
    has_grown: bool = False
    """A member joined since the timer was set."""


class ClassicState:
    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        self.group_id = group_id
        self.settings = settings
        self.stored: ClassicGroupValue | None = None
        """What the log says; changed by :meth:`replay` alone."""
        self.state = State.EMPTY
        self.state_since_ms = -1
        """Wall time of the last transition; -1 for a group that never had members."""
        self.protocol_type: str | None = None
        self.generation = 0
        self.protocol: str | None = None
        self.members = ClassicMembers()
        self.subscribed_topics: frozenset[str] | None = None
        """What the members read; ``None`` if they do not say so in a way that the broker understands."""
        self.initial: InitialRebalance | None = None
        self.syncing: set[str] = set()
        """Members that were told of the generation and have not asked for their assignment yet."""

    # Durable state

    def replay(self, value: ClassicGroupValue | None) -> None:
        self.stored = value

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

    def take_up(self, stored: ClassicGroupValue) -> None:
        """Be what the log says."""
        self.protocol_type = stored.protocol_type or None
        self.generation = stored.generation
        self.protocol = stored.protocol
        self.state_since_ms = stored.state_timestamp_ms
        for value in stored.members:
            self.members.add(from_stored(value, stored.protocol))
        if stored.leader is not None and stored.leader in self.members:
            self.members.leader = stored.leader
        self.state = State.STABLE if self.members else State.EMPTY
        self.update_subscribed_topics()

    # Steps

    def transition_to(self, state: State, now: Now) -> None:
        self.state = state
        self.state_since_ms = now.wall_ms

    def update_subscribed_topics(self) -> None:
        self.subscribed_topics = None
        if self.protocol is not None and self.protocol_type == CONSUMER_PROTOCOL_TYPE:
            self.subscribed_topics = self.members.subscribed_topics(self.protocol)

    def renew_session(self, member: ClassicMember, now: Now, decision: GroupDecision) -> None:
        """The member is alive; its session timeout starts again."""
        decision.set_timer(self.timer("session", member.member_id), now.monotonic_ms + member.session_timeout_ms)

    def has_synced(self, member: ClassicMember, decision: GroupDecision) -> None:
        self.syncing.discard(member.member_id)
        if not self.syncing:
            decision.cancel_timer(self.timer("sync"))

    def refuse(self, member: ClassicMember, error: KafkaError, decision: GroupDecision) -> None:
        """Whatever the member waits for, it does not come."""
        for waiter in (member.joins, member.syncs):
            if waiter is not None:
                decision.reply(waiter, error)
        member.joins = member.syncs = None

    def remove(self, member: ClassicMember, decision: GroupDecision) -> None:
        self.refuse(member, UnknownMemberId(f"{member.member_id} was removed from the group"), decision)
        decision.cancel_timer(self.timer("session", member.member_id))
        self.has_synced(member, decision)
        self.members.remove(member)

    def forget_pending(self, member_id: str, decision: GroupDecision) -> None:
        """An id that was given out will not be used, or is a member's from now on."""
        self.members.pending.discard(member_id)
        decision.cancel_timer(self.timer("pending", member_id))

    # Looking

    def join_response(self, member: ClassicMember) -> JoinResponse:
        leader = self.members.leader or ""
        members = tuple(one.joined(self.protocol) for one in self.members) if member.member_id == leader else ()
        return JoinResponse(
            member.member_id, self.generation, self.protocol_type, self.protocol, leader, members=members
        )

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"{self.group_id} is at generation {self.generation}, not {generation}")

    def timer(self, *name: str) -> TimerName:
        return (self.group_id, *name)
