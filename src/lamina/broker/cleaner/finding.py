"""Finding a record in a log, and what came after it under the same key.

Runs on a thread over ranges of files that were lent to it, and for a bounded time: a log may be long. Must not decide
anything about the record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    newer: tuple[int, ...] = ()
    """The offsets of committed records of the same key behind it, as far as was looked: the next one and the last."""
    looked_to: int = 0
    """Up to which offset was looked."""


class Finder:
    def __init__(self, leases: Sequence[Lease], aborted: Sequence[AbortedTransaction], limit_bytes: int) -> None:
        self._leases = leases
        self._aborted = aborted
        self._limit_bytes = limit_bytes

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
        return found

    def last_of(self, key: bytes, seconds: float = MAX_SECONDS) -> Found | None:
        """The last record of a key, an aborted one only if there is no other."""
        deadline = monotonic() + seconds
        found: Found | None = None
        for header, record in self._records(0, deadline):
            if record.key == key and not header.is_control:
                other = self._found(header, record)
                found = other if found is None or not other.is_aborted or found.is_aborted else found
        return found

    def _followed(self, found: Found, header: BatchHeader, record: Record) -> Found:
        if self._is_aborted(header):
            return found
        newer = (found.newer[0], record.offset) if found.newer else (record.offset, record.offset)
        return Found(
            found.offset,
            found.timestamp_ms,
            found.key,
            found.is_tombstone,
            found.is_control,
            found.is_aborted,
            found.delete_horizon_ms,
            newer,
            record.offset,
        )

    def _found(self, header: BatchHeader, record: Record) -> Found:
        return Found(
            record.offset,
            record.timestamp,
            record.key,
            record.value is None and not header.is_control,
            header.is_control,
            not header.is_control and self._is_aborted(header),
            header.delete_horizon_ms,
            looked_to=record.offset,
        )

    def _is_aborted(self, header: BatchHeader) -> bool:
        return header.is_transactional and any(
            one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
            for one in self._aborted
        )

    def _records(self, offset: int, deadline: float) -> Iterator[tuple[BatchHeader, Record]]:
        """From ``offset`` on; ends early when the time is over."""
        for lease in self._leases:
            for position, header in headers(lease.file, 0, lease.size_bytes):
                if header.last_offset < offset:
                    continue
                if monotonic() > deadline:
                    return
                data = lease.file.pread(header.size_bytes, position)
                if len(data) < header.size_bytes:
                    raise CorruptMessage(f"{lease.file.path} ends inside the batch at position {position}")
                for record in read_records(data, 0, header, self._limit_bytes):
                    if record.offset >= offset:
                        yield header, record
