"""Fetch requests v4-18, read by hand.

Owns their layout, which grew field by field: what a version does not carry has the value that means "none".
Topics are named up to v12 and have ids from v13. The replica's id is a field up to v14 and a tagged field
from v15 (KIP-903); the tags for a cluster id, for a replica's directory id (v17) and for its high watermark (v18,
KIP-1166) are of no use to this broker and skipped, like unknown tags. Must not know sessions or partitions.
"""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from lamina.wire.parser import read_uuid
from lamina.wire.primitives import (
    MAX_ELEMENTS,
    UNREADABLE,
    Buffer,
    MalformedRequest,
    malformed,
    present,
    read_compact_string,
    read_string,
    read_tags,
    read_uvarint,
    skip_tags,
    spend,
)

VERSIONS = range(4, 19)
FIRST_WITH_SESSIONS = 7
FIRST_FLEXIBLE = 12
FIRST_WITH_TOPIC_IDS = 13
_FIRST_WITH_LOG_START = 5
_FIRST_WITH_LEADER_EPOCH = 9
_FIRST_WITH_RACK = 11
_FIRST_WITH_REPLICA_STATE = 15

NO_REPLICA_ID = -1
"""The replica id of a consumer."""

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
"""Isolation levels; ListOffsets has the same ones."""

REPLICA_STATE_TAG = 1

_new = tuple.__new__
"""A named tuple in half the time that its own `__new__` takes."""

_unpack_int32 = Struct(">i").unpack_from
_unpack_int32_pair = Struct(">ii").unpack_from
_unpack_limits = Struct(">iiib").unpack_from
_LIMITS_BYTES = 13
_unpack_replica_state = Struct(">iq").unpack_from
_unpack_partition = Struct(">iiqiqi").unpack_from
_PARTITION_BYTES = 32
_PARTITION_V4 = Struct(">iqi")
_PARTITION_V5 = Struct(">iqqi")
_PARTITION_V9 = Struct(">iiqqi")


class FetchPartition(NamedTuple):
    """Where one partition is to be read from. -1 stands for "none"."""

    partition_index: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchTopic(NamedTuple):
    """A topic by its name (up to v12) or by its id (from v13)."""

    name: str | None
    topic_id: UUID | None
    partitions: list[FetchPartition]


class ForgottenTopic(NamedTuple):
    """Partitions that leave an incremental session."""

    name: str | None
    topic_id: UUID | None
    partitions: tuple[int, ...]


class FetchRequest(NamedTuple):
    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten_topics: list[ForgottenTopic]
    rack_id: str


def parse_fetch_request(api_version: int, body: Buffer) -> FetchRequest:
    """The request in these bytes; nothing of it refers to them afterwards. Raises `MalformedRequest`."""
    data = bytes(body)
    parse = _parse_flexible if api_version >= FIRST_FLEXIBLE else _parse_legacy
    try:
        request, at = parse(api_version, data)
        if at > len(data):
            raise IndexError
        if at < len(data):
            raise MalformedRequest(f"{len(data) - at} bytes follow its last field.")
    except UNREADABLE as error:
        raise malformed(f"FetchRequest v{api_version}", error) from None
    return request


def _parse_flexible(api_version: int, data: bytes) -> tuple[FetchRequest, int]:
    at = 0
    budget = [MAX_ELEMENTS]
    replica_id = replica_epoch = NO_REPLICA_ID
    if api_version < _FIRST_WITH_REPLICA_STATE:
        (replica_id,) = _unpack_int32(data)
        at = 4
    max_wait_ms, min_bytes, max_bytes, isolation_level = _unpack_limits(data, at)
    session_id, session_epoch = _unpack_int32_pair(data, at + _LIMITS_BYTES)
    read_topic = _read_topic_id if api_version >= FIRST_WITH_TOPIC_IDS else _read_compact_topic_name
    at += _LIMITS_BYTES + 8
    topics, at = _read_topics(data, at, read_topic, budget)
    forgotten, at = _read_forgotten(data, at, read_topic, budget)
    rack_id, at = read_compact_string(data, at)
    if data[at] == 0:
        at += 1
    else:
        tags, at = read_tags(data, at, budget)
        if api_version >= _FIRST_WITH_REPLICA_STATE and REPLICA_STATE_TAG in tags:
            replica_id, replica_epoch = _unpack_replica_state(tags[REPLICA_STATE_TAG])
    request = FetchRequest(
        replica_id,
        replica_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id or "",
    )
    return request, at


_ReadTopic = Callable[[bytes, int], tuple[str | None, UUID | None, int]]


def _read_topic_id(data: bytes, at: int) -> tuple[None, UUID | None, int]:
    topic_id, at = read_uuid(data, at)
    return None, topic_id, at


def _read_compact_topic_name(data: bytes, at: int) -> tuple[str, None, int]:
    name, at = read_compact_string(data, at)
    return present(name), None, at


def _read_topics(data: bytes, at: int, read_topic: _ReadTopic, budget: list[int]) -> tuple[list[FetchTopic], int]:
    count, at = read_uvarint(data, at)
    topics = []
    for _ in range(spend(count - 1, budget)):
        name, topic_id, at = read_topic(data, at)
        count, at = read_uvarint(data, at)
        partitions = []
        for _ in range(spend(count - 1, budget)):
            partitions.append(_new(FetchPartition, _unpack_partition(data, at)))
            at += _PARTITION_BYTES
            at = at + 1 if data[at] == 0 else skip_tags(data, at, budget)
        at = skip_tags(data, at, budget)
        topics.append(FetchTopic(name, topic_id, partitions))
    return topics, at


def _read_forgotten(
    data: bytes, at: int, read_topic: _ReadTopic, budget: list[int]
) -> tuple[list[ForgottenTopic], int]:
    count, at = read_uvarint(data, at)
    forgotten = []
    for _ in range(spend(count - 1, budget)):
        name, topic_id, at = read_topic(data, at)
        count, at = read_uvarint(data, at)
        partitions, at = _read_indexes(data, at, spend(count - 1, budget))
        at = skip_tags(data, at, budget)
        forgotten.append(ForgottenTopic(name, topic_id, partitions))
    return forgotten, at


def _read_indexes(data: bytes, at: int, count: int) -> tuple[tuple[int, ...], int]:
    end = at + 4 * count
    if end > len(data):
        raise IndexError
    return Struct(f">{count}i").unpack_from(data, at), end


def _parse_legacy(api_version: int, data: bytes) -> tuple[FetchRequest, int]:
    (replica_id,) = _unpack_int32(data)
    max_wait_ms, min_bytes, max_bytes, isolation_level = _unpack_limits(data, 4)
    at = 4 + _LIMITS_BYTES
    budget = [MAX_ELEMENTS]
    session_id, session_epoch = 0, -1
    if api_version >= FIRST_WITH_SESSIONS:
        session_id, session_epoch = _unpack_int32_pair(data, at)
        at += 8
    topics, at = _read_legacy_topics(api_version, data, at, budget)
    forgotten: list[ForgottenTopic] = []
    if api_version >= FIRST_WITH_SESSIONS:
        forgotten, at = _read_legacy_forgotten(data, at, budget)
    rack_id = None
    if api_version >= _FIRST_WITH_RACK:
        rack_id, at = read_string(data, at)
    request = FetchRequest(
        replica_id,
        -1,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id or "",
    )
    return request, at


def _read_legacy_topics(api_version: int, data: bytes, at: int, budget: list[int]) -> tuple[list[FetchTopic], int]:
    read_partition, partition_bytes = _legacy_partition(api_version)
    (count,) = _unpack_int32(data, at)
    at += 4
    topics = []
    for _ in range(spend(count, budget)):
        name, at = read_string(data, at)
        (count,) = _unpack_int32(data, at)
        at += 4
        partitions = []
        for _ in range(spend(count, budget)):
            partitions.append(read_partition(data, at))
            at += partition_bytes
        topics.append(FetchTopic(present(name), None, partitions))
    return topics, at


def _legacy_partition(api_version: int) -> tuple[Callable[[bytes, int], FetchPartition], int]:
    """How a partition is read, and the bytes that it takes."""
    if api_version < _FIRST_WITH_LOG_START:
        return _read_partition_v4, _PARTITION_V4.size
    if api_version < _FIRST_WITH_LEADER_EPOCH:
        return _read_partition_v5, _PARTITION_V5.size
    return _read_partition_v9, _PARTITION_V9.size


def _read_partition_v4(data: bytes, at: int) -> FetchPartition:
    index, fetch_offset, max_bytes = _PARTITION_V4.unpack_from(data, at)
    return FetchPartition(index, -1, fetch_offset, -1, -1, max_bytes)


def _read_partition_v5(data: bytes, at: int) -> FetchPartition:
    index, fetch_offset, log_start_offset, max_bytes = _PARTITION_V5.unpack_from(data, at)
    return FetchPartition(index, -1, fetch_offset, -1, log_start_offset, max_bytes)


def _read_partition_v9(data: bytes, at: int) -> FetchPartition:
    index, leader_epoch, fetch_offset, log_start_offset, max_bytes = _PARTITION_V9.unpack_from(data, at)
    return FetchPartition(index, leader_epoch, fetch_offset, -1, log_start_offset, max_bytes)


def _read_legacy_forgotten(data: bytes, at: int, budget: list[int]) -> tuple[list[ForgottenTopic], int]:
    (count,) = _unpack_int32(data, at)
    at += 4
    forgotten = []
    for _ in range(spend(count, budget)):
        name, at = read_string(data, at)
        (count,) = _unpack_int32(data, at)
        partitions, at = _read_indexes(data, at + 4, spend(count, budget))
        forgotten.append(ForgottenTopic(present(name), None, partitions))
    return forgotten, at
