"""The walk over a batch's records in machine code: :func:`lamina.records.record_walk.walk_records`, compiled.

Owns nothing but speed: for every input its result and its errors are those of the plain walk, which words the
errors for both. Importing this module imports numba (more than a second and 50 MB) and compiles the kernel,
or loads it from numba's cache on disk; so nothing imports it by name, and
``broker/requests/kernel_loading.py`` asks for it when it pays. numba keeps the cache beside this file where
it may write there, else in the user's own cache directory, unless ``NUMBA_CACHE_DIR`` names another; where
none can be written the import fails. The compiled code checks no index by itself: every read below is
preceded by its own comparison with the size.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.records.batch import NO_TIMESTAMP, Buffer
from lamina.records.record_walk import MAX_RECORD_ERRORS, RecordFault, RecordWalk, walk_records

Bytes = npt.NDArray[np.uint8]
Faults = npt.NDArray[np.int64]

_FAULTS = (RecordFault.OFFSET_OUT_OF_ORDER, RecordFault.NO_KEY, RecordFault.TIMESTAMP_OUT_OF_RANGE)
_OFFSET_OUT_OF_ORDER, _NO_KEY, _TIMESTAMP_OUT_OF_RANGE = range(len(_FAULTS))
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

_INT32_BYTES, _INT32_LAST = 5, 0x0F
_INT64_BYTES, _INT64_LAST = 10, 0x01
"""Most bytes of a varint, and the largest last one of that many."""

_BAD = -1
"""In place of a position: what should be there is not."""

_SIGNATURE = (
    "UniTuple(int64, 5)(Array(uint8, 1, 'C', readonly=True), int64, int64, boolean, int64, int64, Array(int64, 2, 'C'))"
)
"""Given, so that importing compiles; read-only takes writable buffers too."""

_NO_FAULTS: Faults = np.empty((0, 2), np.int64)


def walk_natively(
    records: Buffer,
    record_count: int,
    base_timestamp: int,
    *,
    needs_keys: bool,
    earliest_ms: int,
    latest_ms: int,
) -> RecordWalk:
    """As :func:`~lamina.records.record_walk.walk_records`: no slower for one record, thirty times as fast for many."""
    data = np.frombuffer(records, np.uint8)
    earliest_ms, latest_ms = max(earliest_ms, _INT64_MIN), min(latest_ms, _INT64_MAX)
    index, position, max_timestamp, delta, fault_count = walk(
        data, record_count, base_timestamp, needs_keys, earliest_ms, latest_ms, _NO_FAULTS
    )
    if fault_count < MAX_RECORD_ERRORS and (position != len(data) or index != record_count):
        # The plain walk, from the first record that is not well-formed, raises what is wrong with it.
        walk_records(
            records,
            record_count,
            base_timestamp,
            needs_keys=needs_keys,
            earliest_ms=earliest_ms,
            latest_ms=latest_ms,
            first_index=index,
            position=position,
        )
        raise AssertionError(f"the two walks disagree about record {index}")
    if not fault_count:
        return RecordWalk(max_timestamp, delta, [])
    faults = np.empty((fault_count, 2), np.int64)
    walk(data, record_count, base_timestamp, needs_keys, earliest_ms, latest_ms, faults)
    return RecordWalk(max_timestamp, delta, [(found, _FAULTS[kind]) for found, kind in faults.tolist()])


@njit(forceinline=True)
def _read_number(records: Bytes, position: int, most_bytes: int, largest_last: int) -> tuple[int, int]:
    """A zigzag varint and the position after it, which is _BAD for one that is cut off or too wide.

    The only place that reads from ``records``.
    """
    zigzag = np.uint64(0)
    shift = np.uint64(0)
    last = position + most_bytes - 1
    while 0 <= position < len(records):
        byte = np.uint64(records[position])
        zigzag |= (byte & np.uint64(0x7F)) << shift
        if byte < 0x80:
            if position == last and byte > largest_last:
                break
            return int(np.int64(zigzag >> np.uint64(1)) ^ -np.int64(zigzag & np.uint64(1))), position + 1
        if position == last:
            break
        position += 1
        shift += np.uint64(7)
    return 0, _BAD


@njit(forceinline=True)
def _skip_field(records: Bytes, position: int) -> tuple[int, int]:
    """The length of a key or value, −1 being null, and the position after it, or _BAD."""
    length, position = _read_number(records, position, _INT32_BYTES, _INT32_LAST)
    if position == _BAD or length < -1:
        return length, _BAD
    return length, position + max(length, 0)


@njit(forceinline=True)
def _skip_headers(records: Bytes, position: int) -> int:
    count, position = _read_number(records, position, _INT32_BYTES, _INT32_LAST)
    if count < 0:
        return _BAD
    for _ in range(count):
        key_length, position = _skip_field(records, position)
        if key_length < 0:
            return _BAD
        _, position = _skip_field(records, position)
        if position == _BAD:
            return _BAD
    return position


@njit(forceinline=True)
def _read_record(records: Bytes, position: int) -> tuple[int, int, int, int]:
    """Timestamp delta, offset delta and key length of a record, and the position after it, or _BAD."""
    length, position = _read_number(records, position, _INT32_BYTES, _INT32_LAST)
    if position == _BAD or length < 0 or length > len(records) - position:
        return 0, 0, 0, _BAD
    end = position + length
    timestamp_delta, position = _read_number(records, position + 1, _INT64_BYTES, _INT64_LAST)
    offset_delta, position = _read_number(records, position, _INT32_BYTES, _INT32_LAST)
    key_length, position = _skip_field(records, position)
    _, position = _skip_field(records, position)
    position = _skip_headers(records, position)
    return timestamp_delta, offset_delta, key_length, position if position == end else _BAD


@njit(_SIGNATURE, cache=True, nogil=True)
def walk(
    records: Bytes,
    record_count: int,
    base_timestamp: int,
    needs_keys: bool,
    earliest_ms: int,
    latest_ms: int,
    faults: Faults,
) -> tuple[int, int, int, int, int]:
    """How many records are well-formed, where they end, the largest timestamp and its delta, and how many faults.

    Index and kind of the first faults are put into ``faults``, as many as it has rows. Ends at the last fault that
    is named.
    """
    max_timestamp, offset_delta_of_max_timestamp = NO_TIMESTAMP, -1
    position = 0
    fault_count = 0
    for index in range(record_count):
        timestamp_delta, offset_delta, key_length, next_position = _read_record(records, position)
        if next_position == _BAD:
            return index, position, max_timestamp, offset_delta_of_max_timestamp, fault_count
        if base_timestamp > _INT64_MAX - max(timestamp_delta, 0) or base_timestamp < _INT64_MIN - min(
            timestamp_delta, 0
        ):
            return index, position, max_timestamp, offset_delta_of_max_timestamp, fault_count
        position = next_position
        timestamp = base_timestamp + timestamp_delta
        if timestamp > max_timestamp:
            max_timestamp, offset_delta_of_max_timestamp = timestamp, index
        if offset_delta != index:
            fault = _OFFSET_OUT_OF_ORDER
        elif needs_keys and key_length < 0:
            fault = _NO_KEY
        elif not earliest_ms <= timestamp <= latest_ms and timestamp != NO_TIMESTAMP:
            fault = _TIMESTAMP_OUT_OF_RANGE
        else:
            continue
        if fault_count < len(faults):
            faults[fault_count, 0] = index
            faults[fault_count, 1] = fault
        fault_count += 1
        if fault_count == MAX_RECORD_ERRORS:
            return index + 1, position, max_timestamp, offset_delta_of_max_timestamp, fault_count
    return record_count, position, max_timestamp, offset_delta_of_max_timestamp, fault_count
