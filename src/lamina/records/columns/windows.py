"""The records of one batch, however large, as windows of whole records.

Owns that a record which straddles two pieces is carried over, so that memory is bounded by a window or by the largest
record, how large that may be, and that there are as many records as the header counts, and nothing else. Must not know
what a record holds, nor where the pieces come from.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from lamina.errors import CorruptMessage, MessageTooLarge
from lamina.records.batch import Buffer
from lamina.records.columns.memory import Bytes, address_of
from lamina.records.columns.numbers import BAD, read_varint
from lamina.records.columns.sources import STAMP

WINDOW_BYTES = 4 * 1024 * 1024
MOST_RECORD_BYTES = 256 * 1024 * 1024
"""A few KiB of zeros, compressed, may claim to be a record of 2 GiB."""

_MOST_LENGTH_BYTES = 5
_SIGNATURE = "UniTuple(int64, 3)(Array(uint8, 1, 'C', readonly=True), int64)"


class Window(NamedTuple):
    records: Bytes
    first: int
    """The index of its first record in the batch."""
    record_count: int


def record_windows(pieces: Iterator[Buffer], record_count: int, window_bytes: int) -> Iterator[Window]:
    """Raises `CorruptMessage` where the pieces are not so many records, each as long as it says.

    Raises `MessageTooLarge` for one of more than `MOST_RECORD_BYTES`, before it is collected.
    """
    first, carried, wanted, is_over = 0, b"", window_bytes, False
    while not is_over:
        parts, size = [carried], len(carried)
        while size < wanted and not is_over:
            piece = next(pieces, None)
            if piece is None:
                is_over = True
            else:
                parts.append(bytes(piece))
                size += len(piece)
        window: Bytes = np.frombuffer(b"".join(parts), np.uint8)
        parts.clear()
        count, end, needed = count_whole(window, record_count - first)
        if count:
            yield Window(window[:end], first, count)
        first += count
        left = len(window) - end
        if needed == BAD:
            raise CorruptMessage(f"record {first} does not begin with its length")
        if needed > MOST_RECORD_BYTES:
            raise MessageTooLarge(f"record {first} takes {needed} bytes, and {MOST_RECORD_BYTES} are the most")
        if left and first == record_count:
            raise CorruptMessage(f"bytes follow the last of {record_count} records")
        if left and is_over:
            raise CorruptMessage(f"record {first} takes {needed} bytes, {left} are left")
        carried, wanted = window[end:].tobytes(), max(window_bytes, needed)
    if first < record_count:
        raise CorruptMessage(f"there are {first} records, and the header counts {record_count}")


def _compile(stamp: int) -> Callable[[Bytes, int], tuple[int, int, int]]:
    @njit(_SIGNATURE, cache=True, nogil=True)
    def count_whole(records: Bytes, most: int) -> tuple[int, int, int]:
        """How many records are there whole, where they end, and how many bytes the next one takes at least.

        BAD in place of these where it has no length.
        """
        data, size = address_of(records), len(records) if stamp else 0
        position = count = 0
        while count < most and position < size:
            length, begin = read_varint(data, position, size)
            if begin == BAD:
                is_cut = size - position < _MOST_LENGTH_BYTES
                return count, position, size - position + 1 if is_cut else BAD
            if length < 0:
                return count, position, BAD
            if length > size - begin:
                return count, position, begin - position + length
            position = begin + length
            count += 1
        return count, position, 0

    found: Callable[[Bytes, int], tuple[int, int, int]] = count_whole
    return found


count_whole = _compile(STAMP)
