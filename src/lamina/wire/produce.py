"""Produce, by hand: requests v3-13 read in place, answers v3-13 written without a message in between.

Owns the layout of these two. The records of a partition are a view into the frame, never a copy; whoever
keeps them longer than the frame must copy. Topics are named up to v12 and have ids from v13. Tagged fields are
skipped: these versions know none in a request. Must not know what is inside a batch.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from lamina.wire.api_keys import PRODUCE
from lamina.wire.encoder import uuid_bytes
from lamina.wire.headers import start_response
from lamina.wire.leaders import CurrentLeader, NodeEndpoint, current_leader_field, write_endpoint_tags
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
    read_uvarint,
    skip_tags,
    spend,
    write_compact_string,
    write_string,
    write_uvarint,
)

VERSIONS = range(3, 14)
FIRST_WITH_TOPIC_IDS = 13
_FIRST_WITH_LOG_START = 5
_FIRST_WITH_RECORD_ERRORS = 8
_FIRST_FLEXIBLE = 9
_FIRST_WITH_LEADERS = 10

_new = tuple.__new__
"""A named tuple in half the time that its own `__new__` takes."""

_unpack_acks_timeout = Struct(">hi").unpack_from
_unpack_int32 = Struct(">i").unpack_from
_unpack_index_size = Struct(">ii").unpack_from
_pack_int32 = Struct(">i").pack
_pack_size = Struct(">i").pack_into
_pack_offsets = Struct(">ihqq").pack
_pack_offsets_and_start = Struct(">ihqqq").pack
_pack_plain_legacy = Struct(">ihqqqih").pack
_pack_plain = Struct(">ihqqqBBB").pack


class PartitionRecords(NamedTuple):
    """What a producer sends to one partition."""

    partition_index: int
    records: memoryview | None


class TopicRecords(NamedTuple):
    """A topic by its name (up to v12) or by its id (from v13)."""

    name: str | None
    topic_id: UUID | None
    partitions: list[PartitionRecords]


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[TopicRecords]


class RecordError(NamedTuple):
    """Why one record had its whole batch refused."""

    batch_index: int
    message: str | None = None


class PartitionProduced(NamedTuple):
    """The answer for one partition. -1 stands for "none" in offsets and times."""

    partition_index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[RecordError] = ()
    error_message: str | None = None
    current_leader: CurrentLeader | None = None


class TopicProduced(NamedTuple):
    """A topic by its name (up to v12) or by its id (from v13)."""

    name: str | None
    topic_id: UUID | None
    partitions: Sequence[PartitionProduced]


def parse_produce_request(api_version: int, body: Buffer) -> ProduceRequest:
    """The request in these bytes; its records are views into them. Raises `MalformedRequest`."""
    data = memoryview(body)
    try:
        if api_version >= _FIRST_FLEXIBLE:
            request, at = _parse_flexible(data, with_ids=api_version >= FIRST_WITH_TOPIC_IDS)
        else:
            request, at = _parse_legacy(data)
        if at < len(data):
            raise MalformedRequest(f"{len(data) - at} bytes follow its last field.")
    except UNREADABLE as error:
        raise malformed(f"ProduceRequest v{api_version}", error) from None
    return request


def _parse_flexible(data: memoryview, *, with_ids: bool) -> tuple[ProduceRequest, int]:
    end = len(data)
    transactional_id, at = read_compact_string(data, 0)
    acks, timeout_ms = _unpack_acks_timeout(data, at)
    topic_count, at = read_uvarint(data, at + 6)
    budget = [MAX_ELEMENTS]
    topics = []
    name: str | None = None
    topic_id: UUID | None = None
    for _ in range(spend(topic_count - 1, budget)):
        if with_ids:
            topic_id, at = read_uuid(data, at)
        else:
            name, at = read_compact_string(data, at)
            name = present(name)
        partition_count, at = read_uvarint(data, at)
        partitions = []
        for _ in range(spend(partition_count - 1, budget)):
            (index,) = _unpack_int32(data, at)
            at += 4
            size = data[at]
            if size < 0x80:
                at += 1
            else:
                size, at = read_uvarint(data, at)
            records = None
            if size:
                records = data[at : at + size - 1]
                at += size - 1
            # Past the end, this raises: so the view above is whole.
            at = at + 1 if data[at] == 0 else skip_tags(data, at, budget)
            partitions.append(_new(PartitionRecords, (index, records)))
        at = at + 1 if data[at] == 0 else skip_tags(data, at, budget)
        topics.append(TopicRecords(name, topic_id, partitions))
    at = skip_tags(data, at, budget)
    if at > end:
        raise IndexError
    return ProduceRequest(transactional_id, acks, timeout_ms, topics), at


def _parse_legacy(data: memoryview) -> tuple[ProduceRequest, int]:
    end = len(data)
    transactional_id, at = read_string(data, 0)
    acks, timeout_ms = _unpack_acks_timeout(data, at)
    (topic_count,) = _unpack_int32(data, at + 6)
    at += 10
    budget = [MAX_ELEMENTS]
    topics = []
    for _ in range(spend(topic_count, budget)):
        name, at = read_string(data, at)
        (partition_count,) = _unpack_int32(data, at)
        at += 4
        partitions = []
        for _ in range(spend(partition_count, budget)):
            index, size = _unpack_index_size(data, at)
            at += 8
            records = None
            if size >= 0:
                records = data[at : at + size]
                at += size
            elif size != -1:
                raise MalformedRequest(f"records have length {size}.")
            partitions.append(_new(PartitionRecords, (index, records)))
        topics.append(TopicRecords(present(name), None, partitions))
    if at > end:
        raise IndexError
    return ProduceRequest(transactional_id, acks, timeout_ms, topics), at


def encode_produce_response(
    api_version: int,
    correlation_id: int,
    topics: Sequence[TopicProduced],
    throttle_time_ms: int,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytearray:
    """The frame that answers a Produce request. What a version cannot carry is left out."""
    out = start_response(PRODUCE, api_version, correlation_id)
    if api_version >= _FIRST_FLEXIBLE:
        with_leaders = api_version >= _FIRST_WITH_LEADERS
        with_ids = api_version >= FIRST_WITH_TOPIC_IDS
        write_uvarint(out, len(topics) + 1)
        for topic in topics:
            if with_ids:
                out += uuid_bytes(topic.topic_id)
            else:
                write_compact_string(out, topic.name)
            write_uvarint(out, len(topic.partitions) + 1)
            for partition in topic.partitions:
                _write_partition(out, partition, with_leaders)
            out.append(0)
        out += _pack_int32(throttle_time_ms)
        write_endpoint_tags(out, node_endpoints if with_leaders else ())
    else:
        out += _pack_int32(len(topics))
        for topic in topics:
            write_string(out, topic.name)
            out += _pack_int32(len(topic.partitions))
            for partition in topic.partitions:
                _write_legacy_partition(out, partition, api_version)
        out += _pack_int32(throttle_time_ms)
    _pack_size(out, 0, len(out) - 4)
    return out


def _write_partition(out: bytearray, partition: PartitionProduced, with_leaders: bool) -> None:
    index, error_code, base_offset, append_time_ms, log_start, record_errors, message, leader = partition
    if not record_errors and message is None and leader is None:
        # No record errors, a null message and no tags: three bytes that ride on the fixed fields.
        out += _pack_plain(index, error_code, base_offset, append_time_ms, log_start, 1, 0, 0)
        return
    out += _pack_offsets_and_start(index, error_code, base_offset, append_time_ms, log_start)
    write_uvarint(out, len(record_errors) + 1)
    for batch_index, record_message in record_errors:
        out += _pack_int32(batch_index)
        write_compact_string(out, record_message)
        out.append(0)
    write_compact_string(out, message)
    if leader is None or not with_leaders:
        out.append(0)
    else:
        out.append(1)
        out += current_leader_field(0, leader)


def _write_legacy_partition(out: bytearray, partition: PartitionProduced, api_version: int) -> None:
    index, error_code, base_offset, append_time_ms, log_start, record_errors, message, _ = partition
    if api_version < _FIRST_WITH_LOG_START:
        out += _pack_offsets(index, error_code, base_offset, append_time_ms)
        return
    if api_version < _FIRST_WITH_RECORD_ERRORS:
        out += _pack_offsets_and_start(index, error_code, base_offset, append_time_ms, log_start)
        return
    if not record_errors and message is None:
        out += _pack_plain_legacy(index, error_code, base_offset, append_time_ms, log_start, 0, -1)
        return
    out += _pack_offsets_and_start(index, error_code, base_offset, append_time_ms, log_start)
    out += _pack_int32(len(record_errors))
    for batch_index, record_message in record_errors:
        out += _pack_int32(batch_index)
        write_string(out, record_message)
    write_string(out, message)
