"""Judging and rewriting a slice of batches, in compiled code.

The rules are those of ``compaction.retain``, compiled from its source; here are only bytes.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from lamina.cleaning.kernels.columns import (
    ABORTED_RECORDS,
    BATCHES_IN,
    BATCHES_OUT,
    EARLIEST_HORIZON,
    EMPTY_IN,
    EMPTY_OUT,
    EXPIRED_MARKERS,
    EXPIRED_TOMBSTONES,
    FATE,
    HORIZONS,
    HORIZONS_SET,
    LATEST_HORIZON,
    MARKERS_IN,
    MARKERS_OUT,
    OUT_ATTRIBUTES,
    OUT_BASE_TIMESTAMP,
    OUT_END,
    OUT_MAX_TIMESTAMP,
    OUT_RECORDS,
    OUT_START,
    RECORDS_IN,
    RECORDS_OUT,
    RECORDS_WITHOUT_KEY,
    SUPERSEDED_RECORDS,
    TOMBSTONES_IN,
    TOMBSTONES_OUT,
)
from lamina.cleaning.kernels.keys import Flags
from lamina.cleaning.kernels.sources import STAMP
from lamina.compaction import retain
from lamina.compaction.retain import NEVER_MS
from lamina.compaction.verdicts import DISCARD_RECORDS, DISCARDABLE, RETAIN_EMPTY
from lamina.records.batch import CODEC_MASK, CONTROL_BIT, DELETE_HORIZON_BIT, LOG_APPEND_TIME_BIT, NO_TIMESTAMP
from lamina.records.columns.checksum import checksum
from lamina.records.columns.headers import Rows
from lamina.records.columns.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    BASE_TIMESTAMP_AT,
    COVERED_AT,
    CRC_AT,
    HEADER_BYTES,
    LAST_OFFSET,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAX_TIMESTAMP,
    MAX_TIMESTAMP_AT,
    MIN_RECORD_BYTES,
    PAYLOAD_END,
    PAYLOAD_START,
    POSITION,
    RECORD_COUNT,
    RECORD_COUNT_AT,
    SIZE,
)
from lamina.records.columns.memory import Bytes, Number, address_of, copy_bytes, i64, store8, u8
from lamina.records.columns.numbers import (
    BAD,
    put_int16,
    put_int32,
    put_int64,
    put_varint,
    read_record,
    varint_bytes,
)

Counters = Rows
Rewrite = Callable[
    [Bytes, Bytes, Rows, Flags, int, int, Bytes, int, int, int, Bytes, Rows, Rows, Counters], tuple[int, int, int, bool]
]

should_retain_record = njit(forceinline=True)(retain.should_retain_record)
batch_retention = njit(forceinline=True)(retain.batch_retention)
new_horizon_ms = njit(forceinline=True)(retain.new_horizon_ms)

_DISCARD, _RETAIN_HEADER, _COPY = retain.DISCARD, retain.RETAIN_HEADER, retain.COPY
_WITH_NEW_HORIZON = retain.REBUILD_WITH_NEW_HORIZON
_RETAIN, _SUPERSEDED = retain.RETAIN, retain.SUPERSEDED
_EXPIRED_TOMBSTONE, _WITHOUT_KEY = retain.EXPIRED_TOMBSTONE, retain.WITHOUT_KEY

# The tally of one batch: its records by verdict, and these.
_TOMBSTONES = retain.WITHOUT_KEY + 1
_KEPT_TOMBSTONES = retain.WITHOUT_KEY + 2
_NEWEST_TIMESTAMP = retain.WITHOUT_KEY + 3
_TALLY_COLUMNS = retain.WITHOUT_KEY + 4

RECORD_START, STAMP_END, RECORD_END, TIMESTAMP = range(4)
RECORD_COLUMNS = 4

MOST_GROWTH_BYTES = 11
"""By which a record can grow: a timestamp delta from one byte to ten, and with it the length of the record."""

_SIGNATURE = (
    "Tuple((int64, int64, int64, boolean))(Array(uint8, 1, 'C', readonly=True), Array(uint8, 1, 'C', readonly=True),"
    " Array(int64, 2, 'C'), Array(uint8, 1, 'C'), int64, int64, Array(uint8, 1, 'C', readonly=True), int64, int64,"
    " int64, Array(uint8, 1, 'C'), Array(int64, 2, 'C'), Array(int64, 2, 'C'), Array(int64, 1, 'C'))"
)


@njit()
def _put_records(payload: Number, kept: Rows, count: Number, base_timestamp: Number, out: Number) -> Number:
    """The kept records with their timestamps relative to ``base_timestamp``; how many bytes they take."""
    at = i64(0)
    for number in range(count):
        delta = kept[number, TIMESTAMP] - base_timestamp
        rest_at = kept[number, STAMP_END]
        rest = kept[number, RECORD_END] - rest_at
        at = put_varint(out, at, 1 + varint_bytes(delta) + rest)
        store8(out + at, u8(0))
        at = put_varint(out, at + 1, delta)
        copy_bytes(out + at, payload + rest_at, rest)
        at += rest
    return at


@njit()
def _copy_runs(payload: Number, kept: Rows, count: Number, out: Number) -> Number:
    """The kept records as they are, neighbours together; how many bytes they take."""
    at = i64(0)
    number = 0
    while number < count:
        start = kept[number, RECORD_START]
        end = kept[number, RECORD_END]
        number += 1
        while number < count and kept[number, RECORD_START] == end:
            end = kept[number, RECORD_END]
            number += 1
        copy_bytes(out + at, payload + start, end - start)
        at += end - start
    return at


@njit()
def _judge_records(
    records: Number,
    row: Rows,
    ordinal: Number,
    superseded: Bytes,
    end_offset: Number,
    now_ms: Number,
    kept: Rows,
    tally: Rows,
) -> bool:
    """Put the records of a batch that stay into ``kept`` and count all in ``tally``; whether they are well-formed."""
    attributes = row[ATTRIBUTES]
    is_control = attributes & CONTROL_BIT != 0
    is_log_append_time = attributes & LOG_APPEND_TIME_BIT != 0
    horizon_ms = row[BASE_TIMESTAMP] if attributes & DELETE_HORIZON_BIT else i64(NEVER_MS)
    base_offset = row[BASE_OFFSET]
    last_delta = row[LAST_OFFSET] - base_offset
    position = row[PAYLOAD_START]
    end = row[PAYLOAD_END]
    next_delta = 0
    kept_count = superseded_count = expired_count = keyless_count = tombstones = kept_tombstones = 0
    newest_timestamp = i64(NO_TIMESTAMP)
    for index in range(row[RECORD_COUNT]):
        start = position
        position, stamp_end, stamp_delta, delta, _, key_length, _, value_length = read_record(records, start, end)
        if position == BAD or delta < next_delta or delta > last_delta:
            return False
        next_delta = delta + 1
        place = ordinal + index
        judged = should_retain_record(
            is_control,
            base_offset + delta,
            end_offset,
            key_length >= 0,
            superseded[place >> 3] >> (place & 7) & 1 != 0,
            value_length >= 0,
            horizon_ms,
            now_ms,
        )
        if value_length < 0:
            tombstones += 1
        if judged == _RETAIN:
            timestamp = row[MAX_TIMESTAMP] if is_log_append_time else row[BASE_TIMESTAMP] + stamp_delta
            if value_length < 0:
                kept_tombstones += 1
            if kept_count == 0 or timestamp > newest_timestamp:
                newest_timestamp = timestamp
            kept[kept_count, RECORD_START] = start
            kept[kept_count, STAMP_END] = stamp_end
            kept[kept_count, RECORD_END] = position
            kept[kept_count, TIMESTAMP] = timestamp
            kept_count += 1
        elif judged == _SUPERSEDED:
            superseded_count += 1
        elif judged == _EXPIRED_TOMBSTONE:
            expired_count += 1
        else:
            keyless_count += 1
    tally[_RETAIN] = kept_count
    tally[_SUPERSEDED] = superseded_count
    tally[_EXPIRED_TOMBSTONE] = expired_count
    tally[_WITHOUT_KEY] = keyless_count
    tally[_TOMBSTONES] = tombstones
    tally[_KEPT_TOMBSTONES] = kept_tombstones
    tally[_NEWEST_TIMESTAMP] = newest_timestamp
    return bool(position == end)


@njit()
def _judge_header(
    row: Rows, became: Number, kept: Rows, tally: Rows, now_ms: Number, delete_retention_ms: Number, fate_row: Rows
) -> None:
    """What the header of a batch says from now on."""
    attributes = row[ATTRIBUTES]
    fate_row[FATE] = became
    fate_row[OUT_RECORDS] = tally[_RETAIN]
    fate_row[OUT_MAX_TIMESTAMP] = row[MAX_TIMESTAMP]
    fate_row[OUT_BASE_TIMESTAMP] = row[BASE_TIMESTAMP]
    fate_row[OUT_ATTRIBUTES] = attributes
    if became == _RETAIN_HEADER:
        fate_row[OUT_ATTRIBUTES] = attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
        fate_row[OUT_BASE_TIMESTAMP] = NO_TIMESTAMP
    elif became != _DISCARD and became != _COPY:
        if became == _WITH_NEW_HORIZON:
            fate_row[OUT_ATTRIBUTES] = attributes | DELETE_HORIZON_BIT
            fate_row[OUT_BASE_TIMESTAMP] = new_horizon_ms(now_ms, delete_retention_ms)
        elif attributes & DELETE_HORIZON_BIT == 0:
            fate_row[OUT_BASE_TIMESTAMP] = kept[0, TIMESTAMP]
        if attributes & LOG_APPEND_TIME_BIT == 0:
            fate_row[OUT_MAX_TIMESTAMP] = tally[_NEWEST_TIMESTAMP]


@njit()
def _put_batch(file: Number, records: Number, row: Rows, fate_row: Rows, kept: Rows, batch: Number) -> Number:
    """What is left of a batch, at an address; how many bytes. Of a compressed one the new records alone."""
    became = fate_row[FATE]
    if became == _DISCARD:
        return i64(0)
    if became == _COPY:
        copy_bytes(batch, file + row[POSITION], row[SIZE])
        return row[SIZE]
    is_compressed = fate_row[OUT_ATTRIBUTES] & CODEC_MASK != 0
    size = i64(0 if is_compressed else HEADER_BYTES)
    base_timestamp = fate_row[OUT_BASE_TIMESTAMP]
    if row[ATTRIBUTES] & LOG_APPEND_TIME_BIT or base_timestamp != row[BASE_TIMESTAMP]:
        size += _put_records(records, kept, fate_row[OUT_RECORDS], base_timestamp, batch + size)
    else:
        size += _copy_runs(records, kept, fate_row[OUT_RECORDS], batch + size)
    if not is_compressed:
        copy_bytes(batch, file + row[POSITION], HEADER_BYTES)
        put_int32(batch, LENGTH_AT, size - LOG_OVERHEAD_BYTES)
        put_int16(batch, COVERED_AT, fate_row[OUT_ATTRIBUTES])
        put_int64(batch, BASE_TIMESTAMP_AT, base_timestamp)
        put_int64(batch, MAX_TIMESTAMP_AT, fate_row[OUT_MAX_TIMESTAMP])
        put_int32(batch, RECORD_COUNT_AT, fate_row[OUT_RECORDS])
        put_int32(batch, CRC_AT, checksum(batch + COVERED_AT, batch + size))
    return size


@njit()
def _count(row: Rows, fate_row: Rows, drops: bool, tally: Rows, counters: Counters) -> None:
    """Add a batch to the figures of the pass."""
    count = row[RECORD_COUNT]
    is_control = row[ATTRIBUTES] & CONTROL_BIT != 0
    counters[BATCHES_IN] += 1
    counters[RECORDS_IN] += count
    counters[TOMBSTONES_IN] += tally[_TOMBSTONES]
    counters[SUPERSEDED_RECORDS] += tally[_SUPERSEDED]
    counters[EXPIRED_TOMBSTONES] += tally[_EXPIRED_TOMBSTONE]
    counters[RECORDS_WITHOUT_KEY] += tally[_WITHOUT_KEY]
    if count == 0:
        counters[EMPTY_IN] += 1
    elif is_control:
        counters[MARKERS_IN] += 1
    if drops:
        counters[EXPIRED_MARKERS if is_control else ABORTED_RECORDS] += count
    if fate_row[FATE] == _DISCARD:
        return
    counters[BATCHES_OUT] += 1
    counters[RECORDS_OUT] += tally[_RETAIN]
    counters[TOMBSTONES_OUT] += tally[_KEPT_TOMBSTONES]
    if tally[_RETAIN] == 0:
        counters[EMPTY_OUT] += 1
    elif is_control:
        counters[MARKERS_OUT] += 1
    if fate_row[FATE] == _WITH_NEW_HORIZON:
        counters[HORIZONS_SET] += 1
    if fate_row[OUT_ATTRIBUTES] & DELETE_HORIZON_BIT:
        counters[HORIZONS] += 1
        horizon_ms = fate_row[OUT_BASE_TIMESTAMP]
        counters[EARLIEST_HORIZON] = min(counters[EARLIEST_HORIZON], horizon_ms)
        counters[LATEST_HORIZON] = max(counters[LATEST_HORIZON], horizon_ms)


def _compile(stamp: int) -> Rewrite:
    @njit(_SIGNATURE, cache=True, nogil=True)
    def rewrite_batches(
        data: Bytes,
        payload: Bytes,
        rows: Rows,
        verdicts: Flags,
        begin: int,
        ordinal: int,
        superseded: Bytes,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
        out: Bytes,
        kept: Rows,
        fates: Rows,
        counters: Counters,
    ) -> tuple[int, int, int, bool]:
        """Judge the batches from row ``begin`` on and put what is left of them into ``out``, from its start.

        Of a compressed batch that is rebuilt, its new records alone: header and CRC come after compressing. Returns
        the row where it stopped, because ``out`` or ``kept`` is full or a batch is bad; the ordinal of that row's first
        record; the bytes in ``out``; and whether it is a bad batch.
        """
        at = i64(0)
        file, records, out_at = address_of(data), address_of(payload), address_of(out)
        tally = np.zeros(_TALLY_COLUMNS, np.int64)
        for number in range(begin, len(rows) if stamp else 0):
            row = rows[number]
            count = row[RECORD_COUNT]
            drops = verdicts[number] & DISCARD_RECORDS != 0
            payload_bytes = row[PAYLOAD_END] - row[PAYLOAD_START]
            if not drops and count * MIN_RECORD_BYTES > payload_bytes:
                return number, ordinal, at, True
            most_bytes = HEADER_BYTES + max(payload_bytes + count * MOST_GROWTH_BYTES, row[SIZE])
            if most_bytes > len(out) - at or count > len(kept):
                return number, ordinal, at, False
            tally[:] = 0
            if not drops and not _judge_records(records, row, ordinal, superseded, end_offset, now_ms, kept, tally):
                return number, ordinal, at, True
            became = batch_retention(
                count,
                tally[_RETAIN],
                tally[_KEPT_TOMBSTONES],
                verdicts[number] & RETAIN_EMPTY != 0,
                row[ATTRIBUTES] & CONTROL_BIT != 0 and verdicts[number] & DISCARDABLE != 0,
                row[ATTRIBUTES] & DELETE_HORIZON_BIT != 0,
            )
            fate_row = fates[number]
            _judge_header(row, became, kept, tally, now_ms, delete_retention_ms, fate_row)
            fate_row[OUT_START] = at
            at += _put_batch(file, records, row, fate_row, kept, out_at + at)
            fate_row[OUT_END] = at
            _count(row, fate_row, drops, tally, counters)
            ordinal += count
        return len(rows), ordinal, at, False

    compiled: Rewrite = rewrite_batches
    return compiled


rewrite_batches = _compile(STAMP)
