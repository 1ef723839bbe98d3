"""Lines out of files and pipes, in bounded memory.

A line ends with LF, which is not part of it; a CR before it is. The last line may lack its LF. A line longer than the
limit is an error before it is read to its end. Must not know what the lines say.
"""

import os
import select
import sys
from collections.abc import Callable, Iterator
from errno import EBADF

_READ_BYTES = 1 << 20
_WAIT_MS = 100


class TooLong(Exception):
    """A line is longer than the limit."""


class LineSplitter:
    """Bytes in, whole lines out."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now."""
        head, newline, rest = data.partition(b"\n")
        if not newline:
            self._hold(data)
            return []
        self._hold(head)
        lines = [self._joined(), *rest.split(b"\n")]
        self._hold(lines.pop())
        return lines

    def finish(self) -> list[bytes]:
        return [self._joined()] if self._held_bytes else []

    @property
    def is_too_long(self) -> bool:
        """Whether what is held is longer than a line may be."""
        return self._held_bytes > self._max_line_bytes

    def _hold(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
            self._held_bytes += len(part)

    def _joined(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._held_bytes = 0
        return line


def lines_of(
    descriptor: int, max_line_bytes: int, is_stopped: Callable[[], bool], idle: Callable[[], None]
) -> Iterator[list[bytes]]:
    """Lists of lines as they come, until the end or ``is_stopped``; ``idle`` is called while nothing comes.

    Raises TooLong behind the lines before the one that is.
    """
    splitter, readable = LineSplitter(max_line_bytes), select.poll()
    readable.register(descriptor, select.POLLIN)
    while not is_stopped():
        if not readable.poll(_WAIT_MS):
            idle()
            continue
        data = os.read(descriptor, _READ_BYTES)
        if not data:
            yield splitter.finish()
            return
        lines = splitter.feed(data)
        for number, line in enumerate(lines):
            if len(line) > max_line_bytes:
                yield lines[:number]
                raise TooLong
        yield lines
        if splitter.is_too_long:
            raise TooLong


def open_input(name: str) -> int:
    """A descriptor; ``-`` is standard input."""
    if name == "-" and sys.stdin is None:
        raise OSError(EBADF, "it is closed: give --file")
    return os.dup(sys.stdin.fileno()) if name == "-" else os.open(name, os.O_RDONLY)
