"""The walk over all records of a batch that finds out whether they are well-formed and what is wrong with them.

Owns the one loop of validation that grows with the records. It is plain Python; ``kernel.py`` is the same in
machine code, for those who have numba, and leans on this one for its errors. Must not know the batch around the
records, nor what is made of a fault.
"""

from enum import Enum
from typing import NamedTuple, Protocol

from lamina.errors import CorruptMessage
from lamina.records.batch import NO_TIMESTAMP, Buffer
from lamina.records.record_fields import parse_record

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

MAX_RECORD_ERRORS = 1000
"""How many bad records of one batch are named; Kafka names all, which costs more memory than the batch."""


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


_new_tuple = tuple.__new__


class Walk(Protocol):
    """:func:`walk_records`, or what does the same faster."""

    def __call__(
        self,
        records: Buffer,
        record_count: int,
        base_timestamp: int,
        *,
        needs_keys: bool,
        earliest_ms: int,
        latest_ms: int,
    ) -> RecordWalk: ...


def walk_records(
    records: Buffer,
    record_count: int,
    base_timestamp: int,
    *,
    needs_keys: bool,
    earliest_ms: int,
    latest_ms: int,
    first_index: int = 0,
    position: int = 0,
) -> RecordWalk:
    """Visit every record without building it, from the one at ``position`` on.

    Ends at the last fault that is named: what follows a batch refused so often over is not looked at. Raises
    :class:`CorruptMessage` where ``records`` is not exactly ``record_count`` well-formed records.
    """
    max_timestamp, offset_delta_of_max_timestamp = NO_TIMESTAMP, -1
    faults: list[tuple[int, RecordFault]] = []
    size = len(records)
    for index in range(first_index, record_count):
        position, timestamp_delta, offset_delta, _, key_length, _, _ = parse_record(records, position, size, index)
        timestamp = base_timestamp + timestamp_delta
        if not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise CorruptMessage(f"record {index} has a timestamp that does not fit 64 bits")
        if timestamp > max_timestamp:
            max_timestamp, offset_delta_of_max_timestamp = timestamp, index
        if offset_delta != index:
            fault = RecordFault.OFFSET_OUT_OF_ORDER
        elif needs_keys and key_length < 0:
            fault = RecordFault.NO_KEY
        elif not earliest_ms <= timestamp <= latest_ms and timestamp != NO_TIMESTAMP:
            fault = RecordFault.TIMESTAMP_OUT_OF_RANGE
        else:
            continue
        faults.append((index, fault))
        if len(faults) == MAX_RECORD_ERRORS:
            return RecordWalk(max_timestamp, offset_delta_of_max_timestamp, faults)
    if position != size:
        raise CorruptMessage(f"{size - position} bytes follow the last of {record_count} records")
    return _new_tuple(RecordWalk, (max_timestamp, offset_delta_of_max_timestamp, faults))
