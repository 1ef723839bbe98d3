"""Clusters for tests of plans: brokers with or without racks, and partitions somewhere on them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from lamina.planning.moves import Assignments, Replicas
from lamina.topic_partition import TopicPartition


@dataclass(frozen=True)
class Cluster:
    racks: Mapping[int, str | None]
    """The brokers that may keep replicas."""
    before: Assignments
    sizes: Mapping[TopicPartition, int]


@st.composite
def clusters(draw: st.DrawFn, *, racks: int = 0, same_factor: bool = False, leaving: int = 0) -> Cluster:
    """With ``racks`` of two brokers each, or two to six brokers without any; ``leaving`` brokers may keep nothing."""
    count = 2 * racks or draw(st.integers(2, 6))
    brokers = {one: f"rack-{one % racks}" if racks else None for one in range(1, count + 1)}
    largest = min(racks or count, 4)
    factor = draw(st.integers(1, largest))
    every = [*brokers, *range(count + 1, count + leaving + 1)]
    before: dict[TopicPartition, Replicas] = {}
    for topic in ("a", "b"):
        for index in range(draw(st.integers(0, 12))):
            size = factor if same_factor else draw(st.integers(1, largest))
            order = draw(st.permutations(every))
            before[topic, index] = tuple(order[:size])
    sizes = {key: draw(st.integers(0, 3)) for key in before}
    return Cluster(brokers, before, sizes)


def replica_counts(after: Assignments, brokers: Iterable[int]) -> list[int]:
    counts = Counter(one for replicas in after.values() for one in replicas)
    return [counts[one] for one in sorted(brokers)]


def leader_counts(after: Assignments, brokers: Iterable[int]) -> list[int]:
    counts = Counter(replicas[0] for replicas in after.values())
    return [counts[one] for one in sorted(brokers)]


def unevenness(counts: list[int]) -> int:
    return max(counts) - min(counts)
