"""Finding an offset by time.

Owns the search over segments, time index and batches down to the record. Batch headers are read where the log lives;
opening a batch takes long, so a search hands that out as a step for any thread and goes on with its result. Between
steps the log may change. Must not know isolation levels, the caller gives the bound; nor who takes the steps.
"""

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from lamina.errors import CorruptMessage
from lamina.log.lease import Lease
from lamina.log.partition_log import PartitionLog
from lamina.log.positions import headers_from
from lamina.log.segment import Segment
from lamina.records.batch import BatchHeader
from lamina.records.record import Record, iterate_records


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


Step = Callable[[], TimestampedOffset | None]
"""A look into one batch, which touches nothing but a range of its file."""

Search = Generator[Step, TimestampedOffset | None, TimestampedOffset | None]
"""Yields steps, wants what each returns or raises, and returns what was found. Holds files until it is closed."""


class Visible(NamedTuple):
    """The offsets in ``[start, bound)`` that a lookup may answer with, and how far a batch may decompress."""

    start: int
    bound: int
    limit_bytes: int


def offset_for_timestamp(log: PartitionLog, timestamp: int, bound: int, limit_bytes: int) -> Search:
    """The first record below ``bound`` whose timestamp is at or above ``timestamp``."""
    visible = Visible(log.log_start_offset, bound, limit_bytes)
    try:
        for segment in _segments(log, visible):
            if segment.largest_timestamp().timestamp >= timestamp:
                found = yield from _first_in_segment(segment, timestamp, visible)
                if found is not None:
                    return found
    except OSError as error:
        raise log.fail(error) from error
    return None


def offset_of_max_timestamp(log: PartitionLog, bound: int, limit_bytes: int) -> Search:
    """The first record below ``bound`` that has the largest timestamp of all."""
    visible = Visible(log.log_start_offset, bound, limit_bytes)
    best: TimestampedOffset | None = None
    try:
        for segment in _segments(log, visible):
            if best is None or segment.largest_timestamp().timestamp > best.timestamp:
                best = yield from _max_in_segment(segment, best, visible)
    except OSError as error:
        raise log.fail(error) from error
    return best


def _segments(log: PartitionLog, visible: Visible) -> Iterator[Segment]:
    for segment in log.segments.between(visible.start, visible.bound):
        # Retention or cleaning may have taken it away since the search began.
        is_there = log.segments.between(segment.base_offset, segment.base_offset + 1) == [segment]
        if is_there and segment.size_bytes:
            yield segment


def _first_in_segment(segment: Segment, timestamp: int, visible: Visible) -> Search:
    entry = segment.time_entry(timestamp - 1)
    for position, header in headers_from(segment, max(entry.offset, visible.start)):
        if header.base_offset >= visible.bound:
            return None
        if header.max_timestamp >= timestamp and header.last_offset >= visible.start:
            with segment.lease(position, header.size_bytes) as lease:
                found = yield lambda lease=lease, header=header: _first_in_batch(  # type: ignore[misc]
                    lease, header, timestamp, visible
                )
            if found is not None:
                return found
    return None


def _max_in_segment(segment: Segment, best: TimestampedOffset | None, visible: Visible) -> Search:
    largest = segment.largest_timestamp()
    whole = segment.base_offset >= visible.start and largest.offset < visible.bound
    for position, header in headers_from(segment, largest.offset if whole else visible.start):
        if header.base_offset >= visible.bound:
            break
        if best is not None and header.max_timestamp <= best.timestamp:
            continue
        with segment.lease(position, header.size_bytes) as lease:
            found = yield lambda lease=lease, header=header: _max_in_batch(lease, header, visible)  # type: ignore[misc]
        if found is not None and (best is None or found.timestamp > best.timestamp):
            best = found
        if whole and best is not None and best.timestamp >= largest.timestamp:
            break
    return best


def _first_in_batch(lease: Lease, header: BatchHeader, timestamp: int, visible: Visible) -> TimestampedOffset | None:
    for record in _records(lease, header, visible):
        if record.timestamp >= timestamp:
            return TimestampedOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def _max_in_batch(lease: Lease, header: BatchHeader, visible: Visible) -> TimestampedOffset | None:
    best: TimestampedOffset | None = None
    for record in _records(lease, header, visible):
        if best is None or record.timestamp > best.timestamp:
            best = TimestampedOffset(record.timestamp, record.offset, header.leader_epoch)
    return best


def _records(lease: Lease, header: BatchHeader, visible: Visible) -> Iterator[Record]:
    data = lease.read()
    if len(data) < header.size_bytes:
        raise CorruptMessage(f"{lease.file.path} became shorter while it was read")
    for record in iterate_records(data, 0, header, visible.limit_bytes):
        if visible.start <= record.offset < visible.bound:
            yield record
