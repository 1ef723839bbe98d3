"""The keys of a slice of batches, hashed, in compiled code."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.cleaning.kernels.siphash import siphash
from lamina.cleaning.kernels.sources import STAMP
from lamina.records.columns.headers import Rows
from lamina.records.columns.layout import (
    BASE_OFFSET,
    LAST_OFFSET,
    MIN_RECORD_BYTES,
    PAYLOAD_END,
    PAYLOAD_START,
    RECORD_COUNT,
)
from lamina.records.columns.memory import Bytes, address_of, copy_bytes
from lamina.records.columns.numbers import BAD, read_record

Words = npt.NDArray[np.uint64]
Halves = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.uint8]
Scan = Callable[[Bytes, Rows, Flags, int, int, int, int, int, Words, Words, Halves, Halves, Bytes], tuple[int, int]]

_SIGNATURE = (
    "UniTuple(int64, 2)(Array(uint8, 1, 'C', readonly=True), Array(int64, 2, 'C'), Array(uint8, 1, 'C'),"
    " int64, int64, int64, uint64, uint64, Array(uint64, 1, 'C'), Array(uint64, 1, 'C'), Array(uint32, 1, 'C'),"
    " Array(uint32, 1, 'C'), Array(uint8, 1, 'C'))"
)


def _compile(stamp: int) -> Scan:
    @njit(_SIGNATURE, cache=True, nogil=True)
    def scan_keys(
        payload: Bytes,
        rows: Rows,
        skips: Flags,
        ordinal: int,
        from_offset: int,
        to_offset: int,
        k0: int,
        k1: int,
        firsts: Words,
        seconds: Words,
        ordinals: Halves,
        lengths: Halves,
        keys: Bytes,
    ) -> tuple[int, int]:
        """The keys of the records with an offset in ``[from_offset, to_offset)``, of batches that are not skipped.

        ``ordinal`` is the number of the first record of the first batch, counted over all records of the pass. How
        many were found, and the number of a batch whose records are not well-formed, or BAD. Either ``seconds`` or
        ``lengths`` and ``keys`` are empty: who has the key's bytes needs but one half of its hash.
        """
        found = 0
        copied = 0
        records, keys_at = address_of(payload), address_of(keys)
        wants_keys = len(lengths) > 0
        for number in range(len(rows) if stamp else 0):
            row = rows[number]
            count = row[RECORD_COUNT]
            base_offset = row[BASE_OFFSET]
            if skips[number] or row[LAST_OFFSET] < from_offset or base_offset >= to_offset:
                ordinal += count
                continue
            position = row[PAYLOAD_START]
            end = row[PAYLOAD_END]
            if count * MIN_RECORD_BYTES > end - position:
                return found, number
            next_delta = 0
            last_delta = row[LAST_OFFSET] - base_offset
            for _ in range(count):
                position, _, _, delta, key_at, key_length, _, _ = read_record(records, position, end)
                if position == BAD or delta < next_delta or delta > last_delta:
                    return found, number
                next_delta = delta + 1
                offset = base_offset + delta
                if key_length >= 0 and from_offset <= offset < to_offset:
                    first, second = siphash(records + key_at, key_length, k0, k1, not wants_keys)
                    firsts[found] = first
                    ordinals[found] = ordinal
                    if wants_keys:
                        lengths[found] = key_length
                        copy_bytes(keys_at + copied, records + key_at, key_length)
                        copied += key_length
                    else:
                        seconds[found] = second
                    found += 1
                ordinal += 1
            if position != end:
                return found, number
        return found, BAD

    compiled: Scan = scan_keys
    return compiled


scan_keys = _compile(STAMP)
