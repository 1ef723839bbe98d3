"""The step by which a member comes nearer to its target assignment (KIP-848).

Owns the rules that keep a partition with one member: a member first gives up what it is no longer assigned, and says
so by no longer listing it; only then does it move to the target's epoch; and it gets partitions that no member holds.
Must not know groups: who holds what is asked of the caller.
"""

from collections.abc import Callable
from enum import IntEnum

from lamina.coordinators.partitions_by_topic import (
    NO_PARTITIONS,
    difference,
    intersection,
    normal,
    overlap,
    union,
)
from lamina.coordinators.records.group_records import CurrentAssignmentValue, TopicIdPartitions
from lamina.errors import FencedMemberEpoch


class MemberState(IntEnum):
    """With the numbers that are stored."""

    STABLE = 0
    """Has what it is assigned at its epoch."""
    UNREVOKED_PARTITIONS = 1
    """Has to give something up before it can move on."""
    UNRELEASED_PARTITIONS = 2
    """Waits for partitions that others still hold."""
    UNKNOWN = 127
    """Written by a later version."""

    @classmethod
    def of(cls, stored: int) -> "MemberState":
        return cls(stored) if stored in _KNOWN_STATES else cls.UNKNOWN


_KNOWN_STATES = frozenset(MemberState)


def is_reconciled(current: CurrentAssignmentValue, target_epoch: int) -> bool:
    return current.state == MemberState.STABLE and current.member_epoch == target_epoch


def reconcile(
    current: CurrentAssignmentValue,
    target_epoch: int,
    target: TopicIdPartitions,
    owned: TopicIdPartitions | None,
    is_held: Callable[[bytes, int], bool],
) -> CurrentAssignmentValue:
    """What the member has next; the same value if it cannot move.

    ``owned`` is what the member says it has, ``None`` if it says nothing. ``is_held`` tells whether any member, this
    one included, holds a partition or has yet to give it up.
    """
    state = MemberState.of(current.state)
    if state is MemberState.STABLE and current.member_epoch == target_epoch:
        return current
    epoch = current.member_epoch
    if state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(owned, current.pending_revocation):
            return current
        epoch += 1
    elif state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise FencedMemberEpoch("the member is in an unknown state; it must give up its partitions and join again")
        epoch = target_epoch

    kept = intersection(current.assigned, target)
    to_revoke = difference(current.assigned, kept)
    if to_revoke and _still_owns(owned, to_revoke):
        return CurrentAssignmentValue(
            epoch, current.member_epoch, MemberState.UNREVOKED_PARTITIONS.value, kept, to_revoke
        )
    missing = difference(target, kept)
    free = normal(
        {
            topic_id: [partition for partition in some if not is_held(topic_id, partition)]
            for topic_id, some in missing.items()
        }
    )
    next_state = MemberState.STABLE if free == missing else MemberState.UNRELEASED_PARTITIONS
    return CurrentAssignmentValue(
        target_epoch, current.member_epoch, next_state.value, union(kept, free), NO_PARTITIONS
    )


def _still_owns(owned: TopicIdPartitions | None, revoked: TopicIdPartitions) -> bool:
    """A member that says nothing of what it owns has not changed it."""
    return owned is None or overlap(owned, revoked)
