"""The keys of a slice of batches: which records a pass has to tell apart, by their bytes or by hashes alone.

Must not know how they are told apart.
"""

from dataclasses import dataclass
from struct import Struct

import numpy as np

from lamina.cleaning.contract import Plan
from lamina.cleaning.kernels.keys import Halves, Words, scan_keys
from lamina.cleaning.slices import Slice, Source
from lamina.compaction.verdicts import DISCARDABLE
from lamina.records.batch import CONTROL_BIT
from lamina.records.columns.layout import ATTRIBUTES, PAYLOAD_END, PAYLOAD_START, RECORD_COUNT
from lamina.records.columns.memory import Bytes
from lamina.records.columns.numbers import BAD

_KEY = Struct("<QQ")
_NO_WORDS, _NO_HALVES, _NO_BYTES = np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class SliceKeys:
    """The keys of one slice, with their bytes one after the other; the arrays may be longer than ``count``."""

    count: int
    firsts: Words
    ordinals: Halves
    lengths: Halves
    keys: Bytes


@dataclass(frozen=True, slots=True)
class SliceHashes:
    """The keys of one slice as hashes of 128 bits."""

    firsts: Words
    seconds: Words
    ordinals: Halves


class KeyBuffers:
    """Arrays for the keys of a slice, used again: fresh memory costs more than filling it."""

    def __init__(self) -> None:
        self._free: list[SliceKeys] = []

    def take(self, count: int, keys_bytes: int) -> SliceKeys:
        try:
            free = self._free.pop()
        except IndexError:
            free = SliceKeys(0, _NO_WORDS, _NO_HALVES, _NO_HALVES, _NO_BYTES)
        has_room = len(free.firsts) >= count
        return SliceKeys(
            0,
            free.firsts if has_room else np.empty(count, np.uint64),
            free.ordinals if has_room else np.empty(count, np.uint32),
            free.lengths if has_room else np.empty(count, np.uint32),
            free.keys if len(free.keys) >= keys_bytes else np.empty(keys_bytes, np.uint8),
        )

    def give(self, found: SliceKeys) -> None:
        self._free.append(found)


class SliceScan:
    """A slice of a source, about to be scanned for the keys of records in a range of offsets.

    Control batches and those of aborted transactions have none (facts 34, 35). ``ordinal`` is the number of the
    slice's first record.
    """

    def __init__(
        self, plan: Plan, source: Source, piece: Slice, flags: Bytes, ordinal: int, offsets: tuple[int, int]
    ) -> None:
        self._source = source
        self._rows = piece.rows.copy()
        judged = flags[piece.first_batch : piece.first_batch + len(piece.rows)]
        is_control = self._rows[:, ATTRIBUTES] & CONTROL_BIT != 0
        self._skips = ((judged & DISCARDABLE != 0) | is_control).astype(np.uint8)
        self._ordinal = ordinal
        self._offsets = offsets
        self._k0, self._k1 = _KEY.unpack(plan.hash_key)

    def keys(self, buffers: KeyBuffers) -> SliceKeys:
        payload, most = self._payload()
        sizes = self._rows[:, PAYLOAD_END] - self._rows[:, PAYLOAD_START]
        free = buffers.take(max(most, 1), int(sizes[self._skips == 0].sum()))
        count = self._scan(payload, free.firsts, _NO_WORDS, free.ordinals, free.lengths, free.keys)
        return SliceKeys(count, free.firsts, free.ordinals, free.lengths, free.keys)

    def hashes(self) -> SliceHashes:
        payload, most = self._payload()
        firsts, seconds, ordinals = np.empty(most, np.uint64), np.empty(most, np.uint64), np.empty(most, np.uint32)
        count = self._scan(payload, firsts, seconds, ordinals, _NO_HALVES, _NO_BYTES)
        return SliceHashes(firsts[:count], seconds[:count], ordinals[:count])

    def _payload(self) -> tuple[Bytes, int]:
        """Where the records are, and at most how many."""
        payload = self._source.payload(self._rows, self._skips)
        return payload, int(np.minimum(self._rows[:, RECORD_COUNT], len(payload)).sum())

    def _scan(
        self, payload: Bytes, firsts: Words, seconds: Words, ordinals: Halves, lengths: Halves, keys: Bytes
    ) -> int:
        count, bad = scan_keys(
            payload,
            self._rows,
            self._skips,
            self._ordinal,
            *self._offsets,
            self._k0,
            self._k1,
            firsts,
            seconds,
            ordinals,
            lengths,
            keys,
        )
        if bad != BAD:
            raise self._source.corrupt_records(self._rows[bad], payload)
        return count
