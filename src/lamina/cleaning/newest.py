"""Finding which records are superseded: the newest record of every key among the dirty ones (facts 33-35).

Keeps every key in the memory of one task and compares bytes. Where they do not fit, it is content with a part of the
keys at a time, in rounds over the sources; where they would take too many, ``key_hashes`` is the other way, with the
same result. Must not know what becomes of a superseded record.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import ceil

import numpy as np

from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import TooManyKeys
from lamina.cleaning.header_scan import SegmentVerdicts
from lamina.cleaning.kernels.columns import BASE_OFFSET, LAST_OFFSET
from lamina.cleaning.kernels.memory import Bytes
from lamina.cleaning.key_scan import KeyBuffers, SliceKeys, scan_slice
from lamina.cleaning.key_table import KeyTable, TableFull
from lamina.cleaning.slices import Slice, Source
from lamina.cleaning.throttle import Meter, unmetered
from lamina.compaction.times import OFFSET_AFTER_ALL
from lamina.log.files import Disk

_MOST_ROUNDS = 8
"""More rounds than these over the sources cost more than a shuffle."""
_MOST_ORDINALS = 2**32


class NewestRecords:
    """Finds the superseded records of a plan in the memory of one task."""

    def __init__(
        self,
        plan: Plan,
        verdicts: Sequence[SegmentVerdicts],
        *,
        disk: Disk | None = None,
        threads: int = 1,
        meter: Meter = unmetered,
    ) -> None:
        self._plan = plan
        self._verdicts = verdicts
        self._disk = disk or Disk()
        self._threads = threads
        self._meter = meter
        self._starts = _bit_starts(verdicts)
        self._buffers = KeyBuffers()
        self.keys = 0
        self.bytes_read = 0

    def find(self) -> list[Bytes]:
        """For each segment one bit a record, set where it is superseded; raises :class:`TooManyKeys`."""
        superseded = np.zeros(self._starts[-1] // 8, np.uint8)
        if self._plan.first_dirty_offset < self._plan.first_uncleanable_offset:
            if self._starts[-1] > _MOST_ORDINALS:
                raise self._too_many(f"more than {_MOST_ORDINALS} records")
            self._find_in_rounds(superseded)
        edges = zip(self._starts, self._starts[1:], strict=False)
        return [superseded[start // 8 : end // 8] for start, end in edges]

    def _find_in_rounds(self, superseded: Bytes) -> None:
        rounds = 1
        while True:
            try:
                for number in range(rounds):
                    self._find_in_round(superseded, rounds, number)
                return
            except TableFull as full:
                rounds = max(rounds + 1, ceil(rounds / max(full.share, 1 / (2 * _MOST_ROUNDS))))
                if rounds > _MOST_ROUNDS:
                    raise self._too_many("the keys of this log") from None
                superseded[:] = 0
                self.keys = 0

    def _too_many(self, what: str) -> TooManyKeys:
        return TooManyKeys(f"{what} do not fit the {self._plan.memory_limit_bytes} bytes that one task may take")

    def _find_in_round(self, superseded: Bytes, rounds: int, number: int) -> None:
        plan = self._plan
        table = KeyTable(plan.memory_limit_bytes)
        first_dirty = plan.first_dirty_offset
        done = 0.0
        total = sum(segment.size_bytes for segment in plan.segments if segment.next_base_offset > first_dirty)
        try:
            for found in self._scan(first_dirty, OFFSET_AFTER_ALL, rounds, number):
                at = found.size_bytes
                table.insert(found, superseded)
                self._buffers.give(found)
                done += found.size_bytes
        except TableFull as full:
            raise TableFull((done + full.share * at) / total) from None
        self.keys += table.keys
        for found in self._scan(0, first_dirty, rounds, number):
            table.probe(found, superseded)
            self._buffers.give(found)

    def _scan(self, from_offset: int, to_offset: int, rounds: int, number: int) -> Iterator[SliceKeys]:
        """The keys of records in a range of offsets, in log order; the slices are scanned side by side."""
        with ThreadPoolExecutor(self._threads, thread_name_prefix="lamina-keys") as pool:
            yield from _in_order(pool, self._tasks(from_offset, to_offset, rounds, number), 2 * self._threads)

    def _tasks(self, from_offset: int, to_offset: int, rounds: int, number: int) -> Iterator[Callable[[], SliceKeys]]:
        for index, segment in enumerate(self._plan.segments):
            if segment.next_base_offset <= from_offset or segment.base_offset >= to_offset:
                continue
            source = Source(self._disk, self._plan, index)
            for piece in source.slices():
                if piece.rows[-1, LAST_OFFSET] < from_offset or piece.rows[0, BASE_OFFSET] >= to_offset:
                    continue
                start = self._starts[index] + piece.first_ordinal
                flags = self._verdicts[index].flags

                def scan(
                    source: Source = source, piece: Slice = piece, start: int = start, flags: Bytes = flags
                ) -> SliceKeys:
                    return scan_slice(
                        self._plan,
                        source,
                        piece,
                        flags,
                        start,
                        self._buffers,
                        from_offset=from_offset,
                        to_offset=to_offset,
                        rounds=rounds,
                        round_number=number,
                    )

                self._meter(piece.size_bytes)
                self.bytes_read += piece.size_bytes
                yield scan


def _bit_starts(verdicts: Sequence[SegmentVerdicts]) -> list[int]:
    """Where each segment's records begin among all, each on a byte of its own; and where the last one ends."""
    starts = [0]
    for each in verdicts:
        starts.append(starts[-1] + (each.record_count + 7) // 8 * 8)
    return starts


def _in_order(pool: ThreadPoolExecutor, tasks: Iterator[Callable[[], SliceKeys]], ahead: int) -> Iterator[SliceKeys]:
    """Results in the order of the tasks, with a few begun ahead."""
    begun: deque[Future[SliceKeys]] = deque()
    try:
        for task in tasks:
            begun.append(pool.submit(task))
            if len(begun) > ahead:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        for future in begun:
            future.cancel()
