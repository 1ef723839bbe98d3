"""How far copying is: partitions, bytes, time left.

A new replica has as much to copy as the leader's log is large. Logs grow and segments are deleted meanwhile, so bytes
are an estimate; that a partition is complete is what the cluster says. Must not know how sizes are asked for.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lamina.planning.moves import Move
from lamina.topic_partition import TopicPartition

SizesByBroker = Mapping[tuple[int, TopicPartition], int]
"""How large the replica of a partition on a broker is."""


@dataclass(frozen=True, slots=True)
class Progress:
    partitions: int
    completed: int
    total_bytes: int
    copied_bytes: int

    @property
    def is_complete(self) -> bool:
        return self.completed == self.partitions


def leader_sizes(leaders: Mapping[TopicPartition, int], sizes: SizesByBroker) -> dict[TopicPartition, int]:
    """How large each partition is at its leader, as far as that is known."""
    return {key: sizes[leader, key] for key, leader in leaders.items() if (leader, key) in sizes}


def progress_of(
    moves: Iterable[Move],
    under_way: Collection[TopicPartition],
    leaders: Mapping[TopicPartition, int],
    sizes: SizesByBroker,
) -> Progress:
    """``leaders`` says who leads each partition, as far as somebody does."""
    partitions = completed = total_bytes = copied_bytes = 0
    for move in moves:
        is_complete = move.key not in under_way
        partitions += 1
        completed += is_complete
        size = sizes.get((leaders.get(move.key, -1), move.key), 0)
        for broker_id in move.added:
            total_bytes += size
            copied_bytes += size if is_complete else min(sizes.get((broker_id, move.key), 0), size)
    return Progress(partitions, completed, total_bytes, copied_bytes)


def seconds_left(progress: Progress, copied_before: int, seconds: float) -> float | None:
    """As long as the rest takes at the pace since ``copied_before`` was copied; ``None`` while nothing tells."""
    copied = progress.copied_bytes - copied_before
    if copied <= 0 or seconds <= 0:
        return None
    return (progress.total_bytes - progress.copied_bytes) * seconds / copied
