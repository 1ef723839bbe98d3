"""Finding superseded records by hashes alone: the two halves of a shuffle, for keys that are too many for one task.

``scan_segment`` gives 128 bits and a number for each record; the caller divides them by bits of the first half,
keeps log order, and gives each part to ``find_superseded``. Two keys of one log are taken for one with odds of about
n² / 2^129 for n keys: one in 10^20 for a billion of them. The hash is keyed by the plan, so no such pair can be
prepared. Must not know how they are moved.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lamina.cleaning.contract import Plan
from lamina.cleaning.header_scan import SegmentVerdicts
from lamina.cleaning.kernels.keys import Words
from lamina.cleaning.kernels.table import reduce_hashes
from lamina.cleaning.key_scan import SliceScan
from lamina.cleaning.limits import Meter, unmetered
from lamina.cleaning.slices import Source
from lamina.compaction.retain import OFFSET_AFTER_ALL
from lamina.log.files import Disk
from lamina.records.columns.layout import BASE_OFFSET, LAST_OFFSET
from lamina.records.columns.memory import Bytes


@dataclass(frozen=True, slots=True)
class SegmentKeys:
    """The keys of one segment as hashes: what goes through the shuffle."""

    firsts: Words
    seconds: Words
    ordinals: npt.NDArray[np.uint32]
    """The number of the record in its segment."""
    is_dirty: npt.NDArray[np.uint8]
    """Whether it can supersede others, or can only be superseded."""


def scan_segment(
    plan: Plan,
    number: int,
    verdicts: SegmentVerdicts,
    *,
    most_records: int,
    disk: Disk | None = None,
    meter: Meter = unmetered,
) -> Iterator[SegmentKeys]:
    """The keys of the plan's segment ``number`` as hashes, in log order, about ``most_records`` at a time."""
    source = Source(disk or Disk(), plan, number)
    first_dirty = plan.first_dirty_offset
    found: list[SegmentKeys] = []
    held = 0
    for piece in source.slices():
        meter(piece.size_bytes)
        for offsets, is_dirty in (((0, first_dirty), 0), ((first_dirty, OFFSET_AFTER_ALL), 1)):
            if piece.rows[-1, LAST_OFFSET] < offsets[0] or piece.rows[0, BASE_OFFSET] >= offsets[1]:
                continue
            keys = SliceScan(plan, source, piece, verdicts.flags, piece.first_ordinal, offsets).hashes()
            dirty = np.full(len(keys.firsts), is_dirty, np.uint8)
            found.append(SegmentKeys(keys.firsts, keys.seconds, keys.ordinals, dirty))
            held += len(dirty)
        if held >= most_records:
            yield _together(found)
            found, held = [], 0
    if held:
        yield _together(found)


def _together(parts: Sequence[SegmentKeys]) -> SegmentKeys:
    return SegmentKeys(
        np.concatenate([part.firsts for part in parts]),
        np.concatenate([part.seconds for part in parts]),
        np.concatenate([part.ordinals for part in parts]),
        np.concatenate([part.is_dirty for part in parts]),
    )


def find_superseded(firsts: Words, seconds: Words, is_dirty: Bytes) -> npt.NDArray[np.bool_]:
    """Which of some keys, in log order, are superseded: by a later dirty one with the same hash.

    All entries of a hash must be among them: divide them by low bits of ``firsts``, since the high ones
    name the places of a table.
    """
    slots = np.zeros(1 << max(4, (2 * len(firsts)).bit_length()), np.uint64)
    superseded = np.zeros(len(firsts), np.uint8)
    reduce_hashes(firsts, seconds, is_dirty, slots, superseded)
    return superseded.view(np.bool_)
