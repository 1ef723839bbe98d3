"""A table of keys with the newest record of each, in compiled code.

Open addressing: a slot is the upper half of a hash and the place of an entry in an arena; an entry is the number of
the record, the key's length and the key's bytes. A slot's place is the hash's top bits, so that a larger table keeps
the order of a smaller one and growing runs through both from front to back. Keys are compared by bytes.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.cleaning.kernels.headers import Rows
from lamina.cleaning.kernels.keys import KEY_AT, KEY_LENGTH, ORDINAL, Words
from lamina.cleaning.kernels.memory import (
    Bytes,
    Number,
    address_of,
    copy_bytes,
    equal_bytes,
    i64,
    load8,
    load32,
    load64,
    prefetch,
    store8,
    store32,
    u8,
    u32,
    u64,
)
from lamina.cleaning.kernels.sources import STAMP

State = npt.NDArray[np.int64]
Insert = Callable[[Words, Bytes, State, Bytes, Words, Rows, int, int, Bytes], int]
Probe = Callable[[Words, Bytes, Bytes, Words, Rows, int, Bytes], None]
Grow = Callable[[Words, Words], None]
Reduce = Callable[[Words, Words, Bytes, Words, Bytes], None]

ENTRIES = 0
ARENA_USED = 1
STATE_COLUMNS = 2

ENTRY_HEADER_BYTES = 8
UNIT_BYTES = 4
"""Places in the arena are counted in these, from one on: 16 GiB are as many as a slot can name."""

_AHEAD = 16
"""How many keys before its turn a key's slot is asked for; its entry at half of that."""
MOST_LOAD_PERCENT = 70


@njit(forceinline=True)
def _home(first: Number, slots: Number) -> Number:
    """Where a hash belongs: its top bits; ``slots`` is a power of two, at most 2**32."""
    return int(i64(((first >> u64(32)) * u64(slots)) >> u64(32)))


@njit(forceinline=True)
def _look_ahead(slots_at: Number, arena_at: Number, far: Number, near: Number, size: Number) -> None:
    """Have the slot of a far key and the entry of a nearer one on their way: memory is slower than all else here."""
    prefetch(slots_at + 8 * _home(far, size))
    slot = load64(slots_at + 8 * _home(near, size))
    prefetch(arena_at + i64(slot & u64(0xFFFFFFFF)) * UNIT_BYTES - UNIT_BYTES)


@njit(forceinline=True)
def _set_bit(bits: Number, number: Number) -> None:
    at = bits + (number >> 3)
    store8(at, u8(load8(at) | u8(1 << (number & 7))))


def _compile_insert(stamp: int) -> Insert:
    @njit(
        "int64(Array(uint64, 1, 'C'), Array(uint8, 1, 'C'), Array(int64, 1, 'C'), Array(uint8, 1, 'C', readonly=True),"
        " Array(uint64, 1, 'C'), Array(int64, 2, 'C'), int64, int64, Array(uint8, 1, 'C'))",
        cache=True,
        nogil=True,
    )
    def insert(
        slots: Words,
        arena: Bytes,
        state: State,
        payload: Bytes,
        firsts: Words,
        keys: Rows,
        begin: int,
        count: int,
        superseded: Bytes,
    ) -> int:
        """Take in the keys ``[begin, count)``, in log order; the one before it of the same key is superseded.

        Where it stopped: at ``count``, or at a key that needs more slots or a larger arena.
        """
        size = len(slots) if stamp else 0
        slots_at, arena_at = address_of(slots), address_of(arena)
        payload_at, bits_at = address_of(payload), address_of(superseded)
        most_entries = size * MOST_LOAD_PERCENT // 100
        for number in range(begin, count):
            if number + _AHEAD < count:
                _look_ahead(slots_at, arena_at, firsts[number + _AHEAD], firsts[number + _AHEAD // 2], size)
            if state[ENTRIES] >= most_entries:
                return number
            key_at = keys[number, KEY_AT]
            length = keys[number, KEY_LENGTH]
            tag = firsts[number] >> u64(32)
            at = _home(firsts[number], size)
            while True:
                slot = slots[at]
                if slot == u64(0):
                    used = state[ARENA_USED]
                    needed = (ENTRY_HEADER_BYTES + length + UNIT_BYTES - 1) // UNIT_BYTES * UNIT_BYTES
                    if needed > len(arena) - used:
                        return number
                    entry = arena_at + used
                    store32(entry, u32(keys[number, ORDINAL]))
                    store32(entry + 4, u32(length))
                    copy_bytes(entry + ENTRY_HEADER_BYTES, payload_at + key_at, length)
                    slots[at] = (tag << u64(32)) | u64(used // UNIT_BYTES + 1)
                    state[ENTRIES] += 1
                    state[ARENA_USED] = used + needed
                    break
                if slot >> u64(32) == tag:
                    entry = arena_at + i64((slot & u64(0xFFFFFFFF)) - u64(1)) * UNIT_BYTES
                    if i64(load32(entry + 4)) == length and equal_bytes(
                        entry + ENTRY_HEADER_BYTES, payload_at + key_at, length
                    ):
                        _set_bit(bits_at, i64(load32(entry)))
                        store32(entry, u32(keys[number, ORDINAL]))
                        break
                at = (at + 1) & (size - 1)
        return count

    compiled: Insert = insert
    return compiled


def _compile_probe(stamp: int) -> Probe:
    @njit(
        "void(Array(uint64, 1, 'C'), Array(uint8, 1, 'C'), Array(uint8, 1, 'C', readonly=True),"
        " Array(uint64, 1, 'C'), Array(int64, 2, 'C'), int64, Array(uint8, 1, 'C'))",
        cache=True,
        nogil=True,
    )
    def probe(
        slots: Words, arena: Bytes, payload: Bytes, firsts: Words, keys: Rows, count: int, superseded: Bytes
    ) -> None:
        """Every record whose key is in the table is superseded: for records of the clean section."""
        size = len(slots) if stamp else 0
        slots_at, arena_at = address_of(slots), address_of(arena)
        payload_at, bits_at = address_of(payload), address_of(superseded)
        for number in range(count):
            if number + _AHEAD < count:
                _look_ahead(slots_at, arena_at, firsts[number + _AHEAD], firsts[number + _AHEAD // 2], size)
            key_at = keys[number, KEY_AT]
            length = keys[number, KEY_LENGTH]
            tag = firsts[number] >> u64(32)
            at = _home(firsts[number], size)
            while slots[at] != u64(0):
                slot = slots[at]
                if slot >> u64(32) == tag:
                    entry = arena_at + i64((slot & u64(0xFFFFFFFF)) - u64(1)) * UNIT_BYTES
                    if i64(load32(entry + 4)) == length and equal_bytes(
                        entry + ENTRY_HEADER_BYTES, payload_at + key_at, length
                    ):
                        _set_bit(bits_at, keys[number, ORDINAL])
                        break
                at = (at + 1) & (size - 1)

    compiled: Probe = probe
    return compiled


def _compile_grow(stamp: int) -> Grow:
    @njit("void(Array(uint64, 1, 'C'), Array(uint64, 1, 'C'))", cache=True, nogil=True)
    def grow(old: Words, new: Words) -> None:
        """Put what is in ``old`` into ``new``, which is empty and larger."""
        size = len(new) if stamp else 0
        for slot in old:
            if slot != u64(0):
                at = _home(slot, size)
                while new[at] != u64(0):
                    at = (at + 1) & (size - 1)
                new[at] = slot

    compiled: Grow = grow
    return compiled


def _compile_reduce(stamp: int) -> Reduce:
    @njit(
        "void(Array(uint64, 1, 'C', readonly=True), Array(uint64, 1, 'C', readonly=True),"
        " Array(uint8, 1, 'C', readonly=True), Array(uint64, 1, 'C'), Array(uint8, 1, 'C'))",
        cache=True,
        nogil=True,
    )
    def reduce_hashes(firsts: Words, seconds: Words, is_dirty: Bytes, slots: Words, superseded: Bytes) -> None:
        """As insert and probe, for entries in log order that are told apart by their 128-bit hashes alone.

        ``slots`` are zeros, a power of two, more than there are entries; ``superseded`` is one byte an entry.
        """
        size = len(slots) if stamp else 0
        for dirty_turn in (True, False):
            for number in range(len(firsts)):
                if (is_dirty[number] != 0) != dirty_turn:
                    continue
                at = _home(firsts[number], size)
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

    compiled: Reduce = reduce_hashes
    return compiled


insert = _compile_insert(STAMP)
probe = _compile_probe(STAMP)
grow = _compile_grow(STAMP)
reduce_hashes = _compile_reduce(STAMP)
