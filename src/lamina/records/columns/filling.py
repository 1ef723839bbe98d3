"""The records of batches into buffers of columns, in compiled code.

A buffer is given by its address, 0 for a column that nobody asked for. Every record is parsed once, behind bounds
checks; what it adds is counted against a limit before it is written, so that a buffer as large as the limit holds it.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.records.batch import LOG_APPEND_TIME_BIT, MAX_SEQUENCE
from lamina.records.columns.headers import Rows
from lamina.records.columns.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    LEADER_EPOCH_AT,
    MAX_TIMESTAMP,
    MIN_RECORD_BYTES,
    PAYLOAD_END,
    PAYLOAD_START,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORD_COUNT,
)
from lamina.records.columns.memory import Bytes, Number, address_of, copy_bytes, i64, load8, store8, store32, u8, u32
from lamina.records.columns.memory import store64 as _store64
from lamina.records.columns.numbers import BAD, get_int32, read_record, read_varint
from lamina.records.columns.sources import STAMP

Counters = npt.NDArray[np.int64]
Fill = Callable[[Bytes, Bytes, Rows, Bytes, Counters, Counters, Counters, int, int, int, int], int]

DONE, FULL, MALFORMED = range(3)

ROW, RECORD, RECORD_AT, NEXT_DELTA = range(4)
"""Where filling goes on: a row, a record in it, its position, the least offset delta that it may have.

When all is done, that delta is of the record after the last row."""
PLACE_COLUMNS = 4

(
    OFFSETS,
    TIMESTAMPS,
    TIMESTAMP_TYPES,
    PRODUCER_IDS,
    PRODUCER_EPOCHS,
    SEQUENCES,
    LEADER_EPOCHS,
    BATCH_POSITIONS,
    KEY_ENDS,
    KEY_BITS,
    KEYS,
    VALUE_ENDS,
    VALUE_BITS,
    VALUES,
    LIST_ENDS,
    LIST_BITS,
    HEADER_KEY_ENDS,
    HEADER_KEYS,
    HEADER_VALUE_ENDS,
    HEADER_VALUE_BITS,
    HEADER_VALUES,
) = range(21)
"""Buffers. Ends are 32-bit numbers with a 0 before the first; bits, from zero on, are set where there is something."""
BUFFERS = 21

(
    COUNT,
    USED_BYTES,
    KEYS_USED,
    NULL_KEYS,
    VALUES_USED,
    NULL_VALUES,
    HEADERS_USED,
    NULL_LISTS,
    HEADER_KEYS_USED,
    HEADER_VALUES_USED,
    NULL_HEADER_VALUES,
    IMPOSSIBLE_TIMESTAMPS,
    HEADER_KEY_BYTES_SEEN,
    NEEDED_BYTES,
) = range(14)
"""What the buffers hold; what a record needs that alone is larger than the limit."""
TALLY_COLUMNS = 14

HEADER_COST_BYTES = 8
"""What a header of a record takes besides its bytes."""

NO_TIMESTAMP_US = -(2**63)
"""For a time that 64 bits cannot hold in microseconds."""
_MOST_MS = (2**63 - 1) // 1000

_SIGNATURE = (
    "int64(Array(uint8, 1, 'C', readonly=True), Array(uint8, 1, 'C', readonly=True), Array(int64, 2, 'C'),"
    " Array(uint8, 1, 'C'), Array(int64, 1, 'C'), Array(int64, 1, 'C'), Array(int64, 1, 'C'), int64, int64, int64,"
    " int64)"
)


@njit(forceinline=True)
def _store16(at: Number, value: Number) -> None:
    store8(at, u8(value & 0xFF))
    store8(at + 1, u8((value >> 8) & 0xFF))


@njit(forceinline=True)
def _put_int64(buffer: Number, number: Number, value: Number) -> None:
    if buffer != 0:
        _store64(buffer + 8 * number, np.uint64(value))


@njit(forceinline=True)
def _put_int32(buffer: Number, number: Number, value: Number) -> None:
    if buffer != 0:
        store32(buffer + 4 * number, u32(value & 0xFFFFFFFF))


@njit(forceinline=True)
def _set_bit(bits: Number, number: Number) -> None:
    at = bits + (number >> 3)
    store8(at, u8(load8(at) | u8(1 << (number & 7))))


@njit(forceinline=True)
def _microseconds(row_time: Number, delta: Number) -> Number:
    time = i64(row_time + delta)
    if (row_time ^ time) & (delta ^ time) < 0 or time > _MOST_MS or time < -_MOST_MS:
        return i64(NO_TIMESTAMP_US)
    return i64(time * 1000)


@njit(forceinline=True)
def _put_field(
    ends: Number, bits: Number, data: Number, used: Number, number: Number, source: Number, length: Number
) -> Number:
    """A key or a value, or null; how many bytes its column holds then."""
    if length >= 0:
        copy_bytes(data + used, source, length)
        used += length
        _set_bit(bits, number)
    _put_int32(ends, number + 1, used)
    return used


@njit()
def _headers_cost(records: Number, at: Number, end: Number) -> Number:
    count, _ = read_varint(records, at, end)
    return end - at + HEADER_COST_BYTES * count


@njit()
def _put_headers(records: Number, position: Number, end: Number, buffers: Counters, tally: Counters) -> None:
    """The headers of a record that is known to be well-formed."""
    count, position = read_varint(records, position, end)
    seen = u8(0)
    for _ in range(count):
        number = tally[HEADERS_USED]
        size, position = read_varint(records, position, end)
        at = tally[HEADER_KEYS_USED]
        copy_bytes(buffers[HEADER_KEYS] + at, records + position, size)
        for index in range(size):
            seen |= load8(records + position + index)
        position += size
        tally[HEADER_KEYS_USED] = at + size
        _put_int32(buffers[HEADER_KEY_ENDS], number + 1, at + size)
        size, position = read_varint(records, position, end)
        at = tally[HEADER_VALUES_USED]
        if size < 0:
            tally[NULL_HEADER_VALUES] += 1
        else:
            _set_bit(buffers[HEADER_VALUE_BITS], number)
            copy_bytes(buffers[HEADER_VALUES] + at, records + position, size)
            position += size
            at += size
            tally[HEADER_VALUES_USED] = at
        _put_int32(buffers[HEADER_VALUE_ENDS], number + 1, at)
        tally[HEADERS_USED] = number + 1
    tally[HEADER_KEY_BYTES_SEEN] |= i64(seen)


@njit(forceinline=True)
def _put_list(
    records: Number, position: Number, end: Number, buffers: Counters, tally: Counters, number: Number
) -> None:
    """All headers of a record; null where it has none."""
    before = tally[HEADERS_USED]
    _put_headers(records, position, end, buffers, tally)
    if tally[HEADERS_USED] == before:
        tally[NULL_LISTS] += 1
    else:
        _set_bit(buffers[LIST_BITS], number)
    _put_int32(buffers[LIST_ENDS], number + 1, tally[HEADERS_USED])


def _compile(stamp: int) -> Fill:
    @njit(_SIGNATURE, cache=True, nogil=True)
    def fill_columns(
        data: Bytes,
        payload: Bytes,
        rows: Rows,
        skips: Bytes,
        place: Counters,
        buffers: Counters,
        tally: Counters,
        start_offset: int,
        end_offset: int,
        limit_bytes: int,
        fixed_bytes: int,
    ) -> int:
        """The records with an offset in ``[start_offset, end_offset)`` of batches that are not skipped, from ``place``.

        FULL when the next record takes the buffers past ``limit_bytes``, of which every record takes ``fixed_bytes``
        and its bytes; MALFORMED where ``place`` names a row whose records are not what its header says.
        """
        file, records = address_of(data), address_of(payload)
        key_ends, key_bits, keys = buffers[KEY_ENDS], buffers[KEY_BITS], buffers[KEYS]
        value_ends, value_bits, values = buffers[VALUE_ENDS], buffers[VALUE_BITS], buffers[VALUES]
        offsets, timestamps, lists = buffers[OFFSETS], buffers[TIMESTAMPS], buffers[LIST_ENDS]
        made, used = tally[COUNT], tally[USED_BYTES]
        keys_used, values_used = tally[KEYS_USED], tally[VALUES_USED]
        status = i64(DONE)
        first = place[ROW]
        for number in range(first, len(rows) if stamp else 0):
            if skips[number]:
                continue
            row = rows[number]
            count, base_offset = row[RECORD_COUNT], row[BASE_OFFSET]
            last_delta = row[LAST_OFFSET] - base_offset
            end = row[PAYLOAD_END]
            index, position, next_delta = i64(0), row[PAYLOAD_START], i64(0)
            if number == first:
                index, position, next_delta = place[RECORD], place[RECORD_AT], place[NEXT_DELTA]
            place[ROW] = number
            if count * MIN_RECORD_BYTES > end - row[PAYLOAD_START]:
                status = i64(MALFORMED)
                break
            is_stamped = row[ATTRIBUTES] & LOG_APPEND_TIME_BIT != 0
            base_timestamp = row[MAX_TIMESTAMP] if is_stamped else row[BASE_TIMESTAMP]
            position_of_batch = row[POSITION]
            leader_epoch = get_int32(file, position_of_batch + LEADER_EPOCH_AT)
            base_sequence = get_int32(file, position_of_batch + BASE_SEQUENCE_AT)
            while index < count:
                start = position
                position, _, stamp_delta, delta, key_at, key_length, value_at, value_length = read_record(
                    records, start, end
                )
                if position == BAD or delta < next_delta or delta > last_delta:
                    status = i64(MALFORMED)
                    break
                offset = base_offset + delta
                if offset >= end_offset:
                    break
                if offset >= start_offset:
                    needed = fixed_bytes
                    if key_ends != 0:
                        needed += max(key_length, 0)
                    if value_ends != 0:
                        needed += max(value_length, 0)
                    if lists != 0:
                        needed += _headers_cost(records, value_at + max(value_length, 0), position)
                    if used + needed > limit_bytes:
                        tally[NEEDED_BYTES] = needed
                        place[RECORD], place[RECORD_AT], place[NEXT_DELTA] = index, start, next_delta
                        status = i64(FULL)
                        break
                    used += needed
                    _put_int64(offsets, made, offset)
                    if timestamps != 0:
                        time = _microseconds(base_timestamp, i64(0) if is_stamped else stamp_delta)
                        tally[IMPOSSIBLE_TIMESTAMPS] += time == NO_TIMESTAMP_US
                        _put_int64(timestamps, made, time)
                    if key_ends != 0:
                        tally[NULL_KEYS] += key_length < 0
                        keys_used = _put_field(key_ends, key_bits, keys, keys_used, made, records + key_at, key_length)
                    if value_ends != 0:
                        tally[NULL_VALUES] += value_length < 0
                        values_used = _put_field(
                            value_ends, value_bits, values, values_used, made, records + value_at, value_length
                        )
                    if lists != 0:
                        _put_list(records, value_at + max(value_length, 0), position, buffers, tally, made)
                    _put_int32(buffers[TIMESTAMP_TYPES], made, 1 if is_stamped else 0)
                    _put_int64(buffers[PRODUCER_IDS], made, row[PRODUCER_ID])
                    if buffers[PRODUCER_EPOCHS] != 0:
                        _store16(buffers[PRODUCER_EPOCHS] + 2 * made, row[PRODUCER_EPOCH])
                    _put_int32(
                        buffers[SEQUENCES], made, (base_sequence + delta) & MAX_SEQUENCE if base_sequence >= 0 else -1
                    )
                    _put_int32(buffers[LEADER_EPOCHS], made, leader_epoch)
                    _put_int64(buffers[BATCH_POSITIONS], made, position_of_batch)
                    made += 1
                next_delta = delta + 1
                index += 1
            if status != DONE:
                break
            if index == count and position != end:
                status = i64(MALFORMED)
                break
            place[NEXT_DELTA] = next_delta
        tally[COUNT], tally[USED_BYTES] = made, used
        tally[KEYS_USED], tally[VALUES_USED] = keys_used, values_used
        return int(status)

    compiled: Fill = fill_columns
    return compiled


fill_columns = _compile(STAMP)
