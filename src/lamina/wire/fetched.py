"""Fetch responses v4-18, read by hand: the records stay where they were received.

Owns the way back from the bytes that `fetch_response` writes. The records of a partition are a view into the frame,
so that megabytes are not copied to be looked at; keeping a view keeps the whole frame. Tagged fields that a
version does not know are skipped. Must not know sessions, nor what is inside a batch.
"""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from lamina.wire.api_keys import FETCH
from lamina.wire.fetch_request import FIRST_FLEXIBLE, FIRST_WITH_SESSIONS, FIRST_WITH_TOPIC_IDS
from lamina.wire.fetch_response import (
    FIRST_WITH_LOG_START,
    FIRST_WITH_NODE_ENDPOINTS,
    FIRST_WITH_PREFERRED_REPLICA,
    AbortedTransaction,
    DivergingEpoch,
    PartitionFetched,
    TopicFetched,
)
from lamina.wire.headers import parse_response_header
from lamina.wire.leaders import CurrentLeader, NodeEndpoint, parse_current_leader, parse_node_endpoints
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

_DIVERGING_EPOCH_TAG = 0
_CURRENT_LEADER_TAG = 1
_NODE_ENDPOINTS_TAG = 0

_unpack_int32 = Struct(">i").unpack_from
_unpack_session = Struct(">hi").unpack_from
_unpack_offsets = Struct(">ihqqq").unpack_from
_unpack_offsets_v4 = Struct(">ihqq").unpack_from
_OFFSETS_BYTES = 30
_OFFSETS_V4_BYTES = 22
_unpack_aborted = Struct(">qq").unpack_from
_ABORTED_BYTES = 16
_unpack_diverging_epoch = Struct(">iq").unpack_from


class FetchResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    session_id: int
    topics: list[TopicFetched]
    node_endpoints: tuple[NodeEndpoint, ...]


def parse_fetch_response(api_version: int, frame: Buffer) -> tuple[int, FetchResponse]:
    """(correlation id, the response); its records are views into the frame. Raises `MalformedRequest`."""
    correlation_id, at = parse_response_header(FETCH, api_version, frame)
    data = memoryview(frame)
    parse = _parse_flexible if api_version >= FIRST_FLEXIBLE else _parse_legacy
    try:
        response, at = parse(api_version, data, at)
        if at > len(data):
            raise IndexError
        if at < len(data):
            raise MalformedRequest(f"{len(data) - at} bytes follow its last field.")
    except UNREADABLE as error:
        raise malformed(f"FetchResponse v{api_version}", error) from None
    return correlation_id, response


def _parse_flexible(api_version: int, data: memoryview, at: int) -> tuple[FetchResponse, int]:
    budget = [MAX_ELEMENTS]
    (throttle_time_ms,) = _unpack_int32(data, at)
    error_code, session_id = _unpack_session(data, at + 4)
    count, at = read_uvarint(data, at + 10)
    topics = []
    for _ in range(spend(count - 1, budget)):
        name = topic_id = None
        if api_version >= FIRST_WITH_TOPIC_IDS:
            topic_id, at = read_uuid(data, at)
        else:
            name, at = read_compact_string(data, at)
            name = present(name)
        count, at = read_uvarint(data, at)
        partitions = []
        for _ in range(spend(count - 1, budget)):
            partition, at = _read_partition(data, at, budget)
            partitions.append(partition)
        at = skip_tags(data, at, budget)
        topics.append(TopicFetched(name, topic_id, partitions))
    tags, at = read_tags(data, at, budget)
    endpoints: tuple[NodeEndpoint, ...] = ()
    if api_version >= FIRST_WITH_NODE_ENDPOINTS and _NODE_ENDPOINTS_TAG in tags:
        endpoints = parse_node_endpoints(tags[_NODE_ENDPOINTS_TAG], budget)
    return FetchResponse(throttle_time_ms, error_code, session_id, topics, endpoints), at


def _read_partition(data: memoryview, at: int, budget: list[int]) -> tuple[PartitionFetched, int]:
    index, error_code, high_watermark, last_stable, log_start = _unpack_offsets(data, at)
    count, at = read_uvarint(data, at + _OFFSETS_BYTES)
    aborted = None
    if count > 0:
        aborted, at = _read_aborted(data, at, spend(count - 1, budget), lambda end: skip_tags(data, end, budget))
    (preferred,) = _unpack_int32(data, at)
    size, at = read_uvarint(data, at + 4)
    records = None
    if size > 0:
        records = _slice(data, at, size - 1)
        at += size - 1
    diverging, leader = None, None
    if data[at] == 0:
        at += 1
    else:
        tags, at = read_tags(data, at, budget)
        diverging, leader = _read_hints(tags)
    fetched = PartitionFetched(
        index, error_code, high_watermark, last_stable, log_start, records, aborted, preferred, diverging, leader
    )
    return fetched, at


def _read_hints(tags: dict[int, bytes]) -> tuple[DivergingEpoch | None, CurrentLeader | None]:
    diverging = None
    if _DIVERGING_EPOCH_TAG in tags:
        diverging = DivergingEpoch(*_unpack_diverging_epoch(tags[_DIVERGING_EPOCH_TAG]))
    leader = parse_current_leader(tags[_CURRENT_LEADER_TAG]) if _CURRENT_LEADER_TAG in tags else None
    return diverging, leader


def _parse_legacy(api_version: int, data: memoryview, at: int) -> tuple[FetchResponse, int]:
    budget = [MAX_ELEMENTS]
    error_code = session_id = 0
    (throttle_time_ms,) = _unpack_int32(data, at)
    at += 4
    if api_version >= FIRST_WITH_SESSIONS:
        error_code, session_id = _unpack_session(data, at)
        at += 6
    (count,) = _unpack_int32(data, at)
    at += 4
    topics = []
    for _ in range(spend(count, budget)):
        name, at = read_string(data, at)
        (count,) = _unpack_int32(data, at)
        at += 4
        partitions = []
        for _ in range(spend(count, budget)):
            partition, at = _read_legacy_partition(api_version, data, at, budget)
            partitions.append(partition)
        topics.append(TopicFetched(present(name), None, partitions))
    return FetchResponse(throttle_time_ms, error_code, session_id, topics, ()), at


def _read_legacy_partition(
    api_version: int, data: memoryview, at: int, budget: list[int]
) -> tuple[PartitionFetched, int]:
    log_start = -1
    if api_version >= FIRST_WITH_LOG_START:
        index, error_code, high_watermark, last_stable, log_start = _unpack_offsets(data, at)
        at += _OFFSETS_BYTES
    else:
        index, error_code, high_watermark, last_stable = _unpack_offsets_v4(data, at)
        at += _OFFSETS_V4_BYTES
    (count,) = _unpack_int32(data, at)
    at += 4
    aborted = None
    if count != -1:
        aborted, at = _read_aborted(data, at, spend(count, budget), lambda end: end)
    preferred = -1
    if api_version >= FIRST_WITH_PREFERRED_REPLICA:
        (preferred,) = _unpack_int32(data, at)
        at += 4
    (size,) = _unpack_int32(data, at)
    at += 4
    records = None
    if size != -1:
        records = _slice(data, at, size)
        at += size
    fetched = PartitionFetched(index, error_code, high_watermark, last_stable, log_start, records, aborted, preferred)
    return fetched, at


def _read_aborted(
    data: memoryview, at: int, count: int, skip_rest: Callable[[int], int]
) -> tuple[list[AbortedTransaction], int]:
    """``skip_rest``: where the next one starts, given where the known fields of one end."""
    aborted = []
    for _ in range(count):
        aborted.append(AbortedTransaction(*_unpack_aborted(data, at)))
        at = skip_rest(at + _ABORTED_BYTES)
    return aborted, at


def _slice(data: memoryview, at: int, size: int) -> memoryview:
    if size < 0:
        raise MalformedRequest(f"a field has length {size}.")
    if at + size > len(data):
        raise IndexError
    return data[at : at + size]
