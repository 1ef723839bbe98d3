"""ListOffsets: where a partition begins and ends, and where it is at a time.

Owns the request for one partition and the reading of its response. Must not know who leads what.
"""

from typing import Any, NamedTuple

from lamina.errors import MalformedResponse
from lamina.peer.call import MessageCall
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


class ListedOffset(NamedTuple):
    offset: int
    """-1 where no record is as young as the timestamp."""
    timestamp_ms: int
    """Of that record; -1 for an offset that was not asked for by a time."""
    leader_epoch: int


def list_one(
    topic: str, partition: int, leader_epoch: int, timestamp_ms: int, isolation_level: int, replica_id: int = _CONSUMER
) -> MessageCall:
    asked = {"partition_index": partition, "current_leader_epoch": leader_epoch, "timestamp": timestamp_ms}
    first_version = _FIRST_WITH_EARLIEST_LOCAL if timestamp_ms == EARLIEST_LOCAL else _VERSIONS.start
    return MessageCall(
        LIST_OFFSETS,
        range(first_version, _VERSIONS.stop),
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[{"name": topic, "partitions": [asked]}],
    )


def partition_listed(response: Any) -> Any:
    """The one partition that was asked for."""
    partitions = [one for topic in response.topics for one in topic.partitions]
    if len(partitions) != 1:
        raise MalformedResponse("a ListOffsets response is not about the one partition that was asked for")
    return partitions[0]


def listed(partition: Any) -> ListedOffset:
    return ListedOffset(int(partition.offset), int(partition.timestamp), int(partition.leader_epoch))
