"""Blocks of keys: the entries of one range of a log, bucket after bucket, in memory or in a scratch file.

Owns where entries lie, and how the keys of some slices are packed into a block. Must not know which records a pass is
about, nor what becomes of a superseded one.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from lamina.cleaning.kernels.entries import Numbers, measure_buckets, put_entries
from lamina.cleaning.key_scan import SliceKeys
from lamina.cleaning.parallel import run_all
from lamina.log.files import Disk, File, write_fully
from lamina.records.columns.memory import Bytes


class Entries(Protocol):
    """Entries by bucket, within each in log order."""

    @property
    def starts(self) -> Numbers:
        """Where each bucket begins, and where the last one ends."""

    @property
    def counts(self) -> Numbers:
        """How many entries each bucket has."""

    def part(self, buckets: range) -> "Block":
        """Some of the buckets, in memory."""


@dataclass(frozen=True, slots=True)
class Block:
    """Entries in memory."""

    data: Bytes
    starts: Numbers
    counts: Numbers

    @property
    def held_bytes(self) -> int:
        return size_of(self) + self.starts.nbytes + self.counts.nbytes

    def part(self, buckets: range) -> "Block":
        return Block(
            self.data, self.starts[buckets.start : buckets.stop + 1], self.counts[buckets.start : buckets.stop]
        )


@dataclass(frozen=True, slots=True)
class Stored:
    """Entries in a scratch file."""

    scratch: "Scratch"
    position: int
    starts: Numbers
    counts: Numbers

    def part(self, buckets: range) -> Block:
        starts = self.starts[buckets.start : buckets.stop + 1]
        data = self.scratch.read(self.position + int(starts[0]), int(starts[-1] - starts[0]))
        return Block(data, starts - starts[0], self.counts[buckets.start : buckets.stop])


class Scratch:
    """A file for entries that memory has no room for. Any thread may write and read."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._lock = threading.Lock()
        self._end = 0
        self._file: File | None = disk.open(path, create=True)

    def reserve(self, size_bytes: int) -> int:
        """The position from which on so many bytes are the caller's."""
        with self._lock:
            position, self._end = self._end, self._end + size_bytes
        return position

    def write(self, position: int, data: Bytes) -> None:
        assert self._file is not None
        write_fully(self._file, data.data, position)

    def read(self, position: int, size_bytes: int) -> Bytes:
        assert self._file is not None
        data = np.empty(size_bytes, np.uint8)
        if self._file.pread_into(data.data, position) != size_bytes:
            raise OSError(f"{self._path} is shorter than it was")
        return data

    def discard(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._disk.unlink(self._path)


def size_of(entries: Entries) -> int:
    return int(entries.starts[-1])


def total_size_of(all_entries: Sequence[Entries]) -> int:
    return sum(map(size_of, all_entries))


# Packing


def pack_keys(pool: ThreadPoolExecutor, found: Sequence[SliceKeys], bits: int) -> Block:
    """The keys of slices that follow each other, by bucket."""
    sizes = np.zeros((len(found), 1 << bits), np.int64)
    counts = np.zeros((len(found), 1 << bits), np.int64)
    run_all(pool, [partial(_measure, *each, bits) for each in zip(found, sizes, counts, strict=True)])
    starts = np.zeros((1 << bits) + 1, np.int64)
    np.cumsum(sizes.sum(axis=0), out=starts[1:])
    ends = starts[:-1] + np.cumsum(sizes, axis=0) - sizes
    data = np.empty(int(starts[-1]), np.uint8)
    run_all(pool, [partial(_put, *each, bits, data) for each in zip(found, ends, strict=True)])
    return Block(data, starts, counts.sum(axis=0))


def _measure(keys: SliceKeys, sizes: Numbers, counts: Numbers, bits: int) -> None:
    measure_buckets(keys.count, keys.firsts, keys.lengths, bits, sizes, counts)


def _put(keys: SliceKeys, ends: Numbers, bits: int, data: Bytes) -> None:
    put_entries(keys.count, keys.firsts, keys.ordinals, keys.lengths, keys.keys, bits, ends, data)
