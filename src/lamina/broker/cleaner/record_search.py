"""Searching a log for a record, and for newer records of the same key.

Runs on a thread over leased ranges of segment files, and for a bounded time, because a log may be long: the result says
what was not read. It is given a few segments at a time, because each takes a descriptor. Must not decide anything about
the record.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from lamina.errors import CorruptMessage
from lamina.log.lease import Lease
from lamina.log.scan import headers
from lamina.log.transaction_index import AbortedTransaction
from lamina.records.batch import BatchHeader
from lamina.records.record import Record, read_records

SEARCH_MAX_MS = 15_000
"""Of one question, over all partitions: the admin listener allows a request a little more."""


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record as it lies in the log."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    is_tombstone: bool
    is_control: bool
    is_aborted: bool
    delete_horizon_ms: int | None
    is_open: bool = False
    """Its transaction has not ended."""
    newer: tuple[int, ...] = ()
    """The offsets of newer committed records of its key, as far as was read: the next one and the last."""
    newer_open: int | None = None
    """The next one whose transaction has not ended."""


class Unsearched(NamedTuple):
    """Offsets that were not read for lack of time: [start, end)."""

    start: int
    end: int


class SearchResult(NamedTuple):
    found: FoundRecord | None
    unsearched: Unsearched | None = None


class SegmentRange(NamedTuple):
    """The batches of one segment."""

    base_offset: int
    end_offset: int
    lease: Lease


class _TimeOver(Exception):
    def __init__(self, offset: int) -> None:
        self.offset = offset


class RecordSearch(ABC):
    """In ``[start, end)``. ``open_since`` has, by producer id, the first offset of every open transaction; ``is_over``
    says when to stop."""

    is_backwards: ClassVar[bool]
    """Whether the newest segments come first."""
    is_done = False
    """Whether nothing more need be read, or time is over."""

    def __init__(
        self,
        start: int,
        end: int,
        aborted: Sequence[AbortedTransaction],
        open_since: Mapping[int, int],
        limit_bytes: int,
        is_over: Callable[[], bool],
    ) -> None:
        self._start = start
        self._end = end
        self.left = range(start, end)
        """The offsets that are still to be read."""
        self._aborted = aborted
        self._open_since = open_since
        self._limit_bytes = limit_bytes
        self._is_over = is_over
        self._found: FoundRecord | None = None
        self._unsearched: Unsearched | None = None

    @property
    def result(self) -> SearchResult:
        """As far as was read."""
        return SearchResult(self._found, self._unsearched)

    @abstractmethod
    def read(self, ranges: Sequence[SegmentRange]) -> None:
        """Read the next few segments, which are given in the order of their offsets."""

    def _followed(self, found: FoundRecord, header: BatchHeader, offset: int) -> FoundRecord:
        if self._is_open(header):
            return found if found.newer_open is not None else replace(found, newer_open=offset)
        return replace(found, newer=(found.newer[0] if found.newer else offset, offset))

    def _seen(self, header: BatchHeader, record: Record) -> FoundRecord:
        return FoundRecord(
            record.offset,
            record.timestamp,
            record.key,
            record.value is None and not header.is_control,
            header.is_control,
            not header.is_control and self._is_aborted(header),
            header.delete_horizon_ms,
            not header.is_control and self._is_open(header),
        )

    def _is_aborted(self, header: BatchHeader) -> bool:
        return header.is_transactional and any(
            one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
            for one in self._aborted
        )

    def _is_open(self, header: BatchHeader) -> bool:
        since = self._open_since.get(header.producer_id)
        return header.is_transactional and since is not None and since <= header.base_offset

    def _records(self, ranges: Sequence[SegmentRange], offset: int) -> Iterator[tuple[BatchHeader, Record]]:
        """From ``offset`` on; raises :class:`_TimeOver` where time is."""
        for lease in (one.lease for one in ranges):
            for position, header in headers(lease.file, 0, lease.size_bytes):
                if header.last_offset < offset:
                    continue
                if self._is_over():
                    raise _TimeOver(header.base_offset)
                data = lease.read_at(position, header.size_bytes)
                if len(data) < header.size_bytes:
                    raise CorruptMessage(f"{lease.file.path} ends inside the batch at position {position}")
                for record in read_records(data, 0, header, self._limit_bytes):
                    if record.offset >= offset:
                        yield header, record


class SearchAt(RecordSearch):
    """For the record at ``start``, with what came after it; none where there is none (any more)."""

    is_backwards = False

    def read(self, ranges: Sequence[SegmentRange]) -> None:
        try:
            self.is_done = any(
                self._is_last(header, record) for header, record in self._records(ranges, self.left.start)
            )
        except _TimeOver as over:
            self._unsearched, self.is_done = Unsearched(over.offset, self._end), True
        self.left = range(ranges[-1].end_offset, self._end)

    def _is_last(self, header: BatchHeader, record: Record) -> bool:
        """Take note of a record. Says whether those behind it tell nothing more."""
        found = self._found
        if found is None:
            if record.offset != self._start:
                return True
            self._found = found = self._seen(header, record)
            return found.key is None or found.is_control
        if record.key == found.key and not header.is_control and not self._is_aborted(header):
            self._found = self._followed(found, header, record.offset)
        return False


class SearchLastOf(RecordSearch):
    """For the last record of a key, an aborted one only if there is no other."""

    is_backwards = True

    def __init__(
        self,
        key: bytes,
        start: int,
        end: int,
        aborted: Sequence[AbortedTransaction],
        open_since: Mapping[int, int],
        limit_bytes: int,
        is_over: Callable[[], bool],
    ) -> None:
        super().__init__(start, end, aborted, open_since, limit_bytes, is_over)
        self._key = key

    def read(self, ranges: Sequence[SegmentRange]) -> None:
        self.is_done = any(self._is_last(one) for one in reversed(ranges))
        self.left = range(self._start, ranges[0].base_offset)

    def _is_last(self, one: SegmentRange) -> bool:
        """Read a segment. Says whether those before it tell nothing more, or time is over."""
        last: FoundRecord | None = None
        try:
            for header, record in self._records([one], one.base_offset):
                if record.key == self._key and not header.is_control:
                    other = self._seen(header, record)
                    last = other if last is None or last.is_aborted or not other.is_aborted else last
        except _TimeOver:
            self._unsearched = Unsearched(self._start, one.end_offset)
        if last is not None and (self._found is None or not last.is_aborted):
            self._found = last
        return self._unsearched is not None or (self._found is not None and not self._found.is_aborted)
