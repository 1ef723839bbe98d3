"""A range of a log file, lent to a reader: what ``sendfile`` needs, and a way to give it back.

Must not know segments; whoever lends decides what giving back means.
"""

from collections.abc import Callable
from types import TracebackType

from lamina.log.files import File


class Lease:
    """``size_bytes`` from ``position`` of an open file. To be given back exactly once; further calls do nothing."""

    __slots__ = ("_give_back", "file", "position", "size_bytes")

    def __init__(self, file: File, position: int, size_bytes: int, give_back: Callable[[], None]) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self._give_back: Callable[[], None] | None = give_back

    def __len__(self) -> int:
        return self.size_bytes

    def advance(self, count: int) -> None:
        """The first ``count`` bytes are done with."""
        self.position += count
        self.size_bytes -= count

    def is_cached(self) -> bool:
        return self.file.is_cached(self.position, self.size_bytes)

    def read(self) -> bytes:
        """All of the range, in memory."""
        return self.file.pread(self.size_bytes, self.position)

    def give_back(self) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()

    def __enter__(self) -> "Lease":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()
