"""Telling apart the keys of a bucket, in compiled code: by their bytes, or by hashes alone.

Open addressing. A slot of the first is a few bits of a hash and the address of an entry; a bucket's table lies in the
processor's cache, which is what buckets are for.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.cleaning.kernels.entries import ENTRY_HEADER_BYTES, LENGTH_AT, ORDINAL_AT, TAG_AT, Numbers
from lamina.cleaning.kernels.keys import Words
from lamina.cleaning.kernels.sources import STAMP
from lamina.records.columns.memory import (
    Bytes,
    Number,
    address_of,
    copy_bytes,
    equal_bytes,
    i64,
    load8,
    load32,
    store8,
    store32,
    u8,
    u32,
    u64,
)

Table = npt.NDArray[np.int64]
ReduceBuckets = Callable[
    [Numbers, Table, Table, Numbers, Table, Table, Numbers, Table, bool, Words, Bytes, Numbers, Numbers, Bytes], None
]
ReduceHashes = Callable[[Words, Words, Bytes, Words, Bytes], None]

LEAST_SLOTS = 16
_ADDRESS_BITS = 48
"""Of a slot: as many as processes have. The rest are of the tag."""
_ADDRESS_MASK = (1 << _ADDRESS_BITS) - 1
_SHORT_TAG_MASK = (1 << (64 - _ADDRESS_BITS)) - 1


@njit(forceinline=True)
def _home(tag: Number, slots: Number) -> Number:
    """Where 32 bits of a hash belong among at most 2**32 slots."""
    return int(i64((u64(tag) * u64(slots)) >> u64(32)))


@njit(forceinline=True)
def _set_bit(bits: Number, number: Number) -> None:
    at = bits + (number >> 3)
    store8(at, u8(load8(at) | u8(1 << (number & 7))))


@njit(forceinline=True)
def _slot_of(entry: Number, at: Number) -> Number:
    """What a slot says of an entry that lies at an address."""
    return ((u64(load32(entry + TAG_AT)) & u64(_SHORT_TAG_MASK)) << u64(_ADDRESS_BITS)) | u64(at)


@njit(forceinline=True)
def _entry_in(slot: Number) -> Number:
    return i64(slot & u64(_ADDRESS_MASK))


@njit(forceinline=True)
def _find_empty(slots: Words, size: Number, entry: Number) -> Number:
    """Where an entry goes whose key is not there."""
    at = _home(load32(entry + TAG_AT), size)
    while slots[at] != u64(0):
        at = (at + 1) & (size - 1)
    return at


@njit(forceinline=True)
def _find(slots: Words, size: Number, entry: Number) -> Number:
    """The slot of an entry's key, or the empty one where it would go."""
    tag = load32(entry + TAG_AT)
    length = load32(entry + LENGTH_AT)
    short_tag = u64(tag) & u64(_SHORT_TAG_MASK)
    at = _home(tag, size)
    while slots[at] != u64(0):
        if slots[at] >> u64(_ADDRESS_BITS) == short_tag:
            other = _entry_in(slots[at])
            if load32(other + LENGTH_AT) == length and equal_bytes(
                other + ENTRY_HEADER_BYTES, entry + ENTRY_HEADER_BYTES, i64(length)
            ):
                break
        at = (at + 1) & (size - 1)
    return at


@njit(forceinline=True)
def _size_of(entry: Number) -> Number:
    return ENTRY_HEADER_BYTES + i64(load32(entry + LENGTH_AT))


def _compile_reduce_buckets(stamp: int) -> ReduceBuckets:
    @njit(
        "void(Array(int64, 1, 'C'), Array(int64, 2, 'C'), Array(int64, 2, 'C'), Array(int64, 1, 'C'),"
        " Array(int64, 2, 'C'), Array(int64, 2, 'C'), Array(int64, 1, 'C'), Array(int64, 2, 'C'), boolean,"
        " Array(uint64, 1, 'C'), Array(uint8, 1, 'C'), Array(int64, 1, 'C'), Array(int64, 1, 'C'),"
        " Array(uint8, 1, 'C'))",
        cache=True,
        nogil=True,
    )
    def reduce_buckets(
        known: Numbers,
        known_starts: Table,
        known_counts: Table,
        fresh: Numbers,
        starts: Table,
        counts: Table,
        others: Numbers,
        other_starts: Table,
        keeps: bool,
        slots: Words,
        out: Bytes,
        out_starts: Numbers,
        out_counts: Numbers,
        superseded: Bytes,
    ) -> None:
        """Bucket by bucket: mark the entries that a later one of the same key supersedes, then all ``others`` that have
        one of their keys.

        ``known`` entries have a key each and come first; they are brought up to date where they lie. ``fresh`` ones
        follow, in log order; those with a new key go to ``out``, as many as ``out_counts`` says: with ``keeps`` one
        bucket after the other, as ``out_starts`` says; without, ``out`` has room for any one bucket. Blocks are given
        by address, with a column in each table and a row there for each bucket. ``slots`` are a power of two, twice the
        entries of any bucket.
        """
        used = 0
        slots_most = len(slots) if stamp else 0
        out_at, bits_at = address_of(out), address_of(superseded)
        for bucket in range(len(counts)):
            count = known_counts[bucket].sum() + counts[bucket].sum()
            size = slots_most
            while size >= 4 * count and size > LEAST_SLOTS:
                size //= 2
            for at in range(size):
                slots[at] = u64(0)
            for block in range(len(known)):
                entry = known[block] + known_starts[bucket, block]
                stop = known[block] + known_starts[bucket + 1, block]
                while entry < stop:
                    slots[_find_empty(slots, size, entry)] = _slot_of(entry, entry)
                    entry += _size_of(entry)
            if not keeps:
                used = 0
            found = 0
            for block in range(len(fresh)):
                entry = fresh[block] + starts[bucket, block]
                stop = fresh[block] + starts[bucket + 1, block]
                while entry < stop:
                    entry_bytes = _size_of(entry)
                    at = _find(slots, size, entry)
                    if slots[at] == u64(0):
                        copy_bytes(out_at + used, entry, entry_bytes)
                        slots[at] = _slot_of(entry, out_at + used)
                        used += entry_bytes
                        found += 1
                    else:
                        newest = _entry_in(slots[at]) + ORDINAL_AT
                        _set_bit(bits_at, i64(load32(newest)))
                        store32(newest, u32(load32(entry + ORDINAL_AT)))
                    entry += entry_bytes
            for block in range(len(others)):
                entry = others[block] + other_starts[bucket, block]
                stop = others[block] + other_starts[bucket + 1, block]
                while entry < stop:
                    if slots[_find(slots, size, entry)] != u64(0):
                        _set_bit(bits_at, i64(load32(entry + ORDINAL_AT)))
                    entry += _size_of(entry)
            out_counts[bucket] = found
            out_starts[bucket + 1] = used

    compiled: ReduceBuckets = reduce_buckets
    return compiled


def _compile_reduce_hashes(stamp: int) -> ReduceHashes:
    @njit(
        "void(Array(uint64, 1, 'C', readonly=True), Array(uint64, 1, 'C', readonly=True),"
        " Array(uint8, 1, 'C', readonly=True), Array(uint64, 1, 'C'), Array(uint8, 1, 'C'))",
        cache=True,
        nogil=True,
    )
    def reduce_hashes(firsts: Words, seconds: Words, is_dirty: Bytes, slots: Words, superseded: Bytes) -> None:
        """As above, for entries in log order that are told apart by their 128-bit hashes alone.

        ``slots`` are zeros, a power of two, more than there are entries; ``superseded`` is one byte an entry.
        """
        size = len(slots) if stamp else 0
        for dirty_turn in (True, False):
            for number in range(len(firsts)):
                if (is_dirty[number] != 0) != dirty_turn:
                    continue
                at = _home(firsts[number] >> u64(32), size)
                while slots[at] != u64(0):
                    other = i64(slots[at]) - 1
                    if firsts[other] == firsts[number] and seconds[other] == seconds[number]:
                        break
                    at = (at + 1) & (size - 1)
                if dirty_turn:
                    if slots[at] != u64(0):
                        superseded[i64(slots[at]) - 1] = 1
                    slots[at] = u64(number + 1)
                elif slots[at] != u64(0):
                    superseded[number] = 1

    compiled: ReduceHashes = reduce_hashes
    return compiled


reduce_buckets = _compile_reduce_buckets(STAMP)
reduce_hashes = _compile_reduce_hashes(STAMP)
