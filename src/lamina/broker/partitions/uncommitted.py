"""How many bytes lie between the high watermark and the log end.

Owns their sizes by offset, so that whoever waits for committed bytes is told how many have come. Bounded: once there
are many, later appends are counted with the one before, and so come all at once. Must not know the log.
"""

from collections import deque

_MAX_ENTRIES = 1024


class UncommittedBytes:
    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: deque[tuple[int, int]] = deque()
        """The offset that has to be reached, and how many bytes that brings."""

    def add(self, end_offset: int, size_bytes: int) -> None:
        if len(self._entries) == _MAX_ENTRIES:
            size_bytes += self._entries.pop()[1]
        self._entries.append((end_offset, size_bytes))

    def take_up_to(self, offset: int) -> int:
        """How many bytes become committed when the high watermark moves to ``offset``."""
        size_bytes = 0
        while self._entries and self._entries[0][0] <= offset:
            size_bytes += self._entries.popleft()[1]
        return size_bytes

    def clear(self) -> None:
        self._entries.clear()
