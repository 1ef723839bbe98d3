"""Finding a record in a log, and what came after it under the same key.

Runs on a thread over ranges of files that were lent to it, and for a bounded time: a log may be long. Must not decide
anything about the record.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from lamina.errors import CorruptMessage
from lamina.log.aborted import AbortedTransaction
from lamina.log.lease import Lease
from lamina.log.scan import headers
from lamina.records.batch import BatchHeader
from lamina.records.record import Record, read_records

MAX_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Found:
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
    """The offsets of committed records of the same key behind it, as far as was looked: the next one and the last."""
    newer_open: int | None = None
    """The next one whose transaction has not ended."""
    looked_to: int | None = None
    """Before which offset the search ended, where its time was over; ``None`` where all was seen."""


class Finder:
    def __init__(
        self,
        leases: Sequence[Lease],
        aborted: Sequence[AbortedTransaction],
        open_since: Mapping[int, int],
        limit_bytes: int,
    ) -> None:
        """``open_since`` has, by producer id, the first offset of every open transaction."""
        self._leases = leases
        self._aborted = aborted
        self._open_since = open_since
        self._limit_bytes = limit_bytes
        self.looked_to: int | None = None
        """Before which offset the last search ended, where its time was over."""

    def at(self, offset: int, seconds: float = MAX_SECONDS) -> Found | None:
        """The record at an offset; ``None`` where there is none (any more)."""
        deadline = monotonic() + seconds
        found: Found | None = None
        for header, record in self._records(offset, deadline):
            if found is None:
                if record.offset != offset:
                    return None
                found = self._found(header, record)
                if found.key is None or found.is_control:
                    return found
            elif record.key == found.key and record.offset > offset and not header.is_control:
                found = self._followed(found, header, record)
        return self._as_far_as_seen(found)

    def last_of(self, key: bytes, seconds: float = MAX_SECONDS) -> Found | None:
        """The last record of a key, an aborted one only if there is no other."""
        deadline = monotonic() + seconds
        found: Found | None = None
        for header, record in self._records(0, deadline):
            if record.key == key and not header.is_control:
                other = self._found(header, record)
                found = other if found is None or not other.is_aborted or found.is_aborted else found
        return self._as_far_as_seen(found)

    def _as_far_as_seen(self, found: Found | None) -> Found | None:
        return None if found is None else replace(found, looked_to=self.looked_to)

    def _followed(self, found: Found, header: BatchHeader, record: Record) -> Found:
        if self._is_aborted(header):
            return found
        if self._is_open(header):
            return found if found.newer_open is not None else replace(found, newer_open=record.offset)
        return replace(found, newer=(found.newer[0] if found.newer else record.offset, record.offset))

    def _found(self, header: BatchHeader, record: Record) -> Found:
        return Found(
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

    def _records(self, offset: int, deadline: float) -> Iterator[tuple[BatchHeader, Record]]:
        """From ``offset`` on; ends early when the time is over."""
        self.looked_to = None
        for lease in self._leases:
            for position, header in headers(lease.file, 0, lease.size_bytes):
                if header.last_offset < offset:
                    continue
                if monotonic() > deadline:
                    self.looked_to = header.base_offset
                    return
                data = lease.file.pread(header.size_bytes, position)
                if len(data) < header.size_bytes:
                    raise CorruptMessage(f"{lease.file.path} ends inside the batch at position {position}")
                for record in read_records(data, 0, header, self._limit_bytes):
                    if record.offset >= offset:
                        yield header, record
