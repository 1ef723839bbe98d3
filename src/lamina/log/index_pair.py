"""The offset and time index of one segment, kept together.

Owns when an entry is due (formats.md §2.3) and whether the two files can be believed. Must not read batches:
the segment counts them and, when the pair is not believed, counts them all again.
"""

from collections.abc import Callable
from typing import NamedTuple

from lamina.log.entries import IndexFile, OpenMaps
from lamina.log.files import Disk, sync_file
from lamina.log.index import OffsetIndex, TimeIndex, TimestampOffset

INDEX = ".index"
TIME_INDEX = ".timeindex"


Run = Callable[[Callable[[], None], Callable[[OSError | None], None]], None]
"""``run(work, done)``: do ``work`` on some thread, then call ``done`` with its error on the log's own thread."""


class IndexRebuilds:
    """Where the segments of a log have lost indexes made again: at once, or on a thread once one is given."""

    __slots__ = ("fail", "run")

    def __init__(self) -> None:
        self.run: Run | None = None
        self.fail: Callable[[OSError], object] | None = None
        """Told of a disk error on the way."""


class IndexShape(NamedTuple):
    """How indexes are kept: two settings of the log, and what its segments share."""

    max_bytes: int
    interval_bytes: int
    maps: OpenMaps
    rebuilds: IndexRebuilds

    def for_another_thread(self) -> "IndexShape":
        """The same settings, with nothing shared."""
        return IndexShape(self.max_bytes, self.interval_bytes, OpenMaps(), IndexRebuilds())


class IndexPair:
    __slots__ = ("_bytes_since_entry", "_interval_bytes", "is_full", "largest", "offsets", "times")

    def __init__(self, base_offset: int, offsets: IndexFile, times: IndexFile, interval_bytes: int) -> None:
        self.offsets = OffsetIndex(base_offset, offsets)
        self.times = TimeIndex(base_offset, times)
        self.largest = self.times.last
        """The largest timestamp so far and the last offset of the first batch that had it."""
        self.is_full = self.offsets.is_full or self.times.is_full
        self._interval_bytes = interval_bytes
        self._bytes_since_entry = 0

    @classmethod
    def new(cls, disk: Disk, stem: str, suffix: str, base_offset: int, shape: IndexShape) -> "IndexPair":
        """Both empty, whatever lies there; files appear with the first entry or with ``open_for_append``."""
        for extension in (INDEX, TIME_INDEX):
            disk.unlink(stem + extension + suffix)
        return cls._of(disk, stem, suffix, base_offset, shape, 0, 0)

    @classmethod
    def without_files(cls, disk: Disk, stem: str, suffix: str, base_offset: int, shape: IndexShape) -> "IndexPair":
        """Both empty, with no look at what lies there: whoever searches them goes through the whole log."""
        return cls._of(disk, stem, suffix, base_offset, shape, 0, 0)

    @classmethod
    def load(
        cls, disk: Disk, stem: str, suffix: str, base_offset: int, shape: IndexShape, log_bytes: int
    ) -> "IndexPair | None":
        """The pair on disk; ``None`` when a file is missing, ends inside an entry or cannot be true."""
        try:
            offsets, offsets_rest = divmod(_size_of(disk, stem + INDEX + suffix), OffsetIndex.ENTRY.size)
            times, times_rest = divmod(_size_of(disk, stem + TIME_INDEX + suffix), TimeIndex.ENTRY.size)
        except FileNotFoundError:
            return None
        if offsets_rest or times_rest:
            return None
        pair = cls._of(disk, stem, suffix, base_offset, shape, offsets, times)
        plausible = pair.offsets.is_plausible(log_bytes) and pair.times.is_plausible(log_bytes)
        return pair if plausible else None

    @classmethod
    def _of(
        cls, disk: Disk, stem: str, suffix: str, base_offset: int, shape: IndexShape, offsets: int, times: int
    ) -> "IndexPair":
        return cls(
            base_offset,
            IndexFile(disk, stem + INDEX + suffix, OffsetIndex.ENTRY, offsets, shape.max_bytes, shape.maps),
            IndexFile(disk, stem + TIME_INDEX + suffix, TimeIndex.ENTRY, times, shape.max_bytes, shape.maps),
            shape.interval_bytes,
        )

    def open_for_append(self) -> None:
        self.offsets.file.open_for_append()
        self.times.file.open_for_append()

    def count_batch(self, position: int, size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """Take the next batch of the log into account; an entry is due once the interval has been written."""
        if max_timestamp > self.largest.timestamp:
            self.largest = TimestampOffset(max_timestamp, last_offset)
        if self._bytes_since_entry > self._interval_bytes:
            self.offsets.append(last_offset, position)
            self.times.append(self.largest.timestamp, self.largest.offset)
            self.is_full = self.offsets.is_full or self.times.is_full
            self._bytes_since_entry = 0
        self._bytes_since_entry += size_bytes

    def count_from_last_entry(self) -> None:
        """The caller counts the batches from the last entry's on, again or for the first time."""
        self._bytes_since_entry = 0

    def truncate_to(self, offset: int) -> None:
        """Forget what is at or above ``offset``."""
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.largest = self.times.last
        self.is_full = self.offsets.is_full or self.times.is_full

    def seal(self) -> None:
        """Force the last time entry and give back what was preallocated: at roll and at a clean close."""
        if self.largest.timestamp >= 0:
            self.times.append(self.largest.timestamp, self.largest.offset, force=True)
        self.offsets.file.trim()
        self.times.file.trim()

    def close(self) -> None:
        self.offsets.file.close()
        self.times.file.close()

    def sync(self, disk: Disk) -> None:
        for file in (self.offsets.file, self.times.file):
            sync_file(disk, file.path)

    def install(self, disk: Disk, stem: str, suffix: str, maps: OpenMaps) -> None:
        """Give both files their names, in place of what is there, and count their maps among these."""
        for file, extension in ((self.offsets.file, INDEX), (self.times.file, TIME_INDEX)):
            disk.rename(file.path, stem + extension + suffix)
            file.share_maps(maps)
        self.moved(stem, suffix)

    def moved(self, stem: str, suffix: str) -> None:
        self.offsets.file.path = stem + INDEX + suffix
        self.times.file.path = stem + TIME_INDEX + suffix


def _size_of(disk: Disk, path: str) -> int:
    file = disk.open(path)
    try:
        return file.size()
    finally:
        file.close()
