"""The record batch as bytes: its 61-byte header read in place, walked and stamped.

Owns the layout of formats.md §2.2 (magic 2 only). A batch is never copied or re-encoded here: base offset and
leader epoch lie outside the CRC, so giving a batch its place in a log is two small writes into its buffer.
Must not know what the records inside say, nor where the bytes come from.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from lamina.errors import CorruptMessage
from lamina.records.checksum import crc32c

Buffer = bytes | bytearray | memoryview

MAGIC = 2
HEADER_BYTES = 61
LOG_OVERHEAD_BYTES = 12
"""Base offset and length: the bytes of a batch that its own length field does not count."""

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

_HEADER = Struct(">qiibIhiqqqhii")
_ATTRIBUTES_AND_COUNT = Struct(">21xh34xi")
_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")

_unpack_header = _HEADER.unpack_from
_pack_offset = _OFFSET.pack_into
_pack_leader_epoch = _LEADER_EPOCH.pack_into

_LEADER_EPOCH_AT = 12
_CRC_AT = 17
_COVERED_AT = 21
_MAX_TIMESTAMP_AT = 35

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

MAX_SEQUENCE = 2**31 - 1
MAX_RELATIVE_OFFSET = 2**31 - 1
"""Offsets in a segment's indexes are 32 bits from its base."""


class Codec(IntEnum):
    """How the records of a batch are compressed: bits 0-2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchHeader(NamedTuple):
    """The fields of a batch header, in the order in which they lie in the file."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec_id(self) -> int:
        """Bits 0-2; may name no known codec."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When its tombstones or its marker may go (KIP-534); stored in place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


_new_tuple = tuple.__new__


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The 61 bytes at ``position`` as a header, unchecked."""
    return _new_tuple(BatchHeader, _unpack_header(buffer, position))


def read_codec_and_count(buffer: Buffer) -> tuple[int, int]:
    """The codec's id and the number of records that the header at the start claims, and nothing else of it."""
    attributes, record_count = _ATTRIBUTES_AND_COUNT.unpack_from(buffer)
    return attributes & CODEC_MASK, record_count


def pack_header(header: BatchHeader) -> bytes:
    return _HEADER.pack(*header)


def check_header(header: BatchHeader) -> None:
    """Raise :class:`CorruptMessage` for a header that no batch can have."""
    if header.magic != MAGIC:
        raise CorruptMessage(f"a batch at offset {header.base_offset} has magic {header.magic}, not {MAGIC}")
    if header.length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise CorruptMessage(
            f"a batch at offset {header.base_offset} claims {header.length} bytes, too few for a header"
        )
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.record_count < 0:
        raise CorruptMessage(
            f"a batch at offset {header.base_offset} has last offset delta {header.last_offset_delta} "
            f"and {header.record_count} records"
        )


def compute_crc(buffer: Buffer, position: int, size_bytes: int) -> int:
    """CRC-32C over everything after the CRC field of the batch at ``position``."""
    return crc32c(memoryview(buffer)[position + _COVERED_AT : position + size_bytes])


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Raise :class:`CorruptMessage` if the covered bytes are not the ones the CRC was taken over."""
    actual = crc32c(memoryview(buffer)[position + _COVERED_AT : position + LOG_OVERHEAD_BYTES + header.length])
    if actual != header.crc:
        raise CorruptMessage(f"the batch at offset {header.base_offset} has CRC {actual:#010x}, not {header.crc:#010x}")


def walk(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch from ``position`` on; stops before a batch that is cut off.

    Raises :class:`CorruptMessage` at a header that no batch can have. CRCs are not looked at.
    """
    end = len(buffer)
    while position + HEADER_BYTES <= end:
        header = read_header(buffer, position)
        check_header(header)
        next_position = position + header.length + LOG_OVERHEAD_BYTES
        if next_position > end:
            return
        yield position, header
        position = next_position


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch its place in a log. Both fields lie outside the CRC."""
    _pack_offset(buffer, position, base_offset)
    _pack_leader_epoch(buffer, position + _LEADER_EPOCH_AT, leader_epoch)


def stamp_log_append_time(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Set the max timestamp and the timestamp type of the batch, and recompute its CRC."""
    header = read_header(buffer, position)
    _ATTRIBUTES.pack_into(buffer, position + _COVERED_AT, header.attributes | LOG_APPEND_TIME_BIT)
    _TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    _CRC.pack_into(buffer, position + _CRC_AT, compute_crc(buffer, position, header.size_bytes))


def stamp_max_timestamp(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Correct a max timestamp that is not the largest of the records', and the CRC with it."""
    size_bytes = read_header(buffer, position).size_bytes
    _TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    _CRC.pack_into(buffer, position + _CRC_AT, compute_crc(buffer, position, size_bytes))


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequences run from 0 to 2147483647 and start again at 0."""
    return (sequence + increment) & MAX_SEQUENCE
