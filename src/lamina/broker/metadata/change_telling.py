"""What people hear of the controller's changes: elections are counted, unclean ones and reassignments named in the log.

Must not decide anything.
"""

import logging

from lamina.broker.counters import ReplicationCounters
from lamina.image.diff import Changes, PartitionChanged
from lamina.image.topic import NO_LEADER

logger = logging.getLogger(__name__)

_MOST_NAMED = 20
"""Of more reassignments in one change only these are named."""


def tell_changes(counters: ReplicationCounters, changes: Changes) -> None:
    _count_elections(counters, changes)
    _log_reassignments(changes)


def _count_elections(counters: ReplicationCounters, changes: Changes) -> None:
    """Partitions that had a state and have another leader, or the same one in another epoch; the first does not count.

    One was unclean where the new leader was not in sync and has to say that it goes on from what it has. Another may
    have joined the in-sync set by the same change.
    """
    for change in changes.leaders_moved:
        if change.new.leader != NO_LEADER and change.old.isr:
            counters.leader_elections += 1
            if change.new.is_recovering and change.new.leader not in change.old.isr:
                counters.unclean_leader_elections += 1
                logger.warning(
                    "unclean election: %s-%d is now led by broker %d, which may lack committed records",
                    change.topic.name,
                    change.index,
                    change.new.leader,
                )


def _log_reassignments(changes: Changes) -> None:
    reassigned = [change for change in changes.partitions_changed if change.is_assignment_changed]
    for change in reassigned[:_MOST_NAMED]:
        logger.info("%s-%d %s", change.topic.name, change.index, _what_happened(change))
    if len(reassigned) > _MOST_NAMED:
        logger.info("the assignments of %d more partitions changed", len(reassigned) - _MOST_NAMED)


def _what_happened(change: PartitionChanged) -> str:
    old, new = change.old, change.new
    if new.is_reassigning:
        return f"is being reassigned from {list(new.origin)} to {list(new.target)}"
    if old.is_reassigning and set(new.replicas) == set(old.origin):
        return f"keeps its replicas {list(new.replicas)}: the reassignment to {list(old.target)} was cancelled"
    return f"has the replicas {list(new.replicas)} now"
