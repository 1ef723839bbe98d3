"""A table of keys with the newest record of each, within a limit of memory.

Must not know what becomes of the records that it finds superseded.
"""

import mmap

import numpy as np

from lamina.cleaning.kernels.keys import Words
from lamina.cleaning.kernels.memory import Bytes
from lamina.cleaning.kernels.table import (
    ARENA_USED,
    ENTRIES,
    MOST_LOAD_PERCENT,
    STATE_COLUMNS,
    UNIT_BYTES,
    grow,
    insert,
    probe,
)
from lamina.cleaning.key_scan import SliceKeys

_FIRST_SLOTS = 1 << 12
_SLOT_BYTES = 8
_MOST_ARENA_BYTES = UNIT_BYTES * (2**32 - 1)
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)


def _fresh_memory(size_bytes: int) -> Bytes:
    """Zeros that take no memory before they are touched, then in large pages: touching them costs most of a table."""
    mapped = mmap.mmap(-1, size_bytes, flags=_PRIVATE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        mapped.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapped, np.uint8)


class TableFull(Exception):
    """The table may not grow any more; ``share`` of the keys that were given had been taken in."""

    def __init__(self, share: float) -> None:
        self.share = share


class KeyTable:
    """Every dirty key with the number of its newest record, within a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._slots: Words = _fresh_memory(_FIRST_SLOTS * _SLOT_BYTES).view(np.uint64)
        self._arena = _fresh_memory(max(min(limit_bytes, _MOST_ARENA_BYTES), 1))
        self._state = np.zeros(STATE_COLUMNS, np.int64)

    @property
    def keys(self) -> int:
        return int(self._state[ENTRIES])

    def clear(self) -> None:
        """Forget every key, and keep the memory."""
        self._slots[:] = 0
        self._state[:] = 0

    def insert(self, found: SliceKeys, superseded: Bytes) -> None:
        """Take in keys in log order; raises :class:`TableFull`."""
        done = 0
        while True:
            arena = self._arena[: max(self._limit_bytes - self._slots.nbytes, 0)]
            done = insert(
                self._slots,
                arena,
                self._state,
                found.payload,
                found.firsts,
                found.places,
                done,
                found.count,
                superseded,
            )
            if done == found.count:
                return
            if not self._grow():
                raise TableFull(done / found.count)

    def probe(self, found: SliceKeys, superseded: Bytes) -> None:
        probe(self._slots, self._arena, found.payload, found.firsts, found.places, found.count, superseded)

    def _grow(self) -> bool:
        """Twice as many slots, if it is they that are wanting and the limit allows old and new ones together."""
        if self.keys < len(self._slots) * MOST_LOAD_PERCENT // 100:
            return False
        if self._slots.nbytes * 3 + int(self._state[ARENA_USED]) > self._limit_bytes:
            return False
        slots = _fresh_memory(self._slots.nbytes * 2).view(np.uint64)
        grow(self._slots, slots)
        self._slots = slots
        return True
