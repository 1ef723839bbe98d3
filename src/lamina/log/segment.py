"""One segment of a log: a ``.log`` file of batches with its indexes.

Owns the bytes of one segment: appending whole batches, handing out leased ranges of the file, and making its indexes
again when they are missing or untrue. A segment does not know the log it belongs to, and never decides to roll, delete
or replace itself; ``positions`` finds a batch in it, ``segment_end`` counts and cuts its last ones.
"""

import errno
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import NamedTuple

from lamina.errors import CorruptMessage
from lamina.log.descriptors import is_temporary
from lamina.log.files import Bytes, Disk, File
from lamina.log.index import TimestampOffset
from lamina.log.index_pair import INDEX, TIME_INDEX, IndexPair, IndexShape
from lamina.log.index_rebuild import IndexesLost, IndexRebuild
from lamina.log.lease import Lease
from lamina.log.scan import headers
from lamina.log.transaction_index import TransactionIndex
from lamina.records.batch import HEADER_BYTES, MAX_RELATIVE_OFFSET, NO_TIMESTAMP, BatchHeader, read_header

LOG = ".log"
ABORTED_INDEX = ".txnindex"


class Extent(NamedTuple):
    """What a log knows of a segment's files: enough for another thread to read them by itself."""

    base_offset: int
    next_offset: int
    size_bytes: int
    modified_ms: int
    has_aborted: bool


class Segment:
    """The part of a log that begins at ``base_offset``; ``next_offset`` is where the next batch would go."""

    __slots__ = (
        "_disk",
        "_first_timestamp",
        "_indexes",
        "_is_preallocated",
        "_reader",
        "_rebuild",
        "_shape",
        "_stem",
        "_writer",
        "aborted",
        "base_offset",
        "created_ms",
        "leases",
        "modified_ms",
        "next_offset",
        "size_bytes",
        "suffix",
        "tail",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int, shape: IndexShape, suffix: str = "") -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size_bytes = 0
        self.tail: tuple[int, int] | None = None
        """What was appended last, if that is known: whoever reads from this offset on begins at this position."""
        self.created_ms = 0
        self.modified_ms = 0
        self.suffix = suffix
        self._stem = f"{directory}/{base_offset:020d}"
        self._disk = disk
        self._shape = shape
        self._indexes: IndexPair | None = None
        self._is_preallocated = False
        self._first_timestamp: int | None = None
        """The max timestamp of its first batch, which may have none; ``None`` until it was counted or asked for."""
        self._writer: File | None = None
        self._reader: File | None = None
        self._rebuild: IndexRebuild | None = None
        """Under way on a thread."""
        self.leases = 0
        """Ranges of its file that readers hold."""
        self.aborted = TransactionIndex(disk, self.path(ABORTED_INDEX), exists=False)

    @classmethod
    def create(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        shape: IndexShape,
        now_ms: int,
        *,
        initial_bytes: int = 0,
        suffix: str = "",
    ) -> "Segment":
        """A new, empty, writable segment: its log and both preallocated indexes exist when this returns.

        The log file is made ``initial_bytes`` large; what is not used of them is given back by ``seal``.
        """
        segment = cls(disk, directory, base_offset, shape, suffix)
        segment.created_ms = segment.modified_ms = now_ms
        segment._indexes = IndexPair.new(disk, segment._stem, suffix, base_offset, shape)
        try:
            segment.open_for_append()
            if initial_bytes:
                assert segment._writer is not None
                segment._writer.truncate(initial_bytes)
                segment._is_preallocated = True
        except OSError as error:
            if is_temporary(error):
                # The log goes on without this segment: nothing of it may be found by the next start.
                segment.close()
                for path in reversed(segment.paths()):
                    disk.unlink(path)
            raise
        return segment

    @classmethod
    def load(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        shape: IndexShape,
        *,
        size_bytes: int,
        modified_ms: int,
        has_aborted: bool,
        suffix: str = "",
    ) -> "Segment":
        """A segment that is on disk. Nothing is opened; ``next_offset`` is for the caller to set."""
        segment = cls(disk, directory, base_offset, shape, suffix)
        segment.size_bytes = size_bytes
        segment.created_ms = segment.modified_ms = modified_ms
        segment.aborted = TransactionIndex(disk, segment.path(ABORTED_INDEX), exists=has_aborted)
        return segment

    def extent(self) -> Extent:
        return Extent(self.base_offset, self.next_offset, self.size_bytes, self.modified_ms, self.aborted.exists)

    @classmethod
    def of_extent(
        cls, disk: Disk, directory: str, extent: Extent, shape: IndexShape, *, is_written: bool = False
    ) -> "Segment":
        """Another object for the same files, which another thread may use; ``shape`` has maps of its own.

        The indexes of a segment that ``is_written`` belong to that one alone: preallocated, they look untrue, and made
        again here they would take the names away from the files that it has open.
        """
        segment = cls.load(
            disk,
            directory,
            extent.base_offset,
            shape,
            size_bytes=extent.size_bytes,
            modified_ms=extent.modified_ms,
            has_aborted=extent.has_aborted,
        )
        segment.next_offset = extent.next_offset
        if is_written:
            segment._indexes = IndexPair.without_files(disk, segment._stem, "", extent.base_offset, shape)
        return segment

    # Names

    def path(self, extension: str = LOG) -> str:
        return self._stem + extension + self.suffix

    def extensions(self) -> tuple[str, ...]:
        """Its files, in the order in which they are renamed (fact 79)."""
        return (LOG, INDEX, TIME_INDEX, ABORTED_INDEX) if self.aborted.exists else (LOG, INDEX, TIME_INDEX)

    def paths(self) -> list[str]:
        return [self.path(extension) for extension in self.extensions()]

    def rename(self, suffix: str) -> None:
        """Give all its files another suffix; what is open stays open. An index that is gone is no error."""
        for extension in self.extensions():
            try:
                self._disk.rename(self.path(extension), self._stem + extension + suffix)
            except FileNotFoundError:
                if extension == LOG:
                    raise
        self.suffix = suffix
        self.aborted.path = self.path(ABORTED_INDEX)
        if self._indexes is not None:
            self._indexes.moved(self._stem, suffix)

    # Appending

    def open_for_append(self) -> None:
        """Open the log and preallocate both indexes, as Kafka does for an active segment."""
        if self._writer is None:
            self.indexes.open_for_append()
            self._writer = self._disk.open(self.path(), create=True)

    def append(self, batch: Bytes, size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """Append one batch. A short or failed write is cut back to the last whole batch before the error goes on."""
        writer, position = self._writer, self.size_bytes
        if writer is None:
            self.open_for_append()
            writer = self._writer
            assert writer is not None
        try:
            written = writer.pwrite(batch, position)
            if written != size_bytes:
                raise OSError(errno.ENOSPC, f"only {written} of {size_bytes} bytes were written", self.path())
        except OSError:
            writer.truncate(position)
            raise
        self.tail = (self.next_offset, position)
        self.count_batch(position, size_bytes, last_offset, max_timestamp)

    def count_batch(self, position: int, size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """Take a batch that is in the file into account: the segment's end, its indexes, its age."""
        indexes = self._indexes or self.indexes
        self.size_bytes = position + size_bytes
        self.next_offset = last_offset + 1
        indexes.count_batch(position, size_bytes, last_offset, max_timestamp)
        if position == 0:
            self._first_timestamp = max_timestamp

    def first_timestamp(self) -> int:
        """The max timestamp of its first batch: what rolling by time goes by. Reads the file once."""
        if self._first_timestamp is None:
            if self.size_bytes < HEADER_BYTES:
                return NO_TIMESTAMP
            with self.lease(0, HEADER_BYTES) as lease:
                self._first_timestamp = read_header(lease.read()).max_timestamp
        return self._first_timestamp

    def fits(self, offset: int) -> bool:
        """Whether an offset can be stored relative to the base."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def require_fit(self, header: BatchHeader) -> None:
        """Raise :class:`CorruptMessage` for a batch that claims an offset which this segment cannot hold."""
        if not self.fits(header.base_offset) or not self.fits(header.last_offset):
            raise CorruptMessage(
                f"a batch in {self.path()} claims offsets {header.base_offset} to {header.last_offset}"
            )

    def seal(self) -> None:
        """Finish the indexes and let go of the files: at roll and at a clean close."""
        self.indexes.seal()
        if self._is_preallocated and self._writer is not None:
            self._writer.truncate(self.size_bytes)
        self.close()

    def close(self) -> None:
        """Let go of every file, changing none. Ranges still out on lease stay readable."""
        if self._indexes is not None:
            self._indexes.close()
        self.aborted.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._close_reader()

    def _close_reader(self) -> None:
        if self._reader is not None and not self.leases:
            self._reader.close()
            self._reader = None

    # Indexes

    @property
    def indexes(self) -> IndexPair:
        """Opened on first use; rebuilt from the log when they cannot be believed."""
        if self._indexes is None:
            pair = IndexPair.load(self._disk, self._stem, self.suffix, self.base_offset, self._shape, self.size_bytes)
            self._indexes = pair if pair is not None and self._confirms(pair) else self.rebuild_indexes()
        return self._indexes

    def _confirms(self, pair: IndexPair) -> bool:
        """Whether the log goes on from the last entry, and nothing there is younger than the time index says.

        No more batches may follow than fit between two entries: an index with fewer entries is made again.
        """
        most = self._shape.interval_bytes // HEADER_BYTES + 2
        try:
            tail = list(islice(self.headers(pair.offsets.last_entry.position, self.size_bytes), most + 1))
            return len(tail) <= most and all(header.max_timestamp <= pair.largest.timestamp for _, header in tail)
        except CorruptMessage:
            return False

    def begin_indexes(self) -> IndexPair:
        """Both indexes empty again; the caller counts every batch from the start."""
        self.close()
        self._indexes = IndexPair.new(self._disk, self._stem, self.suffix, self.base_offset, self._shape)
        return self._indexes

    def rebuild_indexes(self) -> IndexPair:
        """Write both indexes again from the batch headers in the log, as far as those can be read.

        Where a thread does it, it is begun and :class:`IndexesLost` is raised until it is done.
        """
        rebuilds = self._shape.rebuilds
        if rebuilds.run is None:
            rebuild = self._begin_rebuild()
            rebuild.work()
            return self._install(rebuild)
        if self._rebuild is None:
            self._rebuild = rebuild = self._begin_rebuild()
            rebuilds.run(rebuild.work, partial(self._rebuilt, rebuild))
        raise IndexesLost(f"the indexes of {self.path()} are being made again")

    def _begin_rebuild(self) -> IndexRebuild:
        shape = self._shape.for_another_thread()
        return IndexRebuild(self._disk, self._stem, self.path(), self.base_offset, self.size_bytes, shape)

    def _rebuilt(self, rebuild: IndexRebuild, error: OSError | None) -> None:
        self._rebuild = None
        try:
            if error is not None:
                raise error
            if rebuild.size_bytes <= self.size_bytes:  # else it was cut meanwhile: the next read rebuilds again
                self._install(rebuild)
        except FileNotFoundError:
            return  # The partition is gone.
        except OSError as failure:
            if self._shape.rebuilds.fail is not None:
                self._shape.rebuilds.fail(failure)

    def _install(self, rebuild: IndexRebuild) -> IndexPair:
        """Use new indexes from now on, with what was appended while they were made."""
        indexes = rebuild.pair
        assert indexes is not None
        with suppress(CorruptMessage):
            for position, header in self.headers(rebuild.size_bytes, self.size_bytes):
                indexes.count_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)
        was_appending = self._writer is not None
        self.close()
        indexes.install(self._disk, self._stem, self.suffix, self._shape.maps)
        self._indexes = indexes
        if was_appending:
            self.open_for_append()
        return indexes

    def position_near(self, offset: int) -> int:
        """Where a batch at or below ``offset`` begins, by an index that is open; else the start. Reads no batch."""
        try:
            return 0 if self._indexes is None else self._indexes.offsets.lookup(offset).position
        except FileNotFoundError:
            return 0

    def time_entry(self, timestamp: int) -> TimestampOffset:
        """The last entry of the time index at or below ``timestamp``."""
        try:
            return self.indexes.times.lookup(timestamp)
        except FileNotFoundError:
            return self.rebuild_indexes().times.lookup(timestamp)

    def largest_timestamp(self) -> TimestampOffset:
        """The largest timestamp of its batches and the last offset of the first batch that had it."""
        return self.indexes.largest

    @property
    def has_open_indexes(self) -> bool:
        """Whether they can be asked without reading anything."""
        return self._indexes is not None

    def age_timestamp_ms(self) -> int:
        """What retention goes by: the largest timestamp, or the file's age where there is none (fact 16)."""
        timestamp = self.indexes.largest.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms

    # Reading

    def headers(self, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch in ``[start, end)`` of the file; bodies are not read.

        Raises :class:`CorruptMessage` at a header that no batch can have or a batch that runs past ``end``.
        """
        with self.lease(start, end - start) as lease:
            yield from headers(lease.file, start, end)

    def lends(self, lease: Lease) -> bool:
        return lease.file is self._reader

    def lease(self, position: int, size_bytes: int) -> Lease:
        """A range of the file that stays readable until given back, whatever happens to the segment meanwhile."""
        if self._reader is None:
            self._reader = self._disk.open(self.path())
        self.leases += 1
        return Lease(self._reader, position, size_bytes, self._give_back)

    def _give_back(self) -> None:
        self.leases -= 1
        if self._writer is None:
            self._close_reader()

    # Cutting

    def hide_from(self, position: int, offset: int) -> None:
        """Have readers see nothing from ``position`` on, where the batch that reaches ``offset`` begins."""
        self.close()
        self.size_bytes = position
        self.next_offset = offset
        self.tail = None

    def forget_tail(self) -> None:
        """What is left in a file that was cut is for the caller to count again."""
        self.next_offset = self.base_offset
        self.tail = None
        self._first_timestamp = None

    def cut_file(self) -> None:
        """Cut the file to the batches that were counted: what recovery does behind a bad batch."""
        cut_file(self._disk, self.path(), self.size_bytes)


def cut_file(disk: Disk, path: str, size_bytes: int) -> None:
    """Cut a file for good."""
    file = disk.open(path, write=True)
    try:
        file.truncate(size_bytes)
        file.fsync()
    finally:
        file.close()
