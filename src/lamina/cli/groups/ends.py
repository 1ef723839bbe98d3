"""Where the partitions that a group reads begin, end, or were at a time.

Must not know groups.
"""

from collections.abc import Iterable

from lamina.cli.attempts import Attempts
from lamina.cli.topics.descriptions import LATEST, describe_all, find_offsets
from lamina.client.cluster import Cluster

Partition = tuple[str, int]


def offsets_at(cluster: Cluster, partitions: Iterable[Partition], at: int, attempts: Attempts) -> dict[Partition, int]:
    """At a time or at one of the places; -1 where no record is that late. Without what could not be asked."""
    wanted = set(partitions)
    topics = describe_all(cluster, sorted({topic for topic, _ in wanted}), attempts)
    return {
        (topic.name, number): found.offset
        for topic in topics
        for number, found in find_offsets(cluster, topic, at, attempts).items()
        if (topic.name, number) in wanted
    }


def latest_offsets(cluster: Cluster, partitions: Iterable[Partition], attempts: Attempts) -> dict[Partition, int]:
    return offsets_at(cluster, partitions, LATEST, attempts)
