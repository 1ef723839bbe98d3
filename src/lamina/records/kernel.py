"""The walk over a batch's records in machine code: :func:`lamina.records.record_walk.walk_records`, compiled.

Owns nothing but speed: for every input its result and its errors are those of the plain walk, which words the errors
for both; a record is parsed as all compiled code parses it (``columns.numbers``). Importing this module imports numba
(more than a second and 50 MB) and compiles the kernel, or loads it from numba's cache on disk; so nothing imports it by
name, and ``broker/requests/kernel_loading.py`` asks for it when it pays. numba keeps the cache beside this file where
it may write there, else in the user's own cache directory, unless ``NUMBA_CACHE_DIR`` names another; where none can be
written the import fails.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.records.batch import NO_TIMESTAMP, Buffer
from lamina.records.columns.memory import Bytes, address_of
from lamina.records.columns.numbers import BAD, read_record
from lamina.records.columns.sources import STAMP
from lamina.records.record_walk import MAX_RECORD_ERRORS, RecordFault, RecordWalk, walk_records

Faults = npt.NDArray[np.int64]
Walk = Callable[[Bytes, int, int, bool, int, int, Faults], tuple[int, int, int, int, int]]

_FAULTS = (RecordFault.OFFSET_OUT_OF_ORDER, RecordFault.NO_KEY, RecordFault.TIMESTAMP_OUT_OF_RANGE)
_OFFSET_OUT_OF_ORDER, _NO_KEY, _TIMESTAMP_OUT_OF_RANGE = range(len(_FAULTS))
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

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
    """As :func:`~lamina.records.record_walk.walk_records`: no slower for one record, many times as fast for many."""
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


def _compile(stamp: int) -> Walk:
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
        data, size = address_of(records), len(records) if stamp else 0
        position = 0
        fault_count = 0
        for index in range(record_count):
            end, _, timestamp_delta, offset_delta, _, key_length, _, _ = read_record(data, position, size)
            if end == BAD:
                return index, position, max_timestamp, offset_delta_of_max_timestamp, fault_count
            if base_timestamp > _INT64_MAX - max(timestamp_delta, 0) or base_timestamp < _INT64_MIN - min(
                timestamp_delta, 0
            ):
                return index, position, max_timestamp, offset_delta_of_max_timestamp, fault_count
            position = end
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

    found: Walk = walk
    return found


walk = _compile(STAMP)
