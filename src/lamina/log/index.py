"""The two sparse indexes of a segment: offset → position, timestamp → offset (formats.md §2.3).

Owns what their entries mean and how they are searched. An index is only a shortcut: one that is missing or
wrong is rebuilt from the log. Must not know batches.
"""

from struct import Struct
from typing import NamedTuple

from lamina.log.entries import IndexFile


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex:
    """Greatest indexed batch at or below an offset. Relative offsets strictly increase."""

    ENTRY = Struct(">ii")
    __slots__ = ("base_offset", "file", "last_entry")

    def __init__(self, base_offset: int, file: IndexFile) -> None:
        self.base_offset = base_offset
        self.file = file
        self.last_entry = self._read_last()

    def _read_last(self) -> OffsetPosition:
        if not self.file.count:
            return OffsetPosition(self.base_offset, 0)
        relative, position = self.file.read_last()
        return OffsetPosition(self.base_offset + relative, position)

    def entry(self, number: int) -> OffsetPosition:
        relative, position = self.file.read(number)
        return OffsetPosition(self.base_offset + relative, position)

    @property
    def is_full(self) -> bool:
        return self.file.count >= self.file.max_entries

    def append(self, offset: int, position: int) -> None:
        """Add an entry; a full index takes no more, and its segment rolls before the next batch."""
        if not self.is_full:
            self.file.append(offset - self.base_offset, position)
            self.last_entry = OffsetPosition(offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The greatest entry at or below ``offset``; before the first one, the segment's start."""
        if offset >= self.last_entry.offset:
            return self.last_entry
        return self._greatest(0, offset - self.base_offset)

    def lookup_position(self, position: int) -> OffsetPosition:
        """The greatest entry at or below ``position`` of the log file; before the first one, the segment's start."""
        return self.last_entry if position >= self.last_entry.position else self._greatest(1, position)

    def _greatest(self, field: int, limit: int) -> OffsetPosition:
        unpack, low, high = self.ENTRY.unpack_from, 0, self.file.count
        entries = self.file.map() if high else b""
        while low < high:
            middle = (low + high) // 2
            if unpack(entries, middle * 8)[field] <= limit:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1) if low else OffsetPosition(self.base_offset, 0)

    def truncate_to(self, offset: int) -> None:
        """Forget entries at or above ``offset``."""
        count = self.file.count
        while count and self.entry(count - 1).offset >= offset:
            count -= 1
        self.file.cut(count)
        self.last_entry = self._read_last()

    def is_plausible(self, log_bytes: int) -> bool:
        """Whether the last entry can be true. The first batch never has one: zeros mean that data was lost."""
        if not self.file.count:
            return True
        return self.last_entry.offset > self.base_offset and 0 < self.last_entry.position < log_bytes


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex:
    """Up to each entry's offset no message has a larger timestamp. Timestamps strictly increase."""

    ENTRY = Struct(">qi")
    __slots__ = ("base_offset", "file", "last")

    def __init__(self, base_offset: int, file: IndexFile) -> None:
        self.base_offset = base_offset
        self.file = file
        self.last = self._read_last()

    def _read_last(self) -> TimestampOffset:
        if not self.file.count:
            return TimestampOffset(-1, self.base_offset)
        timestamp, relative = self.file.read_last()
        return TimestampOffset(timestamp, self.base_offset + relative)

    def entry(self, number: int) -> TimestampOffset:
        timestamp, relative = self.file.read(number)
        return TimestampOffset(timestamp, self.base_offset + relative)

    @property
    def is_full(self) -> bool:
        """One slot is kept for the last entry, which is forced when the segment closes."""
        return self.file.count >= self.file.max_entries - 1

    def append(self, timestamp: int, offset: int, *, force: bool = False) -> None:
        """Add an entry if the timestamp grew. ``force`` may take the reserved slot."""
        room = self.file.count < self.file.max_entries if force else not self.is_full
        if timestamp > self.last.timestamp and room:
            self.file.append(timestamp, offset - self.base_offset)
            self.last = TimestampOffset(timestamp, offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry at or below ``timestamp``; before the first one, the segment's start."""
        low, high = 0, self.file.count
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle).timestamp <= timestamp:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1) if low else TimestampOffset(-1, self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Forget entries at or above ``offset``."""
        count = self.file.count
        while count and self.entry(count - 1).offset >= offset:
            count -= 1
        self.file.cut(count)
        self.last = self._read_last()

    def is_plausible(self, log_bytes: int) -> bool:
        """Whether the last entry can be true; a segment with batches has at least one entry once it is closed."""
        if not self.file.count:
            return not log_bytes
        if self.file.count > 1:
            before = self.entry(self.file.count - 2)
            return self.last.timestamp > before.timestamp and self.last.offset > before.offset
        return self.last.timestamp >= 0 and self.last.offset >= self.base_offset
