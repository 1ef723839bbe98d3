"""Which batches of a new segment get an entry in its indexes, in compiled code (formats.md §2.3)."""

from collections.abc import Callable

from numba import njit

from lamina.cleaning.kernels.sources import STAMP
from lamina.records.columns.headers import Rows

Index = Callable[[Rows, int, Rows, Rows, Rows], None]

BYTES_SINCE = 0
LARGEST_TIMESTAMP = 1
LARGEST_OFFSET = 2
OFFSET_ENTRIES = 3
TIME_ENTRIES = 4
LAST_TIMESTAMP = 5
INDEX_STATE = 6

BATCH_POSITION, BATCH_BYTES, BATCH_LAST_OFFSET, BATCH_TIMESTAMP = range(4)
INDEXED_COLUMNS = 4

_SIGNATURE = "void(Array(int64, 2, 'C'), int64, Array(int64, 1, 'C'), Array(int64, 2, 'C'), Array(int64, 2, 'C'))"


def _compile(stamp: int) -> Index:
    @njit(_SIGNATURE, cache=True, nogil=True)
    def index_batches(batches: Rows, interval_bytes: int, state: Rows, offsets: Rows, times: Rows) -> None:
        """Count batches in; ``offsets`` and ``times`` have as many rows as the indexes may have entries.

        An entry is due once more than the interval was written since the last one. One slot of the time index is
        kept for the last entry.
        """
        for number in range(len(batches) if stamp else 0):
            batch = batches[number]
            if batch[BATCH_TIMESTAMP] > state[LARGEST_TIMESTAMP]:
                state[LARGEST_TIMESTAMP] = batch[BATCH_TIMESTAMP]
                state[LARGEST_OFFSET] = batch[BATCH_LAST_OFFSET]
            if state[BYTES_SINCE] > interval_bytes:
                if state[OFFSET_ENTRIES] < len(offsets):
                    offsets[state[OFFSET_ENTRIES], 0] = batch[BATCH_LAST_OFFSET]
                    offsets[state[OFFSET_ENTRIES], 1] = batch[BATCH_POSITION]
                    state[OFFSET_ENTRIES] += 1
                if state[LARGEST_TIMESTAMP] > state[LAST_TIMESTAMP] and state[TIME_ENTRIES] < len(times) - 1:
                    times[state[TIME_ENTRIES], 0] = state[LARGEST_TIMESTAMP]
                    times[state[TIME_ENTRIES], 1] = state[LARGEST_OFFSET]
                    state[LAST_TIMESTAMP] = state[LARGEST_TIMESTAMP]
                    state[TIME_ENTRIES] += 1
                state[BYTES_SINCE] = 0
            state[BYTES_SINCE] += batch[BATCH_BYTES]

    compiled: Index = index_batches
    return compiled


index_batches = _compile(STAMP)
