"""A table of keys with the newest record of each, within a limit of memory.

Must not know what becomes of the records that it finds superseded.
"""

import numpy as np

from lamina.cleaning.kernels.keys import KEY_LENGTH, Words
from lamina.cleaning.kernels.memory import Bytes
from lamina.cleaning.kernels.table import ARENA_USED, ENTRIES, MOST_LOAD_PERCENT, STATE_COLUMNS, grow, insert, probe
from lamina.cleaning.key_scan import SliceKeys

_FIRST_SLOTS = 1 << 12
_ARENA_GROWTH_BYTES = 1 << 20
_ENTRY_ROOM_BYTES = 16
"""What an entry of the arena takes beside its key, at most."""


class TableFull(Exception):
    """The table may not grow any more; ``share`` of the keys that were given had been taken in."""

    def __init__(self, share: float) -> None:
        self.share = share


class KeyTable:
    """Every dirty key with the number of its newest record, within a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._slots: Words = np.zeros(_FIRST_SLOTS, np.uint64)
        self._arena: Bytes = np.empty(0, np.uint8)
        self._state = np.zeros(STATE_COLUMNS, np.int64)

    @property
    def keys(self) -> int:
        return int(self._state[ENTRIES])

    def insert(self, found: SliceKeys, superseded: Bytes) -> None:
        """Take in keys in log order; raises :class:`TableFull`."""
        done = 0
        while True:
            done = insert(
                self._slots,
                self._arena,
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
            if not self._grow(int(found.places[done, KEY_LENGTH])):
                raise TableFull(done / found.count)

    def probe(self, found: SliceKeys, superseded: Bytes) -> None:
        probe(self._slots, self._arena, found.payload, found.firsts, found.places, found.count, superseded)

    def _grow(self, key_bytes: int) -> bool:
        """Make room for one more key of this size; whether the limit allows it, with old and new slots together."""
        if self.keys >= len(self._slots) * MOST_LOAD_PERCENT // 100:
            if self._slots.nbytes * 3 + len(self._arena) > self._limit_bytes:
                return False
            slots = np.zeros(len(self._slots) * 2, np.uint64)
            grow(self._slots, slots)
            self._slots = slots
        used = int(self._state[ARENA_USED])
        least = used + key_bytes + _ENTRY_ROOM_BYTES
        if len(self._arena) < least:
            room = self._limit_bytes - self._slots.nbytes
            if least > room:
                return False
            self._arena.resize(min(max(least, used + used // 4 + _ARENA_GROWTH_BYTES), room), refcheck=False)
        return True
