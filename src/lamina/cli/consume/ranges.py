"""From where to where each partition is read, as the logs are when ``consume`` begins.

Must not know how records are read or printed.
"""

from lamina.cli.consume.bounds import LATEST, Bound, Kind, resolve
from lamina.cli.outcome import warn
from lamina.client import topic as topics
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, no_topic
from lamina.client.partition_range import PartitionRange


def ranges_of(
    cluster: Cluster,
    topic: str,
    partitions: tuple[int, ...],
    from_: Bound,
    to: Bound | None,
    follow: bool,
    read_committed: bool,
) -> list[PartitionRange]:
    """Raises ClientError where the topic or a partition is not there."""
    admin = cluster.admin()
    found = topics.find(admin, topic)
    if found is None:
        raise no_topic(topic)
    if unknown := set(partitions).difference(found.partitions):
        raise ClientError(
            f"topic {topic} has no partition {min(unknown)}; it has {len(found.partitions)}, counted from 0"
        )
    chosen = sorted(set(partitions)) or found.partitions
    logs = topics.Offsets(admin, topic, chosen, read_committed=read_committed)
    first, end = logs.first(), logs.end()
    starts = resolve(from_, first, end, logs)
    stops = None if follow and to is None else resolve(to or LATEST, first, end, logs)
    if from_.kind is Kind.OFFSET and not follow and chosen and all(starts[one] > end[one] for one in chosen):
        last = max(chosen, key=lambda one: end[one])
        warn(f"nothing is at offset {from_.number} yet: partition {last} ends at {end[last]}")
    ranges: list[PartitionRange] = []
    for partition in chosen:
        wanted = starts[partition]
        if from_.kind is Kind.OFFSET and wanted < first[partition]:
            warn(f"partition {partition} begins at offset {first[partition]}: earlier records are gone")
        start = min(max(wanted, first[partition]), end[partition])
        stop = None if stops is None else stops[partition]
        if stop is not None and not follow:
            stop = min(stop, end[partition])
        ranges.append(PartitionRange(partition, start, None if stop is None else max(stop, start), wanted))
    return ranges
