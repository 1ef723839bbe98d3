"""Reducing the keys of a pass to the newest entry of each: bucket by bucket, in parallel (facts 33-35).

Each thread has a range of the buckets and marks of its own: none waits for another. Must not know where entries come
from, nor when it is time to reduce them.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lamina.cleaning.kernels.entries import Numbers
from lamina.cleaning.kernels.table import LEAST_SLOTS, reduce_buckets
from lamina.cleaning.key_blocks import Block, Entries, Scratch, Stored
from lamina.cleaning.parallel import run_all
from lamina.records.columns.memory import Bytes

T = TypeVar("T")

_PART_BYTES = 8 * 1024 * 1024
"""How much of a scratch file a thread has in memory at a time."""


class BucketReduction:
    """Marks on the superseded records of a pass, one bit a record, made by reducing their keys."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int, bits: int, records: int) -> None:
        self._pool = pool
        self._buckets = 1 << bits
        share = -(-self._buckets // threads)
        self._ranges = [range(at, min(at + share, self._buckets)) for at in range(0, self._buckets, share)]
        self._marks = [np.zeros(-(-records // 8), np.uint8) for _ in self._ranges]

    def superseded(self) -> Bytes:
        """The marks of all threads."""
        found = self._marks[0]
        for marks in self._marks[1:]:
            np.bitwise_or(found, marks, out=found)
        return found

    def mark_superseded(self, known: Sequence[Block], fresh: Sequence[Entries], others: Sequence[Entries]) -> int:
        """Mark what a later entry supersedes: those known have a key each and come before the fresh ones, which are in
        log order. Then mark all others with one of their keys. Returns how many keys there are."""

        def work(buckets: range, marks: Bytes) -> int:
            return sum(
                _reduce(_columns(known, part), _columns(fresh, part), _columns(others, part), marks, keeps=False)[0]
                for part in _parts(buckets, [*fresh, *others])
            )

        return sum(self._in_parallel(work))

    def merge(self, known: Sequence[Block], fresh: Sequence[Block]) -> list[Block]:
        """As ``mark_superseded``; those known are updated in place. Returns the entries of all other keys."""

        def work(buckets: range, marks: Bytes) -> Block:
            columns = (_columns(known, buckets), _columns(fresh, buckets), _columns((), buckets))
            _, new = _reduce(*columns, marks, keeps=True)
            # What was made for all of the fresh ones goes, if there are few new ones among them.
            return Block(new.data.copy(), *self._placed(buckets, new))

        return self._in_parallel(work)

    def store_newest(self, fresh: Sequence[Entries], scratch: Scratch) -> list[Stored]:
        """As ``merge`` where nothing is known, into a scratch file."""

        def work(buckets: range, marks: Bytes) -> list[Stored]:
            stored = []
            for part in _parts(buckets, fresh):
                columns = (_columns((), part), _columns(fresh, part), _columns((), part))
                _, newest = _reduce(*columns, marks, keeps=True)
                position = scratch.reserve(len(newest.data))
                scratch.write(position, newest.data)
                stored.append(Stored(scratch, position, *self._placed(part, newest)))
            return stored

        return [stored for some in self._in_parallel(work) for stored in some]

    def _placed(self, part: range, block: Block) -> tuple[Numbers, Numbers]:
        """Starts and counts of a block with all buckets, of which only those of a part hold anything."""
        starts, counts = np.zeros(self._buckets + 1, np.int64), np.zeros(self._buckets, np.int64)
        starts[part.start : part.stop + 1] = block.starts
        starts[part.stop + 1 :] = block.starts[-1]
        counts[part.start : part.stop] = block.counts
        return starts, counts

    def _in_parallel(self, work: Callable[[range, Bytes], T]) -> list[T]:
        return run_all(self._pool, [partial(work, *each) for each in zip(self._ranges, self._marks, strict=True)])


@dataclass(frozen=True, slots=True)
class _Columns:
    """Some blocks as a kernel wants them: a column each, so that what belongs to one bucket lies together."""

    blocks: Sequence[Block]
    """Held here, because the kernel is given addresses."""
    addresses: Numbers
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def _columns(entries: Sequence[Entries], part: range) -> _Columns:
    blocks = [each.part(part) for each in entries]
    starts = np.zeros((len(part) + 1, len(blocks)), np.int64)
    counts = np.zeros((len(part), len(blocks)), np.int64)
    for number, block in enumerate(blocks):
        starts[:, number] = block.starts
        counts[:, number] = block.counts
    addresses = np.array([block.data.ctypes.data for block in blocks], np.int64)
    return _Columns(blocks, addresses, starts, counts)


def _parts(buckets: range, entries: Sequence[Entries]) -> Iterator[range]:
    """The buckets in parts of about as many bytes as may be in memory at a time."""
    if all(isinstance(each, Block) for each in entries):
        yield buckets
        return
    begin, held = buckets.start, 0
    sizes = np.diff(np.sum([each.starts for each in entries], axis=0))
    for bucket in buckets:
        if held + sizes[bucket] > _PART_BYTES and bucket > begin:
            yield range(begin, bucket)
            begin, held = bucket, 0
        held += int(sizes[bucket])
    yield range(begin, buckets.stop)


def _reduce(known: _Columns, fresh: _Columns, others: _Columns, marks: Bytes, *, keeps: bool) -> tuple[int, Block]:
    """How many keys there are, and the fresh entries with a new one, if they are to be kept."""
    buckets = len(fresh.counts)
    sizes = np.diff(fresh.starts, axis=0).sum(axis=1)
    out = np.empty(int(sizes.sum() if keeps else sizes.max()), np.uint8)
    most = int((known.counts.sum(axis=1) + fresh.counts.sum(axis=1)).max())
    slots = np.empty(max(LEAST_SLOTS, 1 << (2 * most).bit_length()), np.uint64)
    starts, counts = np.zeros(buckets + 1, np.int64), np.zeros(buckets, np.int64)
    reduce_buckets(
        known.addresses,
        known.starts,
        known.counts,
        fresh.addresses,
        fresh.starts,
        fresh.counts,
        others.addresses,
        others.starts,
        keeps,
        slots,
        out,
        starts,
        counts,
        marks,
    )
    return int(known.counts.sum() + counts.sum()), Block(out[: starts[-1] if keeps else 0], starts, counts)
