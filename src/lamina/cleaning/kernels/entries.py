"""Keys as packed entries, bucket after bucket, in compiled code.

An entry is a tag, the number of its record, the key's length and the key's bytes, each number four bytes in the
machine's order, nothing aligned. The upper bits of a key's hash name its bucket, the lower ones are its tag.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.cleaning.kernels.keys import Halves, Words
from lamina.cleaning.kernels.sources import STAMP
from lamina.records.columns.memory import Bytes, address_of, copy_bytes, i64, store32, u32, u64

Numbers = npt.NDArray[np.int64]
Measure = Callable[[int, Words, Halves, int, Numbers, Numbers], None]
Put = Callable[[int, Words, Halves, Halves, Bytes, int, Numbers, Bytes], None]

TAG_AT = 0
ORDINAL_AT = 4
LENGTH_AT = 8
ENTRY_HEADER_BYTES = 12


def _compile_measure(stamp: int) -> Measure:
    @njit(
        "void(int64, Array(uint64, 1, 'C'), Array(uint32, 1, 'C'), int64, Array(int64, 1, 'C'), Array(int64, 1, 'C'))",
        cache=True,
        nogil=True,
    )
    def measure_buckets(count: int, firsts: Words, lengths: Halves, bits: int, sizes: Numbers, counts: Numbers) -> None:
        """Add up how many entries each bucket has, and their bytes."""
        shift = u64(64 - bits)
        for number in range(count if stamp else 0):
            bucket = i64(firsts[number] >> shift) if bits else 0
            sizes[bucket] += ENTRY_HEADER_BYTES + i64(lengths[number])
            counts[bucket] += 1

    compiled: Measure = measure_buckets
    return compiled


def _compile_put(stamp: int) -> Put:
    @njit(
        "void(int64, Array(uint64, 1, 'C'), Array(uint32, 1, 'C'), Array(uint32, 1, 'C'), Array(uint8, 1, 'C'), int64,"
        " Array(int64, 1, 'C'), Array(uint8, 1, 'C'))",
        cache=True,
        nogil=True,
    )
    def put_entries(
        count: int,
        firsts: Words,
        ordinals: Halves,
        lengths: Halves,
        keys: Bytes,
        bits: int,
        ends: Numbers,
        out: Bytes,
    ) -> None:
        """Write the entries into their buckets; ``ends`` is where the next of each goes."""
        shift = u64(64 - bits)
        key_at, out_at = address_of(keys), address_of(out)
        for number in range(count if stamp else 0):
            first = firsts[number]
            length = i64(lengths[number])
            bucket = i64(first >> shift) if bits else 0
            at = out_at + ends[bucket]
            store32(at + TAG_AT, u32(first & u64(0xFFFFFFFF)))
            store32(at + ORDINAL_AT, ordinals[number])
            store32(at + LENGTH_AT, lengths[number])
            copy_bytes(at + ENTRY_HEADER_BYTES, key_at, length)
            key_at += length
            ends[bucket] += ENTRY_HEADER_BYTES + length

    compiled: Put = put_entries
    return compiled


measure_buckets = _compile_measure(STAMP)
put_entries = _compile_put(STAMP)
