"""Control records: what a coordinator writes into a log to end a transaction.

Owns the keys and values of formats.md §2.2 and the 78-byte marker batch. Must not know transactions' states.
"""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from lamina.errors import CorruptMessage, MessageTooLarge, UnsupportedCompression
from lamina.records.batch import NO_LEADER_EPOCH, BatchHeader, Buffer
from lamina.records.record import Record, build_batch, read_records

_KEY = Struct(">hh")
_END_TRANSACTION_VALUE = Struct(">hi")
_VERSION = 0

_LIMIT_BYTES = 1024 * 1024
"""A control batch holds one small record; a larger one is no control batch."""


class ControlType(IntEnum):
    """What a control record says. A number that Kafka may add later reads as UNKNOWN."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @classmethod
    def _missing_(cls, value: object) -> "ControlType":
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Marker:
    """A control record read; only the end of a transaction carries a coordinator epoch."""

    control_type: ControlType
    coordinator_epoch: int | None


def build_marker(
    control_type: ControlType,
    *,
    offset: int,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The batch that ends a transaction: ``control_type`` is ABORT or COMMIT."""
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise ValueError(f"{control_type.name} does not end a transaction")
    key = _KEY.pack(_VERSION, control_type)
    value = _END_TRANSACTION_VALUE.pack(_VERSION, coordinator_epoch)
    return build_batch(
        [Record(offset, timestamp_ms, key, value)],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def read_marker(buffer: Buffer, position: int, header: BatchHeader) -> Marker | None:
    """What the control batch at ``position`` says; None when cleaning has left only its header (fact 73).

    Raises :class:`CorruptMessage` for a batch that no coordinator wrote.
    """
    try:
        records = read_records(buffer, position, header, _LIMIT_BYTES)
    except (MessageTooLarge, UnsupportedCompression) as error:
        raise CorruptMessage(f"the marker at offset {header.base_offset} cannot be read: {error}") from None
    if not records:
        return None
    control_type = _read_control_type(records[0].key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return Marker(control_type, None)
    value = records[0].value or b""
    if len(value) < _END_TRANSACTION_VALUE.size:
        raise CorruptMessage(f"the marker at offset {header.base_offset} has a value of {len(value)} bytes")
    return Marker(control_type, _END_TRANSACTION_VALUE.unpack_from(value)[1])


def _read_control_type(key: bytes | None) -> ControlType:
    """Later versions of key and value only append fields."""
    if key is None or len(key) < _KEY.size:
        raise CorruptMessage("a control record's key is too short to name its type")
    return ControlType(_KEY.unpack_from(key)[1])
