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
from typing import NamedTuple

from lamina.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, MessageTooLarge
from lamina.records.batch import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_PRODUCER_ID,
    BatchHeader,
    Buffer,
    Codec,
    check_crc,
    read_header,
)
from lamina.records.codecs import decompress, has_linked_lz4_blocks
from lamina.records.record_walk import RecordFault, Walk, walk_records

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

_LEAST_RECORD_BYTES = 7
"""Length, attributes, both deltas, null key, null value and no headers take a byte each."""


@dataclass(frozen=True, slots=True)
class BatchRules:
    """What a topic demands of a batch: Kafka's topic settings, and our own bound on decompressed size."""

    max_message_bytes: int
    max_decompressed_bytes: int
    is_compacted: bool
    is_log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    codec: Codec | None = None
    """What the topic stores batches in; ``None`` for whatever the producer chose."""
    codec_level: int | None = None
    """How hard it compresses them; ``None`` for the codec's default."""


class ValidatedBatch(NamedTuple):
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


_new_tuple = tuple.__new__


def validate_batch(buffer: Buffer, rules: BatchRules, now_ms: int, walk: Walk = walk_records) -> ValidatedBatch:
    """Check all that a Produce request carries for one partition; raises the error that its client gets."""
    header = _read_only_batch(buffer)
    _check_batch(buffer, header, rules)
    records: Buffer = memoryview(buffer)[HEADER_BYTES:]
    earliest_ms, latest_ms = _INT64_MIN, _INT64_MAX
    if not rules.is_log_append_time:
        earliest_ms, latest_ms = now_ms - rules.timestamp_before_max_ms, now_ms + rules.timestamp_after_max_ms
    try:
        codec_id, record_count = header.codec_id, header.record_count
        if codec_id:
            _check_count(record_count, rules.max_decompressed_bytes)
        if codec_id or len(records) > rules.max_decompressed_bytes:
            records = _decompress(codec_id, records, rules.max_decompressed_bytes)
        _check_count(record_count, len(records))
        max_timestamp, offset_delta_of_max_timestamp, faults = walk(
            records,
            record_count,
            header.base_timestamp,
            needs_keys=rules.is_compacted,
            earliest_ms=earliest_ms,
            latest_ms=latest_ms,
        )
    except CorruptMessage as error:
        raise InvalidRecord(str(error)) from None
    if faults:
        raise _rejection(faults)
    return _new_tuple(ValidatedBatch, (header, max_timestamp, offset_delta_of_max_timestamp, len(records)))


def _read_only_batch(buffer: Buffer) -> BatchHeader:
    """The header of the one batch that ``buffer`` must be, whole and with nothing after it."""
    sent_bytes = len(buffer)
    if sent_bytes < HEADER_BYTES:
        raise InvalidRecord(f"{sent_bytes} bytes hold no batch")
    header = read_header(buffer)
    if header.magic != MAGIC:
        if 0 <= header.magic < MAGIC:
            raise InvalidRecord(f"the batch has magic {header.magic}; only {MAGIC} is taken")
        raise CorruptMessage(f"the batch has magic {header.magic}, which does not exist")
    size_bytes = header.length + LOG_OVERHEAD_BYTES
    if size_bytes != sent_bytes:
        if size_bytes < HEADER_BYTES:
            raise CorruptMessage(f"the batch claims {header.length} bytes, too few for a header")
        if size_bytes > sent_bytes:
            raise InvalidRecord(f"the batch claims {size_bytes} bytes, only {sent_bytes} were sent")
        raise InvalidRecord(f"{sent_bytes - size_bytes} bytes follow the batch; a partition takes one at a time")
    return header


def _check_batch(buffer: Buffer, header: BatchHeader, rules: BatchRules) -> None:
    # Unpacked once, because a field of a named tuple takes as long to get as all of them.
    base_offset, _, _, _, _, attributes, last_offset_delta, _, _, producer_id, epoch, sequence, record_count = header
    if base_offset != 0:
        raise InvalidRecord(f"the batch has base offset {base_offset}; a client's begins at 0")
    if len(buffer) > rules.max_message_bytes:
        raise MessageTooLarge(f"the batch is {len(buffer)} bytes; the topic takes {rules.max_message_bytes}")
    check_crc(buffer, 0, header)
    if record_count <= 0:
        raise InvalidRecord(f"the batch counts {record_count} records")
    if last_offset_delta != record_count - 1:
        raise InvalidRecord(f"the batch counts {record_count} records but ends at delta {last_offset_delta}")
    if attributes & CONTROL_BIT:
        raise InvalidRecord("a client may not write a control batch")
    if producer_id > NO_PRODUCER_ID and (sequence < 0 or epoch < 0):
        raise InvalidRecord(f"producer {producer_id} came with epoch {epoch} and sequence {sequence}")
    if attributes & DELETE_HORIZON_BIT:
        raise InvalidRecord("a client may not set a delete horizon")
    if attributes & LOG_APPEND_TIME_BIT:
        raise InvalidTimestamp("a client may not set log-append time")


def _check_count(record_count: int, size_bytes: int) -> None:
    """Refuse a count that cannot be true before anything is spent on it."""
    if record_count * _LEAST_RECORD_BYTES > size_bytes:
        raise InvalidRecord(f"the batch counts {record_count} records, more than {size_bytes} bytes can hold")


def _decompress(codec_id: int, payload: Buffer, limit_bytes: int) -> Buffer:
    if codec_id == Codec.LZ4 and has_linked_lz4_blocks(payload):
        raise InvalidRecord("the lz4 blocks of the batch are linked, which Java's consumers cannot read")
    return decompress(codec_id, payload, limit_bytes)


def _rejection(faults: list[tuple[int, RecordFault]]) -> InvalidRecord | InvalidTimestamp:
    """One bad timestamp makes it INVALID_TIMESTAMP, whatever else is wrong, as in Kafka."""
    record_errors = tuple((index, fault.value) for index, fault in faults)
    index, sentence = record_errors[0]
    message = (
        f"record {index} was refused: {sentence}"
        if len(faults) == 1
        else f"{len(faults)} records were refused; the first is record {index}: {sentence}"
    )
    if any(fault is RecordFault.TIMESTAMP_OUT_OF_RANGE for _, fault in faults):
        return InvalidTimestamp(message, record_errors)
    return InvalidRecord(message, record_errors)
