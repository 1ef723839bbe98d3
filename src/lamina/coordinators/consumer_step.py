"""One decision of a consumer group in the making: the steps that requests and timers share.

Owns when the group's epoch grows, when the target assignment is recomputed, how a member is moved, replaced or
removed, and the timers that go with it. Members of both protocols take these steps. Must not know requests.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from lamina.coordinators.consumer_member import ConsumerMember
from lamina.coordinators.consumer_records import (
    current_record,
    group_record,
    group_tombstones,
    member_record,
    member_tombstones,
    partition_metadata_tombstone,
    regex_record,
    target_epoch_record,
    target_record,
)
from lamina.coordinators.consumer_state import ConsumerState
from lamina.coordinators.conversion import downgrade, may_downgrade
from lamina.coordinators.decision import Decision, Now, ResolveRegexes, TimerName
from lamina.coordinators.group_context import GroupContext
from lamina.coordinators.patterns import compile_pattern
from lamina.coordinators.reconciliation import is_reconciled, reconcile
from lamina.coordinators.records.group_records import GroupRecord, TopicIdPartitions
from lamina.coordinators.regex_resolution import RegexResolution
from lamina.coordinators.target_assignment import compute_target, known_topics, metadata_hash, preferred_assignor
from lamina.image.topic import Topic


@dataclass(slots=True)
class ConsumerSoftState:
    """What a consumer group knows and does not store."""

    resolution: RegexResolution = field(default_factory=RegexResolution)
    checked_topics: Mapping[str, Topic] | None = None
    """The topics of the image that the metadata hash was last compared with."""
    awaited_joins: set[str] = field(default_factory=set)
    """Members of the classic protocol that were told to join again and have a timer for it."""

    def check_topics(self, topics: Mapping[str, Topic]) -> None:
        self.checked_topics = topics


class ConsumerStep:
    def __init__(self, state: ConsumerState, soft: ConsumerSoftState, now: Now, context: GroupContext) -> None:
        self.decision: Decision[GroupRecord] = Decision(is_refusable=True)
        self._state = state
        self._soft = soft
        self._now = now
        self._context = context
        self._group_id = state.group_id
        self._records = self.decision.records

    def take_over(self, incumbent: ConsumerMember, member_id: str) -> ConsumerMember:
        """Put a new member in the place of a static one, with its target and its assignment."""
        member = incumbent.replaced_by(member_id)
        self.cancel_timers(incumbent)
        if incumbent.member_id != member_id:
            self._records += member_tombstones(self._group_id, incumbent.member_id)
        target = self._state.target_of(incumbent.member_id)
        self._records.append(member_record(self._group_id, member))
        self._records.append(target_record(self._group_id, member_id, target))
        self._records.append(current_record(self._group_id, member))
        return member

    def advance(
        self,
        member: ConsumerMember,
        updated: ConsumerMember,
        owned: TopicIdPartitions | None,
        may_describe: Callable[[str], bool] | None = None,
    ) -> ConsumerMember:
        """Take in what a member says now; move the group's epoch, the target and the member if that follows."""
        state = self._state
        must_bump = state.epoch == 0
        if updated.subscription != member.subscription:
            self._records.append(member_record(self._group_id, updated))
            must_bump |= updated.subscription.topics != member.subscription.topics
        if state.regex_subscribers or updated.regex is not None:
            must_bump |= self._follow_regex(member, updated, may_describe)
        epoch = state.epoch
        if must_bump or self._soft.checked_topics is not self._context.image.topics:
            epoch = self._check_metadata(must_bump, self._members_with(updated).values())
        target_epoch, target = state.target_epoch, self._target_before(updated)
        if epoch > target_epoch:
            target_epoch, target = epoch, self._retarget(epoch, updated)
        if is_reconciled(updated.current_assignment, target_epoch):
            return updated
        current_assignment = reconcile(updated.current_assignment, target_epoch, target, owned, state.is_held)
        if current_assignment == updated.current_assignment:
            return updated
        moved = updated._replace(current_assignment=current_assignment)
        self._records.append(current_record(self._group_id, moved))
        if member.is_revoking:
            self.decision.cancel_timer(self._rebalance_timer(member))
        self.set_rebalance_timer(moved)
        return moved

    def follow_metadata(self) -> int:
        """The group's epoch, for members whose heartbeats say nothing new: only topics may have changed."""
        if self._soft.checked_topics is self._context.image.topics:
            return self._state.epoch
        return self._check_metadata(False, self._state.members.values())

    def remove(self, leaving: Iterable[ConsumerMember]) -> None:
        """Take members out of the group. Without its last member of the consumer protocol, it may become classic."""
        leaving = tuple(leaving)
        gone = {member.member_id for member in leaving}
        for member in leaving:
            self.cancel_timers(member)
        remaining = {each.member_id: each for each in self._state.members.values() if each.member_id not in gone}
        if may_downgrade(leaving, remaining.values(), self._context.settings):
            self._become_classic(remaining, self._state.targets, "downgraded-by-leaving")
            return
        for member in leaving:
            self._records += member_tombstones(self._group_id, member.member_id)
        subscribed = {member.regex for member in remaining.values()}
        self._records += [
            regex_record(self._group_id, regex, None) for regex in self._state.regexes if regex not in subscribed
        ]
        self._check_metadata(True, remaining.values())

    def downgrade_by_replacing(self, incumbent: ConsumerMember, updated: ConsumerMember) -> bool:
        """Make the group classic if a static member's place, the last of the consumer protocol, was taken just now."""
        members = self._members_with(updated)
        if not may_downgrade((incumbent,), members.values(), self._context.settings):
            return False
        targets = {**self._state.targets, updated.member_id: self._state.target_of(incumbent.member_id)}
        self._become_classic(members, targets, "downgraded")
        return True

    def _become_classic(
        self, members: Mapping[str, ConsumerMember], targets: Mapping[str, TopicIdPartitions], event: str
    ) -> None:
        """Replace the group by a classic one, which a timer with the event's name then tells."""
        state, context, now = self._state, self._context, self._now
        for member in members.values():
            self.cancel_timers(member)
        self._records += group_tombstones(
            self._group_id, {**state.members, **members}, state.regexes, state.has_partition_metadata
        )
        self._records.append(
            downgrade(self._group_id, state.epoch, tuple(members.values()), targets, now, context.image)
        )
        self.decision.set_timer((self._group_id, event), now.monotonic_ms)

    # The group's epoch and its target

    def _members_with(self, updated: ConsumerMember) -> dict[str, ConsumerMember]:
        """All members after the one was updated, or took the place of the static member with its instance id."""
        members = dict(self._state.members)
        incumbent = self._state.static_member(updated.instance_id)
        if incumbent is not None and incumbent.member_id != updated.member_id:
            del members[incumbent.member_id]
        members[updated.member_id] = updated
        return members

    def _target_before(self, updated: ConsumerMember) -> TopicIdPartitions:
        incumbent = self._state.static_member(updated.instance_id)
        return self._state.target_of(updated.member_id if incumbent is None else incumbent.member_id)

    def _check_metadata(self, must_bump: bool, members: Iterable[ConsumerMember]) -> int:
        """The group's epoch, one more if it must be or if the subscribed topics are not what they were."""
        state, image = self._state, self._context.image
        self._later(partial(self._soft.check_topics, image.topics))
        found = metadata_hash(known_topics(_names(members, state), image))
        if not must_bump and found == state.metadata_hash:
            return state.epoch
        self._records.append(group_record(self._group_id, state.epoch + 1, found))
        if state.has_partition_metadata:
            self._records.append(partition_metadata_tombstone(self._group_id))
        return state.epoch + 1

    def _retarget(self, epoch: int, updated: ConsumerMember) -> TopicIdPartitions:
        """Compute the target for all; the records say what changed. Returns the member's own."""
        state, context = self._state, self._context
        members = self._members_with(updated)
        assigned = {**state.targets, updated.member_id: self._target_before(updated)}
        topics = known_topics(_names(members.values(), state), context.image)
        name = preferred_assignor(members.values(), context.settings.consumer_assignors)
        target = compute_target(members, assigned, state.regexes, topics, context.assignors[name])
        self._records += [
            target_record(self._group_id, member_id, partitions)
            for member_id, partitions in target.items()
            if state.targets.get(member_id) != partitions
        ]
        self._records.append(target_epoch_record(self._group_id, epoch))
        return target[updated.member_id]

    def _follow_regex(
        self, member: ConsumerMember, updated: ConsumerMember, may_describe: Callable[[str], bool] | None
    ) -> bool:
        """Drop an expression that no member subscribes to any more, and ask for those to be resolved that are due.

        Returns whether the group's epoch must grow: not for an expression that is still to be resolved.
        """
        state, context = self._state, self._context
        subscribed = frozenset(each.regex for each in self._members_with(updated).values() if each.regex is not None)
        must_bump = False
        if updated.regex != member.regex:
            if updated.regex is not None and not state.regex_subscribers[updated.regex]:
                compile_pattern(updated.regex)
            must_bump = updated.regex in state.regexes or member.regex in state.regexes
            if member.regex in state.regexes and member.regex not in subscribed:
                self._records.append(regex_record(self._group_id, member.regex, None))
        known = {regex: value for regex, value in state.regexes.items() if regex in subscribed}
        interval_ms = context.settings.consumer_regex_refresh_interval_ms
        if self._soft.resolution.is_due(subscribed, known, context.image_version, interval_ms, self._now):
            self._later(partial(self._soft.resolution.start, context.image_version, self._now))
            self.decision.effects.append(ResolveRegexes(self._group_id, tuple(sorted(subscribed)), may_describe))
        return must_bump

    def take_resolved(self, results: Mapping[str, Iterable[str]]) -> None:
        """Store the topics that expressions stand for; if they are others than before, the group's epoch grows."""
        state, resolution = self._state, self._soft.resolution
        if not results:
            self._later(partial(resolution.fail, self._now))
            return
        self._later(resolution.finish)
        values = {regex: resolution.value(topics) for regex, topics in results.items()}
        values = {regex: value for regex, value in values.items() if state.regex_subscribers[regex]}
        self._records += [regex_record(self._group_id, regex, value) for regex, value in values.items()]
        if all(regex in state.regexes and state.regexes[regex].topics == values[regex].topics for regex in values):
            return
        topics = {**state.regexes, **values}
        names = set().union(*(member.subscription.topics for member in state.members.values()))
        names = names.union(*(topics[regex].topics for regex in state.regex_subscribers if regex in topics))
        found = metadata_hash(known_topics(names, self._context.image))
        self._records.append(group_record(self._group_id, state.epoch + 1, found))

    # Soft state

    def await_join(self, member_id: str, timeout_ms: int) -> None:
        """A member of the classic protocol has this long to join again, from the first time that it is told to."""
        if member_id not in self._soft.awaited_joins:
            self.set_timer("join", member_id, timeout_ms)
            self._later(partial(self._soft.awaited_joins.add, member_id))

    def await_no_join(self, member_id: str) -> None:
        self.cancel_timer("join", member_id)
        self._later(partial(self._soft.awaited_joins.discard, member_id))

    def _later(self, change: Callable[[], None]) -> None:
        self.decision.soft_changes.append(change)

    # Timers

    def set_timer(self, kind: str, member_id: str, timeout_ms: int) -> None:
        self.decision.set_timer((self._group_id, kind, member_id), self._now.monotonic_ms + timeout_ms)

    def cancel_timer(self, kind: str, member_id: str) -> None:
        self.decision.cancel_timer((self._group_id, kind, member_id))

    def set_rebalance_timer(self, member: ConsumerMember) -> None:
        """A member of the consumer protocol has this long to give up what it was told to."""
        if member.is_revoking and not member.is_classic:
            timeout_ms = member.subscription.rebalance_timeout_ms
            self.decision.set_timer(self._rebalance_timer(member), self._now.monotonic_ms + timeout_ms)

    def cancel_timers(self, member: ConsumerMember) -> None:
        self.cancel_timer("session", member.member_id)
        if member.is_classic:
            self.cancel_timer("sync", member.member_id)
            self.await_no_join(member.member_id)
        elif member.is_revoking:
            self.decision.cancel_timer(self._rebalance_timer(member))

    def _rebalance_timer(self, member: ConsumerMember) -> TimerName:
        return (self._group_id, "rebalance", member.member_id, str(member.epoch))


def _names(members: Iterable[ConsumerMember], state: ConsumerState) -> set[str]:
    """The topics that these members subscribe to, by name or by an expression that was resolved."""
    names: set[str] = set()
    for member in members:
        names.update(member.subscription.topics)
        if member.regex in state.regexes:
            names.update(state.regexes[member.regex].topics)
    return names
