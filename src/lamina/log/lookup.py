"""Finding an offset by time.

Owns the search over segments, time index and batches down to the record. Must not know isolation levels: the
caller gives the bound.
"""

from typing import NamedTuple

from lamina.errors import CorruptMessage
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import Segment
from lamina.records.batch import BatchHeader
from lamina.records.record import Record, read_records


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(log: PartitionLog, timestamp: int, bound: int, limit_bytes: int) -> TimestampedOffset | None:
    """The first record below ``bound`` whose timestamp is at or above ``timestamp``."""
    try:
        for segment in log.segments.between(log.log_start_offset, bound):
            if segment.size_bytes and segment.largest_timestamp().timestamp >= timestamp:
                found = _first_in_segment(segment, timestamp, log.log_start_offset, bound, limit_bytes)
                if found is not None:
                    return found
    except OSError as error:
        raise log.fail(error) from error
    return None


def offset_of_max_timestamp(log: PartitionLog, bound: int, limit_bytes: int) -> TimestampedOffset | None:
    """The first record below ``bound`` that has the largest timestamp of all."""
    best: TimestampedOffset | None = None
    try:
        for segment in log.segments.between(log.log_start_offset, bound):
            if segment.size_bytes and (best is None or segment.largest_timestamp().timestamp > best.timestamp):
                best = _max_in_segment(segment, best, log.log_start_offset, bound, limit_bytes)
    except OSError as error:
        raise log.fail(error) from error
    return best


def _first_in_segment(
    segment: Segment, timestamp: int, start: int, bound: int, limit_bytes: int
) -> TimestampedOffset | None:
    entry = segment.time_entry(timestamp - 1)
    for position, header in segment.headers_from(max(entry.offset, start)):
        if header.base_offset >= bound:
            return None
        if header.max_timestamp >= timestamp and header.last_offset >= start:
            for record in _records(segment, position, header, limit_bytes):
                if record.timestamp >= timestamp and start <= record.offset < bound:
                    return TimestampedOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def _max_in_segment(
    segment: Segment, best: TimestampedOffset | None, start: int, bound: int, limit_bytes: int
) -> TimestampedOffset | None:
    largest = segment.largest_timestamp()
    whole = segment.base_offset >= start and largest.offset < bound
    for position, header in segment.headers_from(largest.offset if whole else start):
        if header.base_offset >= bound:
            break
        if best is not None and header.max_timestamp <= best.timestamp:
            continue
        for record in _records(segment, position, header, limit_bytes):
            if start <= record.offset < bound and (best is None or record.timestamp > best.timestamp):
                best = TimestampedOffset(record.timestamp, record.offset, header.leader_epoch)
        if whole and best is not None and best.timestamp >= largest.timestamp:
            break
    return best


def _records(segment: Segment, position: int, header: BatchHeader, limit_bytes: int) -> list[Record]:
    with segment.lease(position, header.size_bytes) as lease:
        data = lease.read()
    if len(data) < header.size_bytes:
        raise CorruptMessage(f"{segment.path()} became shorter while it was read")
    return read_records(data, 0, header, limit_bytes)
