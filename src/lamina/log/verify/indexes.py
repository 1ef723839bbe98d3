"""Whether the two sparse indexes of a segment are true (formats.md §2.3).

Both files are read alongside the walk over the log, in step with it, so that memory does not grow with the
segment. The first untrue entry is reported and ends the check of its file: an index is made again as a whole.
Must not know batches beyond their place and time.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from lamina.log.files import Disk
from lamina.log.index import OffsetIndex, TimeIndex
from lamina.log.verify.entries import EntryReader
from lamina.records.batch import MAX_RELATIVE_OFFSET, BatchHeader


class Tail(NamedTuple):
    """How the walk over a segment ended."""

    next_offset: int
    is_sealed: bool
    """Whether the segment was closed in order, so that its indexes are complete and trimmed."""


class Fault(NamedTuple):
    what: str
    position: int
    offset: int | None


class IndexCheck:
    """What both checks share: the entries one after the other, and that the first fault is the last."""

    entry: Struct

    def __init__(self, disk: Disk, path: str, base_offset: int, report: Callable[[Fault], None]) -> None:
        self.base_offset = base_offset
        self._report = report
        self._file = disk.open(path)
        self._reader = EntryReader(self._file, self.entry)
        self._entries = self._numbered()
        self._number = -1
        self._stopped = False
        self._current = self._next()

    def _numbered(self) -> Iterator[tuple[int, ...]]:
        for fields in self._reader:
            self._number += 1
            yield fields

    def _next(self) -> tuple[int, ...] | None:
        return None if self._stopped else next(self._entries, None)

    def fault(self, what: str, offset: int | None = None) -> None:
        if not self._stopped:
            self._report(Fault(f"entry {self._number}: {what}", max(self._number, 0) * self.entry.size, offset))
        self.stop()

    def stop(self) -> None:
        """Look no further: a fault was found, or the log itself cannot be read from here on."""
        self._stopped = True
        self._current = None

    def offset_of(self, relative: int) -> int | None:
        """The offset of an entry; ``None``, and a fault, where no segment can hold it."""
        if 0 <= relative <= MAX_RELATIVE_OFFSET:
            return self.base_offset + relative
        self.fault(f"the relative offset {relative} is negative")
        return None

    def _check_file_end(self, tail: Tail) -> None:
        if self._stopped:
            return
        end = self._file.size()
        if self._reader.ragged_bytes:
            self._report(Fault("the file ends inside an entry", end - self._reader.ragged_bytes, None))
        if self._reader.padding_bytes and tail.is_sealed:
            start = end - self._reader.ragged_bytes - self._reader.padding_bytes
            self._report(Fault(f"{self._reader.padding_bytes} preallocated bytes were not given back", start, None))

    @property
    def padding_bytes(self) -> int:
        """Preallocated room behind the last entry; known after the last batch."""
        return self._reader.padding_bytes

    def close(self) -> None:
        self._file.close()


class OffsetIndexCheck(IndexCheck):
    """Every entry names the start of a batch, and an offset that a reader from there on will meet."""

    entry = OffsetIndex.ENTRY
    _last_offset = -1

    def batch(self, position: int, header: BatchHeader) -> None:
        while self._current is not None and self._current[1] <= position:
            relative, indexed = self._current
            offset = self.offset_of(relative)
            if offset is None:
                return
            if indexed < position:
                self.fault(f"no batch begins at position {indexed}", offset)
            elif offset < header.base_offset:
                self.fault(f"it says offset {offset}, the batch at position {position} begins later", offset)
            elif offset <= self._last_offset:
                self.fault(f"offset {offset} does not follow {self._last_offset}", offset)
            self._last_offset = offset
            self._current = self._next()

    def end(self, tail: Tail) -> None:
        if self._current is not None:
            self.fault(f"no batch begins at position {self._current[1]}", self.base_offset + self._current[0])
        elif self._last_offset >= tail.next_offset:
            self.fault(f"offset {self._last_offset} lies behind the segment's end", self._last_offset)
        self._check_file_end(tail)


class TimeIndexCheck(IndexCheck):
    """Up to every entry's offset the largest timestamp is the entry's, and a closed segment ends with its largest."""

    entry = TimeIndex.ENTRY
    _last_timestamp = -1
    _last_offset = -1
    _largest = -1

    def batch(self, header: BatchHeader) -> None:
        while self._current is not None and self.base_offset + self._current[1] < header.base_offset:
            self._check_entry()
        self._largest = max(self._largest, header.max_timestamp)

    def _check_entry(self) -> None:
        assert self._current is not None
        timestamp, relative = self._current
        offset = self.offset_of(relative)
        if offset is None:
            return
        if timestamp <= self._last_timestamp or offset < self._last_offset:
            self.fault(f"({timestamp}, {offset}) does not follow ({self._last_timestamp}, {self._last_offset})", offset)
        elif timestamp != self._largest:
            self.fault(f"up to offset {offset} the largest timestamp is {self._largest}, not {timestamp}", offset)
        self._last_timestamp, self._last_offset = timestamp, offset
        self._current = self._next()

    def end(self, tail: Tail) -> None:
        while self._current is not None:
            self._check_entry()
        if not self._stopped and self._last_offset >= tail.next_offset:
            self.fault(f"offset {self._last_offset} lies behind the segment's end", self._last_offset)
        if tail.is_sealed and self._last_timestamp < self._largest:
            self.fault(f"the index ends at {self._last_timestamp}, the largest timestamp is {self._largest}")
        self._check_file_end(tail)
