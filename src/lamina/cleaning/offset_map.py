"""The offset map of a pass: the newest dirty record of every key, and so which records are superseded, in one task.

The keys are read once and compared by their bytes, bucket by bucket (facts 33-35). Where they are too many for that,
``key_hashes`` is the other way, with the same result. Must not know what becomes of a superseded record.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from lamina.cleaning.bucket_reduction import BucketReduction
from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import TooManyKeys
from lamina.cleaning.header_scan import SegmentVerdicts
from lamina.cleaning.key_blocks import Block, pack_keys
from lamina.cleaning.key_scan import KeyBuffers, SliceKeys, SliceScan
from lamina.cleaning.key_store import KeyStore, StoreFull
from lamina.cleaning.limits import Meter, unmetered
from lamina.cleaning.parallel import run_all
from lamina.cleaning.slices import Source
from lamina.compaction.retain import OFFSET_AFTER_ALL
from lamina.log.files import Disk
from lamina.records.columns.layout import BASE_OFFSET, LAST_OFFSET
from lamina.records.columns.memory import Bytes

_MOST_ORDINALS = 2**32
_BUCKET_RECORDS = 16 * 1024
"""About as many as a processor's cache has room for."""
_MOST_BUCKET_BITS = 9
_WAVE_SLICES = 4
"""How many slices each thread scans before it waits for the others."""


class OffsetMap:
    def __init__(
        self,
        plan: Plan,
        verdicts: Sequence[SegmentVerdicts],
        *,
        attempt: str = "0",
        has_shuffle: bool = False,
        disk: Disk | None = None,
        threads: int = 1,
        meter: Meter = unmetered,
    ) -> None:
        self._plan = plan
        self._verdicts = verdicts
        self._attempt = attempt
        self._has_shuffle = has_shuffle
        self._disk = disk or Disk()
        self._threads = threads
        self._meter = meter
        self._starts = _bit_starts(verdicts)
        self._bits = min((self._starts[-1] // _BUCKET_RECORDS).bit_length(), _MOST_BUCKET_BITS)
        self._buffers = KeyBuffers()
        self.keys = 0
        self.bytes_read = 0

    def find_superseded(self) -> list[Bytes]:
        """For each segment one bit a record, set where it is superseded; raises :class:`TooManyKeys`."""
        records = self._starts[-1]
        if records > _MOST_ORDINALS:
            raise self._too_many(f"more than {_MOST_ORDINALS} records")
        with ThreadPoolExecutor(self._threads, thread_name_prefix="lamina-keys") as pool:
            reduction = BucketReduction(pool, self._threads, self._bits, records)
            if self._plan.first_dirty_offset < self._plan.first_uncleanable_offset:
                self._reduce(pool, reduction)
            superseded = reduction.superseded()
        edges = zip(self._starts, self._starts[1:], strict=False)
        return [superseded[start // 8 : end // 8] for start, end in edges]

    def _reduce(self, pool: ThreadPoolExecutor, reduction: BucketReduction) -> None:
        plan = self._plan
        keys = KeyStore(
            plan, self._attempt, pool, reduction, has_shuffle=self._has_shuffle, disk=self._disk, meter=self._meter
        )
        try:
            for block in self._scan(pool, plan.first_dirty_offset, OFFSET_AFTER_ALL):
                keys.add(block)
            for block in self._scan(pool, 0, plan.first_dirty_offset):
                keys.probe(block)
            self.keys = keys.finish()
        except StoreFull:
            raise self._too_many("the keys of this log") from None
        finally:
            keys.discard()

    def _too_many(self, what: str) -> TooManyKeys:
        return TooManyKeys(f"{what} do not fit the {self._plan.memory_limit_bytes} bytes that one task may take")

    def _scan(self, pool: ThreadPoolExecutor, from_offset: int, to_offset: int) -> Iterator[Block]:
        """The keys of records in a range of offsets, in log order, a wave of slices in each block."""
        tasks = self._tasks(from_offset, to_offset)
        while wave := list(islice(tasks, self._threads * _WAVE_SLICES)):
            found = run_all(pool, wave)
            yield pack_keys(pool, found, self._bits)
            for each in found:
                self._buffers.give(each)

    def _tasks(self, from_offset: int, to_offset: int) -> Iterator[Callable[[], SliceKeys]]:
        for number, segment in enumerate(self._plan.segments):
            if segment.next_base_offset <= from_offset or segment.base_offset >= to_offset:
                continue
            source = Source(self._disk, self._plan, number)
            for piece in source.slices():
                if piece.rows[-1, LAST_OFFSET] < from_offset or piece.rows[0, BASE_OFFSET] >= to_offset:
                    continue
                self._meter(piece.size_bytes)
                self.bytes_read += piece.size_bytes
                flags = self._verdicts[number].flags
                ordinal = self._starts[number] + piece.first_ordinal
                scan = SliceScan(self._plan, source, piece, flags, ordinal, (from_offset, to_offset))
                yield partial(scan.keys, self._buffers)


def _bit_starts(verdicts: Sequence[SegmentVerdicts]) -> list[int]:
    """Where each segment's records begin among all, each on a byte of its own; and where the last one ends."""
    starts = [0]
    for each in verdicts:
        starts.append(starts[-1] + (each.record_count + 7) // 8 * 8)
    return starts
