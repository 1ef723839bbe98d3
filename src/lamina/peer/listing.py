"""ListOffsets: where a partition begins and ends, and where it is at a time.

Owns the request, for one partition or for many, and the reading of its response. Must not know who leads what.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.errors import MalformedResponse
from lamina.peer.call import MessageCall
from lamina.records.batch import NO_LEADER_EPOCH
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import LIST_OFFSETS

LATEST = -1
"""The timestamp that asks for the end: high watermark or, of committed records, last stable offset. A replica is told
the log end."""
EARLIEST = -2
"""The timestamp that asks for the log start offset."""
EARLIEST_LOCAL = -4
"""The timestamp that asks for the first offset that the leader has on its own disk, not in tiered storage (KIP-405)."""

_VERSIONS = range(4, 10)
_FIRST_WITH_EARLIEST_LOCAL = 8
_CONSUMER = -1
DEBUGGING_CONSUMER = -2
"""Followers answer it too, with their log end (R37)."""


class ListedOffset(NamedTuple):
    offset: int
    """-1 where no record is as young as the timestamp."""
    timestamp_ms: int
    """Of that record; -1 for an offset that was not asked for by a time."""
    leader_epoch: int


def list_one(
    topic: str, partition: int, leader_epoch: int, timestamp_ms: int, isolation_level: int, replica_id: int = _CONSUMER
) -> MessageCall:
    first_version = _FIRST_WITH_EARLIEST_LOCAL if timestamp_ms == EARLIEST_LOCAL else _VERSIONS.start
    topics = {topic: [_asked(partition, leader_epoch, timestamp_ms)]}
    return _call(range(first_version, _VERSIONS.stop), topics, isolation_level, replica_id)


def list_many(
    timestamps_ms: Mapping[TopicPartition, int], isolation_level: int, replica_id: int = _CONSUMER
) -> MessageCall:
    """Of one broker, whichever leader epochs it knows; not for `EARLIEST_LOCAL`."""
    topics: defaultdict[str, list[dict[str, int]]] = defaultdict(list)
    for (topic, partition), timestamp_ms in timestamps_ms.items():
        topics[topic].append(_asked(partition, NO_LEADER_EPOCH, timestamp_ms))
    return _call(_VERSIONS, topics, isolation_level, replica_id)


def _asked(partition: int, leader_epoch: int, timestamp_ms: int) -> dict[str, int]:
    return {"partition_index": partition, "current_leader_epoch": leader_epoch, "timestamp": timestamp_ms}


def _call(
    versions: range, topics: Mapping[str, list[dict[str, int]]], isolation_level: int, replica_id: int
) -> MessageCall:
    return MessageCall(
        LIST_OFFSETS,
        versions,
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[{"name": name, "partitions": partitions} for name, partitions in topics.items()],
    )


def partition_listed(response: Any) -> Any:
    """The one partition that was asked for."""
    partitions = [one for topic in response.topics for one in topic.partitions]
    if len(partitions) != 1:
        raise MalformedResponse("a ListOffsets response is not about the one partition that was asked for")
    return partitions[0]


def listed(partition: Any) -> ListedOffset:
    return ListedOffset(int(partition.offset), int(partition.timestamp), int(partition.leader_epoch))


def offsets_listed(response: Any) -> dict[TopicPartition, int]:
    """Of those partitions of which the broker told one."""
    return {
        (str(topic.name), int(one.partition_index)): int(one.offset)
        for topic in response.topics
        for one in topic.partitions
        if not one.error_code
    }
