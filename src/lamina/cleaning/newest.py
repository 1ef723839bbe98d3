"""Finding which records are superseded: the newest record of every key among the dirty ones (facts 33-35).

Two ways with one result. :class:`NewestRecords` keeps every key in the memory of one task and compares bytes; it is
content with a part of the keys at a time, in rounds over the sources. ``scan_segment`` and ``find_superseded`` are
the halves of the other way, for keys that are too many: hashes go through a shuffle, sorted by their bits, and 128 of
them tell keys apart. Must not know what becomes of a superseded record.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from struct import Struct

import numpy as np
import numpy.typing as npt

from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import TooManyKeys
from lamina.cleaning.header_scan import SegmentVerdicts
from lamina.cleaning.kernels.columns import ATTRIBUTES, BASE_OFFSET, LAST_OFFSET, RECORD_COUNT
from lamina.cleaning.kernels.headers import Rows
from lamina.cleaning.kernels.keys import KEY_COLUMNS, KEY_LENGTH, ORDINAL, Words, scan_keys
from lamina.cleaning.kernels.memory import Bytes
from lamina.cleaning.kernels.numbers import BAD
from lamina.cleaning.kernels.table import ARENA_USED, ENTRIES, STATE_COLUMNS, grow, insert, probe, reduce_hashes
from lamina.cleaning.slices import Slice, Source
from lamina.cleaning.throttle import Meter, unmetered
from lamina.compaction.times import OFFSET_AFTER_ALL
from lamina.compaction.verdicts import DISCARDABLE
from lamina.log.files import Disk
from lamina.records.batch import CONTROL_BIT

_KEY = Struct("<QQ")
_FIRST_SLOTS = 1 << 12
_MOST_ROUNDS = 8
"""More rounds than these over the sources cost more than a shuffle."""
_MOST_ORDINALS = 2**32
_ARENA_GROWTH_BYTES = 1 << 20
_ENTRY_ROOM_BYTES = 16
"""What an entry of the arena takes beside its key, at most."""


@dataclass(frozen=True, slots=True)
class SliceKeys:
    """The keys of one slice that a pass has to tell apart."""

    payload: Bytes
    firsts: Words
    seconds: Words
    places: Rows
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SegmentKeys:
    """The keys of one segment as hashes: what goes through the shuffle."""

    firsts: Words
    seconds: Words
    ordinals: npt.NDArray[np.uint32]
    """The number of the record in its segment."""
    is_dirty: npt.NDArray[np.uint8]
    """Whether it can supersede others, or can only be superseded."""


class _Buffers:
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


class _Full(Exception):
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
        """Take in keys in log order; raises :class:`_Full`."""
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
                raise _Full(done / found.count)

    def probe(self, found: SliceKeys, superseded: Bytes) -> None:
        probe(self._slots, self._arena, found.payload, found.firsts, found.places, found.count, superseded)

    def _grow(self, key_bytes: int) -> bool:
        """Make room for one more key of this size; whether the limit allows it, with old and new slots together."""
        if self.keys * 2 >= len(self._slots):
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
        self._buffers = _Buffers()
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
            except _Full as full:
                needed = max(2 * rounds, rounds * ceil(1 / max(full.share, 1 / (2 * _MOST_ROUNDS))))
                rounds = 1 << (needed - 1).bit_length()
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
        except _Full as full:
            raise _Full((done + full.share * at) / total) from None
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
                        round_mask=rounds - 1,
                        round_number=number,
                    )

                self._meter(piece.size_bytes)
                self.bytes_read += piece.size_bytes
                yield scan


def scan_slice(
    plan: Plan,
    source: Source,
    piece: Slice,
    flags: Bytes,
    ordinal: int,
    buffers: _Buffers,
    *,
    from_offset: int,
    to_offset: int,
    round_mask: int = 0,
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
        round_mask,
        round_number,
        firsts,
        seconds,
        places,
    )
    if bad != BAD:
        raise source.corrupt_records(rows[bad])
    return SliceKeys(payload, firsts, seconds, places, count, piece.size_bytes)


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
    buffers = _Buffers()
    found: list[SegmentKeys] = []
    held = 0
    for piece in source.slices():
        meter(piece.size_bytes)
        for from_offset, to_offset, is_dirty in (
            (0, plan.first_dirty_offset, 0),
            (plan.first_dirty_offset, OFFSET_AFTER_ALL, 1),
        ):
            if piece.rows[-1, LAST_OFFSET] < from_offset or piece.rows[0, BASE_OFFSET] >= to_offset:
                continue
            keys = scan_slice(
                plan,
                source,
                Slice(piece.rows.copy(), piece.first_batch, piece.first_ordinal),
                verdicts.flags,
                piece.first_ordinal,
                buffers,
                from_offset=from_offset,
                to_offset=to_offset,
                wants_seconds=True,
            )
            count = keys.count
            ordinals = keys.places[:count, ORDINAL].astype(np.uint32)
            dirty = np.full(count, is_dirty, np.uint8)
            found.append(SegmentKeys(keys.firsts[:count].copy(), keys.seconds[:count], ordinals, dirty))
            buffers.give(keys)
            held += count
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

    All entries of a hash must be among them: whoever divides them does it by bits of ``firsts``.
    """
    slots = np.zeros(1 << max(4, (2 * len(firsts)).bit_length()), np.uint64)
    superseded = np.zeros(len(firsts), np.uint8)
    reduce_hashes(firsts, seconds, is_dirty, slots, superseded)
    return superseded.view(np.bool_)


def mask_of(record_count: int, superseded_ordinals: npt.NDArray[np.uint32]) -> Bytes:
    """One bit a record of a segment, from the numbers of those that are superseded."""
    marks = np.zeros(record_count, np.uint8)
    marks[superseded_ordinals] = 1
    return np.packbits(marks, bitorder="little")


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
