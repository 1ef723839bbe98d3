"""Copying a log into a future log, piece by piece: what is read, what is appended, where the two part.

Owns that a copy never holds what its log does not: bytes that were cut while they were read are thrown away, and where
the end of the log was cut since, leader epochs tell how much of the copy is still true, as between a follower and its
leader. Must not know tasks, threads or names of directories.
"""

from collections.abc import Callable
from typing import NamedTuple

from lamina.broker.partitions.follower import truncation_offset
from lamina.errors import CorruptMessage
from lamina.log.flushing import flush
from lamina.log.lease import Lease
from lamina.log.partition_log import PartitionLog
from lamina.records.batch import read_header
from lamina.records.replicated import checked_pieces

_ANY_EPOCH = 2**31 - 1


class Copied(NamedTuple):
    size_bytes: int
    begins_at: int | None = None
    """Where an empty copy has to begin, because the first batch does: the start of the log lies inside of it."""


class Cut(NamedTuple):
    """What has to become of a copy before more can follow."""

    offset: int
    is_whole: bool
    """Whether nothing of it stays, and it begins at the offset."""


def next_offset(copy: PartitionLog, log: PartitionLog) -> int:
    """Where to read on. An empty copy may begin inside a batch that begins before the log does."""
    return max(copy.log_end_offset, log.log_start_offset)


def is_empty(copy: PartitionLog) -> bool:
    return not copy.size_bytes()


def find_cut(copy: PartitionLog, log: PartitionLog) -> Cut | None:
    """How much of a copy goes after the log was cut; ``None`` where nothing does. To be asked again after a cut.

    What is left of it reaches into the log, or is nothing: then it begins where the log does, which may begin anew
    below the place where an empty copy was.
    """
    if is_empty(copy):
        is_at_start = copy.log_end_offset == log.log_start_offset
        return None if is_at_start else Cut(log.log_start_offset, is_whole=True)
    end = log.epochs.end_of(copy.epochs.latest, log.log_end_offset)
    if end.start_offset < 0:
        return Cut(log.log_start_offset, is_whole=True)
    offset = truncation_offset(copy, log.log_start_offset, end)
    if offset <= log.log_start_offset:
        return Cut(log.log_start_offset, is_whole=True)
    return Cut(offset, is_whole=False) if offset < copy.log_end_offset else None


def find_gap(copy: PartitionLog, log: PartitionLog) -> Cut | None:
    """The same after the start of the log has moved: beyond all of the copy it begins anew."""
    is_left_behind = copy.log_end_offset < log.log_start_offset and not is_empty(copy)
    return Cut(log.log_start_offset, is_whole=True) if is_left_behind else None


def segment_base(log: PartitionLog, offset: int) -> int:
    """Where the segment begins in which the first batch at or above the offset is."""
    segments = log.segments
    later = (segments[number] for number in range(segments.number_of(offset), len(segments)))
    return next((segment.base_offset for segment in later if segment.next_offset > offset), offset)


def copy_range(
    lease: Lease, base_offset: int, copy: PartitionLog, has_been_cut: Callable[[], bool], now_ms: int
) -> Copied:
    """Append what is in a range of the log, unless it was cut meanwhile. May run on any thread.

    ``base_offset`` is that of its segment: the copy has the same ones, so that retention and cleaning find them alike.
    What is in closed segments is flushed at once, so that little is left to be flushed in the end. Raises
    CORRUPT_MESSAGE or :class:`StorageError`.
    """
    data = lease.read()
    if has_been_cut():
        return Copied(0)
    first_offset = read_header(data).base_offset
    if first_offset < copy.log_end_offset:
        if not is_empty(copy):
            raise CorruptMessage(f"{copy.name} has a batch at {first_offset} beside others")
        return Copied(0, first_offset)
    segment, size_bytes = copy.segments.active, copy.size_bytes()
    if segment.base_offset < base_offset and not is_empty(copy):
        copy.roll(now_ms, base_offset)
    for piece in checked_pieces(data, _ANY_EPOCH):
        copy.append_as_follower(piece, now_ms)
    copy.producers.high_watermark_moved(copy.log_end_offset)
    if copy.segments.active is not segment:
        flush(copy)
    return Copied(copy.size_bytes() - size_bytes)
