"""The records inside a batch: build and read them.

Owns how a record is written (formats.md §2.2), and how a batch is put together from records; ``record_fields`` finds
where the fields of a written one lie. A null key or value is ``None`` and is never confused with an empty one. Must not
know which records a topic accepts (``validate``), nor what a control record means (``marker``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lamina.errors import CorruptMessage
from lamina.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    Codec,
    compute_crc,
    pack_header,
)
from lamina.records.codecs import compress, decompress
from lamina.records.record_fields import Fields, parse_record
from lamina.records.varint import append_varint, read_varint

Header = tuple[bytes, bytes | None]
"""A key, UTF-8 by agreement, and a value. The key stays bytes: no broker checks it, so a stored one may be no
UTF-8 at all and must still come through a rewrite as it was."""


@dataclass(frozen=True, slots=True)
class Record:
    """One message, with its place in the log and its time in absolute numbers."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: Codec = Codec.NONE,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """A batch of at least one record, CRC and all.

    ``base_offset`` and ``last_offset`` are the first and last record's unless given: a cleaned batch keeps
    its range (fact 70). With ``delete_horizon_ms`` the timestamp deltas are taken against it (fact 67); with
    ``log_append_time_ms`` every reader sees that time instead of the records' own.
    """
    base_offset = records[0].offset if base_offset is None else base_offset
    last_offset = records[-1].offset if last_offset is None else last_offset
    attributes = codec | TRANSACTIONAL_BIT * is_transactional | CONTROL_BIT * is_control
    base_timestamp = records[0].timestamp
    max_timestamp = max(record.timestamp for record in records)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = log_append_time_ms
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = delete_horizon_ms
    payload = bytearray()
    for record in records:
        if not base_offset <= record.offset <= last_offset:
            raise ValueError(f"a record at offset {record.offset} lies outside [{base_offset}, {last_offset}]")
        _append_record(payload, record, base_offset, base_timestamp)
    return seal_batch(
        BatchHeader(
            base_offset=base_offset,
            length=0,
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=last_offset - base_offset,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
        payload if codec is Codec.NONE else compress(codec, payload),
    )


def build_empty_batch(header: BatchHeader) -> bytearray:
    """The header-only batch that stands for one whose records are all gone (fact 73)."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    return seal_batch(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b"")


def read_records(buffer: Buffer, position: int, header: BatchHeader, limit_bytes: int) -> list[Record]:
    """The records of the whole batch at ``position``, whose CRC is taken to be right.

    Raises what :func:`iterate_records` raises.
    """
    return list(iterate_records(buffer, position, header, limit_bytes))


def iterate_records(buffer: Buffer, position: int, header: BatchHeader, limit_bytes: int) -> Iterator[Record]:
    """As :func:`read_records`, each record read when it is asked for.

    Raises :class:`CorruptMessage` where the bytes are not exactly the records that the header counts, and
    :class:`MessageTooLarge` when they decompress to more than ``limit_bytes``.
    """
    if header.record_count == 0 and header.size_bytes == HEADER_BYTES:
        return
    view = memoryview(buffer)[position + HEADER_BYTES : position + header.size_bytes]
    payload = bytes(decompress(header.codec_id, view, limit_bytes))
    if header.record_count < 0:
        raise CorruptMessage(f"a batch at offset {header.base_offset} counts {header.record_count} records")
    position, size = 0, len(payload)
    for index in range(header.record_count):
        fields = parse_record(payload, position, size, index)
        position = fields[0]
        yield _record(payload, fields, header)
    if position != size:
        raise CorruptMessage(f"{size - position} bytes follow the last of {header.record_count} records")


def seal_batch(header: BatchHeader, payload: Buffer) -> bytearray:
    """The batch of a header and its records as they are stored, with the right length and CRC."""
    length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(payload)
    batch = bytearray(pack_header(header._replace(length=length)))
    batch += payload
    crc = compute_crc(batch, 0, len(batch))
    batch[:HEADER_BYTES] = pack_header(header._replace(length=length, crc=crc))
    return batch


def _append_record(out: bytearray, record: Record, base_offset: int, base_timestamp: int) -> None:
    body = bytearray(1)  # attributes: no bit has a meaning
    append_varint(body, record.timestamp - base_timestamp)
    append_varint(body, record.offset - base_offset)
    _append_nullable(body, record.key)
    _append_nullable(body, record.value)
    append_varint(body, len(record.headers))
    for key, value in record.headers:
        _append_nullable(body, key)
        _append_nullable(body, value)
    append_varint(out, len(body))
    out += body


def _append_nullable(out: bytearray, value: bytes | None) -> None:
    if value is None:
        append_varint(out, -1)
    else:
        append_varint(out, len(value))
        out += value


def _record(payload: bytes, fields: Fields, header: BatchHeader) -> Record:
    _, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length = fields
    headers_at = value_at + max(value_length, 0)
    return Record(
        header.base_offset + offset_delta,
        header.max_timestamp if header.is_log_append_time else header.base_timestamp + timestamp_delta,
        None if key_length < 0 else payload[key_at : key_at + key_length],
        None if value_length < 0 else payload[value_at:headers_at],
        _read_headers(payload, headers_at) if payload[headers_at] else (),
    )


def _read_headers(payload: bytes, position: int) -> tuple[Header, ...]:
    """Of a record that is known to be well-formed."""
    count, position = read_varint(payload, position)
    headers: list[Header] = []
    for _ in range(count):
        key_length, key_at = read_varint(payload, position)
        value_length, value_at = read_varint(payload, key_at + key_length)
        position = value_at + max(value_length, 0)
        key, value = payload[key_at : key_at + key_length], payload[value_at:position]
        headers.append((key, None if value_length < 0 else value))
    return tuple(headers)
