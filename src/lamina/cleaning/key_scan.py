"""The keys of a slice of batches: which records a pass has to tell apart.

Must not know how they are told apart.
"""

from dataclasses import dataclass
from struct import Struct

import numpy as np

from lamina.cleaning.contract import Plan
from lamina.cleaning.kernels.columns import ATTRIBUTES, RECORD_COUNT
from lamina.cleaning.kernels.headers import Rows
from lamina.cleaning.kernels.keys import KEY_COLUMNS, Words, scan_keys
from lamina.cleaning.kernels.memory import Bytes
from lamina.cleaning.kernels.numbers import BAD
from lamina.cleaning.slices import Slice, Source
from lamina.compaction.verdicts import DISCARDABLE
from lamina.records.batch import CONTROL_BIT

_KEY = Struct("<QQ")


@dataclass(frozen=True, slots=True)
class SliceKeys:
    """The keys of one slice that a pass has to tell apart."""

    payload: Bytes
    firsts: Words
    seconds: Words
    places: Rows
    count: int
    size_bytes: int


class KeyBuffers:
    """Arrays for the keys of a slice, used again: fresh memory costs more than filling it."""

    def __init__(self) -> None:
        self._free: list[tuple[Words, Rows]] = []

    def take(self, count: int) -> tuple[Words, Rows]:
        try:
            firsts, places = self._free.pop()
        except IndexError:
            firsts, places = np.empty(0, np.uint64), np.empty((0, KEY_COLUMNS), np.int64)
        if len(firsts) < count:
            return np.empty(count, np.uint64), np.empty((count, KEY_COLUMNS), np.int64)
        return firsts, places

    def give(self, found: SliceKeys) -> None:
        self._free.append((found.firsts, found.places))


def scan_slice(
    plan: Plan,
    source: Source,
    piece: Slice,
    flags: Bytes,
    ordinal: int,
    buffers: KeyBuffers,
    *,
    from_offset: int,
    to_offset: int,
    rounds: int = 1,
    round_number: int = 0,
    wants_seconds: bool = False,
) -> SliceKeys:
    """The keys of one slice; control batches and those of aborted transactions have none (facts 34, 35)."""
    rows = piece.rows
    judged = flags[piece.first_batch : piece.first_batch + len(rows)]
    skips = ((judged & DISCARDABLE != 0) | (rows[:, ATTRIBUTES] & CONTROL_BIT != 0)).astype(np.uint8)
    payload = source.payload(rows, skips)
    most = int(np.minimum(rows[:, RECORD_COUNT], len(payload)).sum())
    firsts, places = buffers.take(most)
    seconds = np.empty(most if wants_seconds else 0, np.uint64)
    k0, k1 = _KEY.unpack(plan.hash_key)
    count, bad = scan_keys(
        payload,
        rows,
        skips,
        ordinal,
        from_offset,
        to_offset,
        k0,
        k1,
        rounds,
        round_number,
        firsts,
        seconds,
        places,
    )
    if bad != BAD:
        raise source.corrupt_records(rows[bad])
    return SliceKeys(payload, firsts, seconds, places, count, piece.size_bytes)
