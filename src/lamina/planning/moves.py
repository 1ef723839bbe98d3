"""What a plan changes: the replicas of partitions before and after.

Must not know why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lamina.topic_partition import TopicPartition

Replicas = tuple[int, ...]
"""Broker ids; the first one is the preferred leader."""

Assignments = Mapping[TopicPartition, Replicas]


@dataclass(frozen=True, slots=True)
class Move:
    key: TopicPartition
    before: Replicas
    after: Replicas

    @property
    def added(self) -> Replicas:
        """The brokers that copy the partition."""
        return tuple(one for one in self.after if one not in self.before)

    @property
    def removed(self) -> Replicas:
        return tuple(one for one in self.before if one not in self.after)

    def copied_bytes(self, sizes: Mapping[TopicPartition, int]) -> int:
        """How much is copied, of a partition that is as large as ``sizes`` says; of one that is not in it, nothing."""
        return len(self.added) * sizes.get(self.key, 0)


def moves_between(before: Assignments, after: Assignments) -> list[Move]:
    """The partitions whose replicas or their order change, sorted."""
    return [Move(key, before[key], after[key]) for key in sorted(after) if before[key] != after[key]]


def copied_bytes(moves: Iterable[Move], sizes: Mapping[TopicPartition, int]) -> int:
    return sum(move.copied_bytes(sizes) for move in moves)
