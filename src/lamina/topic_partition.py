"""What every room calls a partition: the name of its topic and its number. Must not know anything else."""

from collections import defaultdict
from collections.abc import Iterable

TopicPartition = tuple[str, int]


def name_of(partition: TopicPartition) -> str:
    """As logs, directories and people name it."""
    return f"{partition[0]}-{partition[1]}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions of each topic, as most requests want them; both in the order given."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in partitions:
        found[topic].append(index)
    return dict(found)
