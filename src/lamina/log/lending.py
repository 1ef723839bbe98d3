"""Files of segments lent to a reader in another process: linked into a folder of its own, which is unlinked in the end.

Owns the folders in ``.lamina-reading`` of a log directory, and which ranges of files hold which offsets. A link keeps
the bytes, whatever becomes of the segment: retention, cleaning and deletion take away other names of the file, and a
truncation gives the log a file of its own when it sees that the one it would cut has two names. Must not know who
reads, nor for how long.
"""

from typing import NamedTuple

from lamina.errors import OffsetOutOfRange
from lamina.log.files import Disk
from lamina.log.names import READING_FOLDER
from lamina.log.partition_log import PartitionLog
from lamina.log.positions import find, position_of
from lamina.log.segment import LOG, Segment
from lamina.log.transaction_index import AbortedTransaction


class LentRange(NamedTuple):
    """Whole batches of one segment."""

    segment: Segment
    path: str
    start_position: int
    end_position: int


class LentRanges(NamedTuple):
    found: list[LentRange]
    end_offset: int
    """Up to there, the log has no other batches than these."""
    aborted: list[AbortedTransaction]
    """Whose batches among them a reader of committed records has to skip."""


class LentFile(NamedTuple):
    base_offset: int
    start_position: int
    end_position: int
    inode: int
    """Which file it is, on whichever machine the folder is seen."""


def find_ranges(log: PartitionLog, start: int, end: int, bound: int, most: int) -> LentRanges:
    """Where the batches of ``[start, end)`` are, and all that follow them in the same segments, below ``bound``.

    At most so many segments. Raises OFFSET_OUT_OF_RANGE, or KAFKA_STORAGE_ERROR.
    """
    log.require_online()
    if not log.log_start_offset <= start <= log.log_end_offset:
        raise OffsetOutOfRange(
            f"{log.name} holds offsets {log.log_start_offset} to {log.log_end_offset}, {start} was asked for"
        )
    end = min(end, bound)
    if start >= end:
        return LentRanges([], start, [])
    segments = log.segments.between(start, end)[:most]
    following = log.segments.between(segments[-1].base_offset + 1, bound)
    until = next((one.base_offset for one in following if one is not segments[-1]), bound)
    try:
        ranges = [_range_in(segment, start, until) for segment in segments]
        found = [one for one in ranges if one.start_position < one.end_position]
        return LentRanges(found, until, log.segments.aborted_between(start, until) if found else [])
    except OSError as error:
        raise log.fail(error) from error


def _range_in(segment: Segment, start: int, until: int) -> LentRange:
    start_position = 0
    if start > segment.base_offset:
        first = find(segment, start)
        start_position = segment.size_bytes if first is None else first[0]
    return LentRange(segment, segment.path(), start_position, position_of(segment, until))


def are_unchanged(log: PartitionLog, ranges: LentRanges) -> bool:
    """Whether links that were made by the names of these segments lead to them.

    A segment is out of the log before its names change.
    """
    return not log.is_truncating and all(one.segment in log.segments for one in ranges.found)


def link_files(disk: Disk, folder: str, ranges: LentRanges) -> list[LentFile]:
    """Give the files second names in a new folder. May run on any thread; raises OSError, and then leaves nothing."""
    disk.make_dir(folder)
    try:
        for one in ranges.found:
            disk.link(one.path, f"{folder}/{_name(one)}")
        inodes = {entry.name: entry.inode for entry in disk.scan(folder)}
    except OSError:
        disk.remove_tree(folder)
        raise
    return [
        LentFile(one.segment.base_offset, one.start_position, one.end_position, inodes[_name(one)])
        for one in ranges.found
    ]


def _name(one: LentRange) -> str:
    return f"{one.segment.base_offset:020d}{LOG}"


def held_bytes(disk: Disk, folder: str) -> int:
    """How much of the disk only the links of a folder keep: nothing else has these files any more."""
    return sum(entry.size_bytes for entry in disk.scan(folder) if not disk.is_shared(f"{folder}/{entry.name}"))


def remove_lent(disk: Disk, directory: str) -> None:
    """Take back all that a broker which has ended has lent. Readers keep what they have open."""
    disk.remove_tree(f"{directory}/{READING_FOLDER}")
