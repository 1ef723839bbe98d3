"""A client's batch, checked by Kafka 4.1's rules before it may enter a log (protocol.md §2.35).

A stored batch that lies stops every reader for good, so nothing is taken on trust: not the header, not a
length inside a record. The order of the checks and their error codes are Kafka's. Stricter than Kafka where a
stored batch would mean different things to different readers:

- bytes after the batch are refused; Kafka cuts off in silence what is no whole batch;
- a record's length must be that of its fields, and null is −1 alone; Kafka looks at the first only in a plain
  batch, and takes every negative length for null;
- offset deltas must be 0, 1, 2, …; Kafka ignores them in a plain batch, and fails on a compressed one;
- numbers that overflow their width are refused; Java truncates them;
- log-append time and a delete horizon are the broker's to set: a batch that claims one is refused everywhere;
- a producer id needs an epoch as well as a sequence.

What is broken inside the records answers INVALID_RECORD, never CORRUPT_MESSAGE: the CRC was right, so sending
the same bytes again, as clients do on CORRUPT_MESSAGE, cannot help. Where Kafka meets an exception of its own
(data that its codec cannot read, linked lz4 blocks, an unknown codec: UNKNOWN_SERVER_ERROR), the error here
names the cause. Must not know producers' state, Produce versions or files.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from lamina.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, MessageTooLarge
from lamina.records.batch import (
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Codec,
    check_crc,
    read_header,
)
from lamina.records.codecs import decompress, has_linked_lz4_blocks
from lamina.records.varint import read_varint, read_varlong

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

MAX_RECORD_ERRORS = 1000
"""How many bad records of one batch are named; Kafka names all, which costs more memory than the batch."""


@dataclass(frozen=True, slots=True)
class BatchRules:
    """What a topic demands of a batch: Kafka's topic settings, and our own bound on decompressed size."""

    max_message_bytes: int
    max_decompressed_bytes: int
    is_compacted: bool
    is_log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int


@dataclass(frozen=True, slots=True)
class ValidatedBatch:
    """What the log needs to know of a batch that may be appended.

    ``max_timestamp`` is the records' own, NO_TIMESTAMP if none has a time. Where it is not ``header``'s, the
    header is to be corrected (``stamp_max_timestamp``), unless the topic stamps its own time.
    """

    header: BatchHeader
    max_timestamp: int
    offset_delta_of_max_timestamp: int
    decompressed_bytes: int

    @property
    def record_count(self) -> int:
        return self.header.record_count


class RecordFault(Enum):
    """What is wrong with a well-formed record; its value is the sentence for the client."""

    NO_KEY = "a compacted topic takes no record without a key"
    TIMESTAMP_OUT_OF_RANGE = "the timestamp is too far from the broker's time"
    OFFSET_OUT_OF_ORDER = "the offset delta is not the record's index"


class RecordWalk(NamedTuple):
    """What one walk over all records of a batch finds out."""

    max_timestamp: int
    offset_delta_of_max_timestamp: int
    faults: list[tuple[int, RecordFault]]


def validate_batch(buffer: Buffer, rules: BatchRules, now_ms: int) -> ValidatedBatch:
    """Check all that a Produce request carries for one partition; raises the error that its client gets."""
    header = _read_only_batch(buffer)
    _check_batch(buffer, header, rules)
    payload = memoryview(buffer)[HEADER_BYTES:]
    if header.codec_id == Codec.LZ4 and has_linked_lz4_blocks(payload):
        raise InvalidRecord("the lz4 blocks of the batch are linked, which Java's consumers cannot read")
    earliest_ms, latest_ms = _INT64_MIN, _INT64_MAX
    if not rules.is_log_append_time:
        earliest_ms = max(_INT64_MIN, now_ms - rules.timestamp_before_max_ms)
        latest_ms = min(_INT64_MAX, now_ms + rules.timestamp_after_max_ms)
    try:
        records = decompress(header.codec_id, payload, rules.max_decompressed_bytes)
        walk = walk_records(
            records,
            header.record_count,
            header.base_timestamp,
            needs_keys=rules.is_compacted,
            earliest_ms=earliest_ms,
            latest_ms=latest_ms,
        )
    except CorruptMessage as error:
        raise InvalidRecord(str(error)) from None
    if walk.faults:
        raise _rejection(walk.faults)
    return ValidatedBatch(header, walk.max_timestamp, walk.offset_delta_of_max_timestamp, len(records))


def walk_records(
    records: Buffer,
    record_count: int,
    base_timestamp: int,
    *,
    needs_keys: bool,
    earliest_ms: int,
    latest_ms: int,
) -> RecordWalk:
    """Visit every record without building it: the one loop here that grows with the records.

    Raises :class:`CorruptMessage` where ``records`` is not exactly ``record_count`` well-formed records.
    """
    max_timestamp, offset_delta_of_max_timestamp = NO_TIMESTAMP, -1
    faults: list[tuple[int, RecordFault]] = []
    size = len(records)
    position = 0
    for index in range(record_count):
        length, position = read_varint(records, position)
        end = position + length
        if length < 0 or end > size:
            raise CorruptMessage(f"record {index} claims {length} bytes, {size - position} are left")
        timestamp_delta, position = read_varlong(records, position + 1)  # past the attributes, which mean nothing
        offset_delta, position = read_varint(records, position)
        key_length, position = read_varint(records, position)
        value_length, position = read_varint(records, _skip(position, key_length, end))
        position = _skip_headers(records, _skip(position, value_length, end), end)
        if position != end:
            raise CorruptMessage(f"record {index} claims {length} bytes, its fields take {length + position - end}")
        timestamp = base_timestamp + timestamp_delta
        if not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise CorruptMessage(f"record {index} has a timestamp that does not fit 64 bits")
        if timestamp > max_timestamp:
            max_timestamp, offset_delta_of_max_timestamp = timestamp, index
        fault = None
        if offset_delta != index:
            fault = RecordFault.OFFSET_OUT_OF_ORDER
        elif needs_keys and key_length < 0:
            fault = RecordFault.NO_KEY
        elif not earliest_ms <= timestamp <= latest_ms and timestamp != NO_TIMESTAMP:
            fault = RecordFault.TIMESTAMP_OUT_OF_RANGE
        if fault is not None and len(faults) < MAX_RECORD_ERRORS:
            faults.append((index, fault))
    if position != size:
        raise CorruptMessage(f"{size - position} bytes follow the last of {record_count} records")
    return RecordWalk(max_timestamp, offset_delta_of_max_timestamp, faults)


def _read_only_batch(buffer: Buffer) -> BatchHeader:
    """The header of the one batch that ``buffer`` must be, whole and with nothing after it."""
    if len(buffer) < HEADER_BYTES:
        raise InvalidRecord(f"{len(buffer)} bytes hold no batch")
    header = read_header(buffer)
    if not 0 <= header.magic <= MAGIC:
        raise CorruptMessage(f"the batch has magic {header.magic}, which does not exist")
    if header.magic != MAGIC:
        raise InvalidRecord(f"the batch has magic {header.magic}; only {MAGIC} is taken")
    if header.length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise CorruptMessage(f"the batch claims {header.length} bytes, too few for a header")
    if header.size_bytes > len(buffer):
        raise InvalidRecord(f"the batch claims {header.size_bytes} bytes, only {len(buffer)} were sent")
    if header.size_bytes < len(buffer):
        raise InvalidRecord(
            f"{len(buffer) - header.size_bytes} bytes follow the batch; a partition takes one at a time"
        )
    return header


def _check_batch(buffer: Buffer, header: BatchHeader, rules: BatchRules) -> None:
    if header.base_offset != 0:
        raise InvalidRecord(f"the batch has base offset {header.base_offset}; a client's begins at 0")
    if header.size_bytes > rules.max_message_bytes:
        raise MessageTooLarge(f"the batch is {header.size_bytes} bytes; the topic takes {rules.max_message_bytes}")
    check_crc(buffer, 0, header)
    if header.record_count <= 0:
        raise InvalidRecord(f"the batch counts {header.record_count} records")
    if header.last_offset_delta != header.record_count - 1:
        raise InvalidRecord(
            f"the batch counts {header.record_count} records but ends at delta {header.last_offset_delta}"
        )
    if header.is_control:
        raise InvalidRecord("a client may not write a control batch")
    if header.producer_id > NO_PRODUCER_ID and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise InvalidRecord(
            f"producer {header.producer_id} came with epoch {header.producer_epoch} and sequence {header.base_sequence}"
        )
    if header.attributes & DELETE_HORIZON_BIT:
        raise InvalidRecord("a client may not set a delete horizon")
    if header.is_log_append_time:
        raise InvalidTimestamp("a client may not set log-append time")


def _skip(position: int, length: int, end: int) -> int:
    """The position after a field of ``length`` bytes, −1 being null."""
    if length < -1 or position + length > end:
        raise CorruptMessage(f"a field of a record claims {length} bytes, {end - position} are left")
    return position + length if length > 0 else position


def _skip_headers(records: Buffer, position: int, end: int) -> int:
    count, position = read_varint(records, position)
    if count < 0:
        raise CorruptMessage(f"a record counts {count} headers")
    for _ in range(count):
        key_length, position = read_varint(records, position)
        if key_length < 0:
            raise CorruptMessage("a record has a header without a key")
        value_length, position = read_varint(records, _skip(position, key_length, end))
        position = _skip(position, value_length, end)
    return position


def _rejection(faults: list[tuple[int, RecordFault]]) -> InvalidRecord | InvalidTimestamp:
    """One bad timestamp makes it INVALID_TIMESTAMP, whatever else is wrong, as in Kafka."""
    record_errors = tuple((index, fault.value) for index, fault in faults)
    index, sentence = record_errors[0]
    message = f"{len(faults)} records were refused; the first is record {index}: {sentence}"
    if any(fault is RecordFault.TIMESTAMP_OUT_OF_RANGE for _, fault in faults):
        return InvalidTimestamp(message, record_errors)
    return InvalidRecord(message, record_errors)
