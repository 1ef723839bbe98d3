"""A range of a log file, lent to a reader: what ``sendfile`` needs, and a way to give it back.

Owns what becomes of an error of the disk under a reader: the log that lent the range is told, and goes offline. A file
that became shorter, because its log was cut, is an error of that reader alone. Must not know segments; the lender
decides what giving back means.
"""

import errno
from collections.abc import Callable
from types import TracebackType

from lamina.errors import StorageError
from lamina.log.files import File

Fail = Callable[[OSError], StorageError]

_OF_THE_DISK = frozenset(
    getattr(errno, name)
    for name in ("EIO", "ENXIO", "ENODEV", "ESTALE", "EUCLEAN", "EBADMSG", "ENODATA", "EREMOTEIO")
    if hasattr(errno, name)
)
"""What ``sendfile`` says when the file cannot be read. Everything else concerns the socket."""


class ShortFile(Exception):
    """A file ends before the range that was lent of it: what was promised to a reader cannot be sent."""


class Lease:
    """``size_bytes`` from ``position`` of an open file. To be given back exactly once; further calls do nothing."""

    __slots__ = ("_fail", "_give_back", "file", "position", "size_bytes")

    def __init__(self, file: File, position: int, size_bytes: int, give_back: Callable[[], None]) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self._give_back: Callable[[], None] | None = give_back
        self._fail: Fail | None = None

    def reports_to(self, fail: Fail) -> "Lease":
        """Have ``fail`` told of errors of the disk. Any thread may meet one."""
        self._fail = fail
        return self

    def __len__(self) -> int:
        return self.size_bytes

    def advance(self, count: int) -> None:
        """The first ``count`` bytes are done with."""
        self.position += count
        self.size_bytes -= count

    def is_cached(self) -> bool:
        return self.file.is_cached(self.position, self.size_bytes)

    # Reading. All of these raise StorageError where the disk fails and somebody is told of it, else OSError.

    def read_cached(self) -> bytearray | None:
        """All of a short range, if it is in memory."""
        try:
            return self.file.read_cached(self.position, self.size_bytes)
        except OSError as error:
            raise self._failed(error) from error

    def read(self) -> bytes:
        """All of the range, in memory; less where the file has become shorter."""
        return self.read_at(self.position, self.size_bytes)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """A part of the range; less where the file has become shorter."""
        try:
            return self.file.pread(size_bytes, position)
        except OSError as error:
            raise self._failed(error) from error

    def load(self) -> None:
        """Bring all of the range into memory. May run on any thread."""
        try:
            self.file.load(self.position, self.size_bytes)
        except OSError as error:
            raise self._failed(error) from error

    def send_to(self, socket_fd: int) -> None:
        """Send as much as the socket takes; ``OSError`` is the socket's own. Raises :class:`ShortFile`."""
        try:
            sent = self.file.send(socket_fd, self.position, self.size_bytes)
        except OSError as error:
            if error.errno in _OF_THE_DISK:
                raise self._failed(error) from error
            raise
        if not sent:
            raise ShortFile(f"{self.file.path} ends at {self.position}, {self.size_bytes} more bytes were promised")
        self.advance(sent)

    def _failed(self, error: OSError) -> Exception:
        return error if self._fail is None else self._fail(error)

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
