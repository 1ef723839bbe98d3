"""Whether the records of a batch are what its header says, in compiled code.

Owns the verdict alone: what is wrong is worded by ``log/verify/records.py``, which looks at the batch again. Must not
know what a topic accepts: offsets may have the gaps that cleaning leaves.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from lamina.records.batch import HEADER_BYTES, BatchHeader, Buffer
from lamina.records.codecs import decompress
from lamina.records.columns.memory import Bytes, address_of
from lamina.records.columns.numbers import BAD, read_record
from lamina.records.columns.sources import STAMP

Check = Callable[[Bytes, int, int, int, int, bool], bool]

_SIGNATURE = "boolean(Array(uint8, 1, 'C', readonly=True), int64, int64, int64, int64, boolean)"
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def are_as_told(batch: Buffer, header: BatchHeader, limit_bytes: int) -> bool:
    """Of a whole batch. Raises as ``read_records`` for what cannot be decompressed."""
    view = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    if header.record_count == 0 and not len(view):
        return True
    records = np.frombuffer(decompress(header.codec_id, view, limit_bytes), np.uint8)
    return check_records(
        records,
        header.record_count,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.is_log_append_time,
    )


def _compile(stamp: int) -> Check:
    @njit(_SIGNATURE, cache=True, nogil=True)
    def check_records(
        records: Bytes, count: int, last_delta: int, base_timestamp: int, max_timestamp: int, is_stamped: bool
    ) -> bool:
        """Whether there are exactly ``count``, their offsets rise within the batch, and the largest time is told."""
        data, size = address_of(records), len(records) if stamp else 0
        position, next_delta, largest = 0, 0, _INT64_MIN
        if count < 0 or count > last_delta + 1:
            return False
        for _ in range(count):
            position, _, timestamp_delta, delta, _, _, _, _ = read_record(data, position, size)
            if position == BAD or delta < next_delta or delta > last_delta:
                return False
            next_delta = delta + 1
            if not is_stamped:
                if base_timestamp > _INT64_MAX - max(timestamp_delta, 0):
                    return False
                if base_timestamp < _INT64_MIN - min(timestamp_delta, 0):
                    return False
                largest = max(largest, base_timestamp + timestamp_delta)
        return position == size and (is_stamped or count == 0 or largest == max_timestamp)

    found: Check = check_records
    return found


check_records = _compile(STAMP)
