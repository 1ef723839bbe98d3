"""What a segment's files say of time, read without touching the segment.

Only looks: nothing stays open, is mapped or rebuilt, so that it may happen on any thread while the log is in use.
Must not be used to decide anything.
"""

from typing import NamedTuple

from lamina.log.files import Disk
from lamina.log.index import TimeIndex


class SegmentTimes(NamedTuple):
    """``None`` for what cannot be known: the file is gone, or the index is empty."""

    modified_ms: int | None
    largest_timestamp: int | None


def read_times(disk: Disk, log_path: str, time_index_path: str) -> SegmentTimes:
    """The largest timestamp is that of a segment which is no longer written: its index then ends with it."""
    try:
        modified_ms: int | None = disk.modified_ms(log_path)
    except FileNotFoundError:
        modified_ms = None
    try:
        return SegmentTimes(modified_ms, _last_timestamp(disk, time_index_path))
    except FileNotFoundError:
        return SegmentTimes(modified_ms, None)


def _last_timestamp(disk: Disk, path: str) -> int | None:
    file = disk.open(path)
    try:
        entry = TimeIndex.ENTRY
        count = file.size() // entry.size
        last = file.pread(entry.size, (count - 1) * entry.size) if count else b""
    finally:
        file.close()
    return int(entry.unpack(last)[0]) if len(last) == entry.size else None
