"""Buffers that compiled code fills with columns, for as many records as a limit of bytes allows.

Owns what buffers a column takes and how large they are. A record that is larger than the limit has them to itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lamina.records.columns import filling as f
from lamina.records.columns.headers import Rows
from lamina.records.columns.memory import Bytes

Array = npt.NDArray[Any]
Number = type[np.signedinteger[Any] | np.unsignedinteger[Any]]

_MIN_HEADER_BYTES = f.HEADER_COST_BYTES + 2
_BITS_BYTES = 1
"""What a record takes of a column of bits, rounded up."""

_NUMBERS: dict[int, Number] = {
    f.OFFSETS: np.int64,
    f.TIMESTAMPS: np.int64,
    f.TIMESTAMP_TYPES: np.int32,
    f.PRODUCER_IDS: np.int64,
    f.PRODUCER_EPOCHS: np.int16,
    f.SEQUENCES: np.int32,
    f.LEADER_EPOCHS: np.int32,
    f.BATCH_POSITIONS: np.int64,
}
"""One number a record."""
_ENDS = {f.KEY_ENDS: f.COUNT, f.VALUE_ENDS: f.COUNT, f.LIST_ENDS: f.COUNT}
_HEADER_ENDS = {f.HEADER_KEY_ENDS: f.HEADERS_USED, f.HEADER_VALUE_ENDS: f.HEADERS_USED}
_BITS = {f.KEY_BITS: f.COUNT, f.VALUE_BITS: f.COUNT, f.LIST_BITS: f.COUNT, f.HEADER_VALUE_BITS: f.HEADERS_USED}
_DATA = {
    f.KEYS: f.KEYS_USED,
    f.VALUES: f.VALUES_USED,
    f.HEADER_KEYS: f.HEADER_KEYS_USED,
    f.HEADER_VALUES: f.HEADER_VALUES_USED,
}
"""By buffer, what the tally counts of it."""

BUFFERS_OF = {
    "key": (f.KEY_ENDS, f.KEY_BITS, f.KEYS),
    "value": (f.VALUE_ENDS, f.VALUE_BITS, f.VALUES),
    "headers": (
        f.LIST_ENDS,
        f.LIST_BITS,
        f.HEADER_KEY_ENDS,
        f.HEADER_KEYS,
        f.HEADER_VALUE_ENDS,
        f.HEADER_VALUE_BITS,
        f.HEADER_VALUES,
    ),
    "offset": (f.OFFSETS,),
    "timestamp": (f.TIMESTAMPS,),
    "timestampType": (f.TIMESTAMP_TYPES,),
    "producer_id": (f.PRODUCER_IDS,),
    "producer_epoch": (f.PRODUCER_EPOCHS,),
    "sequence": (f.SEQUENCES,),
    "leader_epoch": (f.LEADER_EPOCHS,),
    "batch_position": (f.BATCH_POSITIONS,),
}
"""The columns that there are."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Columns of some records, as ``filling`` numbers buffers and figures."""

    arrays: dict[int, Array]
    tally: list[int]

    @property
    def count(self) -> int:
        return self.tally[f.COUNT]


class ColumnBuffers:
    def __init__(self, columns: Sequence[str], limit_bytes: int) -> None:
        self._wanted = sorted(number for column in columns for number in BUFFERS_OF[column])
        self._fixed_bytes = sum(self._row_bytes(number) for number in self._wanted)
        self._limit_bytes = self._usual_limit_bytes = max(limit_bytes, self._fixed_bytes)
        self._arrays: dict[int, Array] = {}
        self._addresses = np.zeros(f.BUFFERS, np.int64)
        self._tally = np.zeros(f.TALLY_COLUMNS, np.int64)

    @property
    def count(self) -> int:
        return int(self._tally[f.COUNT])

    def fill(
        self, data: Bytes, payload: Bytes, rows: Rows, skips: Bytes, place: Rows, start_offset: int, end_offset: int
    ) -> int:
        """Add records; as :func:`~lamina.records.columns.filling.fill_columns`."""
        while True:
            if len(self._arrays) < len(self._wanted):
                self._allocate()
            status = f.fill_columns(
                data,
                payload,
                rows,
                skips,
                place,
                self._addresses,
                self._tally,
                start_offset,
                end_offset,
                self._limit_bytes,
                self._fixed_bytes,
            )
            if status != f.FULL or self.count:
                return status
            self._limit_bytes = int(self._tally[f.NEEDED_BYTES])
            self._arrays.clear()

    def take(self) -> Filled:
        """What was filled since the last time. What is much larger than that is kept for the next time."""
        tally = self._tally.tolist()
        taken = {}
        for number, array in list(self._arrays.items()):
            used = self._used(number, tally)
            if 2 * used < len(array) and self._limit_bytes == self._usual_limit_bytes:
                taken[number] = array[:used].copy()
                if number in _BITS:
                    array[:used] = 0
            else:
                taken[number] = array[:used]
                del self._arrays[number]
        self._tally[:] = 0
        if self._limit_bytes != self._usual_limit_bytes:
            self._limit_bytes = self._usual_limit_bytes
            self._arrays.clear()
        return Filled(taken, tally)

    def _allocate(self) -> None:
        for number in self._wanted:
            if number not in self._arrays:
                self._arrays[number] = array = self._new_array(number)
                self._addresses[number] = array.ctypes.data

    def _new_array(self, number: int) -> Array:
        rows, headers = self._limit_bytes // self._fixed_bytes, self._limit_bytes // _MIN_HEADER_BYTES
        if number in _DATA:
            return np.empty(self._limit_bytes, np.uint8)
        if number in _NUMBERS:
            return np.empty(rows, _NUMBERS[number])
        items = headers if number in _HEADER_ENDS or number == f.HEADER_VALUE_BITS else rows
        if number in _BITS:
            return np.zeros(items // 8 + 1, np.uint8)
        ends = np.empty(items + 1, np.int32)
        ends[0] = 0
        return ends

    @staticmethod
    def _used(number: int, tally: list[int]) -> int:
        if number in _NUMBERS:
            return tally[f.COUNT]
        if number in _DATA:
            return tally[_DATA[number]]
        if number in _BITS:
            return (tally[_BITS[number]] + 7) // 8
        return tally[(_ENDS | _HEADER_ENDS)[number]] + 1

    @staticmethod
    def _row_bytes(number: int) -> int:
        if number in _NUMBERS:
            return np.dtype(_NUMBERS[number]).itemsize
        if number in _ENDS:
            return np.dtype(np.int32).itemsize
        return _BITS_BYTES if _BITS.get(number) == f.COUNT else 0
