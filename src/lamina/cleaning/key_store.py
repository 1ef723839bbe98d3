"""The keys of a pass within a limit of memory, and in a scratch file beyond it.

Owns what is held and when it has to free memory. While one entry of every key fits three quarters of the memory, only
these are kept for long; when they do not, entries go to the scratch file as they come and are reduced at the end. So a
log is read once, however many keys it has. Must not know what a record is.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from lamina.cleaning.bucket_reduction import BucketReduction
from lamina.cleaning.contract import Plan
from lamina.cleaning.key_blocks import Block, Scratch, Stored, total_size_of
from lamina.cleaning.limits import Meter, check_free_space
from lamina.log.files import Disk

_MOST_WRITING = 2
_SCRATCH_TIMES = 8
"""How many times its memory a task may spill: beyond that a shuffle is better."""


class StoreFull(Exception):
    """There are more keys than memory and scratch file may hold."""


class KeyStore:
    """Takes the dirty keys of a pass in log order, then the clean ones; reducing them leaves the marks."""

    def __init__(
        self,
        plan: Plan,
        attempt: str,
        pool: ThreadPoolExecutor,
        reduction: BucketReduction,
        *,
        has_shuffle: bool,
        disk: Disk,
        meter: Meter,
    ) -> None:
        """Without a shuffle, which is better for very many keys, the scratch file may grow while the disk has space."""
        self._plan = plan
        self._limit_bytes = plan.memory_limit_bytes
        self._most_stored_bytes = self._limit_bytes * _SCRATCH_TIMES if has_shuffle else None
        self._path = f"{plan.pass_folder}/{plan.plan_id}.{attempt}.keys"
        self._pool = pool
        self._reduction = reduction
        self._disk = disk
        self._meter = meter
        self._known: list[Block] = []
        """One entry of every key that was met, as long as there is no scratch file."""
        self._fresh: list[Block] = []
        self._others: list[Block] = []
        self._scratches: list[Scratch] = []
        self._stored: list[Stored] = []
        self._stored_others: list[Stored] = []
        self._writing: list[Future[None]] = []

    def add(self, block: Block) -> None:
        """Take dirty keys; raises :class:`StoreFull`."""
        if self._scratches:
            self._stored.append(self._spill(block))
            self._bound_scratch()
            return
        self._fresh.append(block)
        if _held_bytes(self._fresh) > self._limit_bytes // 4:
            self._merge()
            if _held_bytes(self._known) > self._limit_bytes * 3 // 4:
                self._begin_scratch()
                self._stored = [self._spill(known) for known in self._known]
                self._known = []
                self._bound_scratch()

    def _merge(self) -> None:
        self._known += self._reduction.merge(self._known, self._fresh)
        self._fresh = []

    def probe(self, block: Block) -> None:
        """Take clean keys, which supersede nothing; after all dirty ones. Raises :class:`StoreFull`."""
        if self._scratches:
            self._stored_others.append(self._spill(block))
            if self._most_stored_bytes is not None and total_size_of(self._stored_others) > self._most_stored_bytes:
                raise StoreFull
            return
        if self._fresh:
            self._merge()
        self._others.append(block)
        if _held_bytes(self._known) + _held_bytes(self._others) > self._limit_bytes:
            self._reduction.mark_superseded(self._known, (), self._others)
            self._others = []

    def finish(self) -> int:
        """Reduce what is left. Returns how many dirty keys there are."""
        self._wait_for_writing()
        return self._reduction.mark_superseded(
            self._known, self._fresh or self._stored, self._others or self._stored_others
        )

    def discard(self) -> None:
        wait(self._writing)
        for scratch in self._scratches:
            scratch.discard()

    def _begin_scratch(self) -> Scratch:
        scratch = Scratch(self._disk, f"{self._path}.{len(self._scratches)}")
        self._scratches.append(scratch)
        return scratch

    def _spill(self, block: Block) -> Stored:
        """Have a block written while others are made, but not many of them."""
        if len(self._writing) == _MOST_WRITING:
            self._wait_for_writing()
        check_free_space(self._disk, self._plan, len(block.data))
        self._meter(len(block.data))
        scratch = self._scratches[-1]
        stored = Stored(scratch, scratch.reserve(len(block.data)), block.starts, block.counts)
        self._writing.append(self._pool.submit(scratch.write, stored.position, block.data))
        return stored

    def _wait_for_writing(self) -> None:
        for each in self._writing:
            each.result()
        self._writing.clear()

    def _bound_scratch(self) -> None:
        """When the scratch file is as large as it may be, keep only the newest entries, in another one."""
        most_bytes = self._most_stored_bytes
        if most_bytes is None or total_size_of(self._stored) <= most_bytes:
            return
        self._wait_for_writing()
        old = self._scratches[-1]
        self._stored = self._reduction.store_newest(self._stored, self._begin_scratch())
        old.discard()
        newest_bytes = total_size_of(self._stored)
        self._meter(newest_bytes)
        if newest_bytes > most_bytes // 2:
            raise StoreFull


def _held_bytes(blocks: Sequence[Block]) -> int:
    return sum(block.held_bytes for block in blocks)
