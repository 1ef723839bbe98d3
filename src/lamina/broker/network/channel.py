"""A plain channel: bytes from a socket, and responses on their way to it, bytes and ranges of files in order.

It reads straight from the socket (network facts §5.4). Small pieces leave together by ``sendmsg``, large ranges by
``sendfile`` without passing through the process. Owns the leases of ranges until their last byte is out. Must not
know when a socket is ready.
"""

import errno
import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sized
from contextlib import suppress
from typing import Protocol

from lamina.errors import StorageError
from lamina.log.lease import Lease, ShortFile

logger = logging.getLogger(__name__)

_SENDFILE_BYTES = 64 * 1024
_MAX_IOVECS = 64
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_IN_MEMORY = (bytes, bytearray, memoryview)


class Channel(Protocol):
    """The bytes of one client: the plain channel below, or the one that speaks TLS."""

    @property
    def outgoing(self) -> deque[Sized]: ...
    @property
    def receive_into(self) -> Callable[[memoryview], int]: ...
    @property
    def fileno(self) -> int: ...
    def has_more(self) -> bool: ...
    def give_up(self) -> None: ...
    def send(self) -> None: ...
    def close(self) -> None: ...


class PlainChannel:
    __slots__ = ("_fd", "_socket", "outgoing", "receive_into")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._fd = connected.fileno()
        self.receive_into: Callable[[memoryview], int] = connected.recv_into
        """0 at the end of the stream; raises BlockingIOError when nothing has come."""
        self.outgoing: deque[Sized] = deque()
        """What is left to be sent, in order."""

    @property
    def fileno(self) -> int:
        return self._fd

    # In

    def has_more(self) -> bool:
        """Whether bytes can be received; False at the end of the stream. Raises as ``receive_into``."""
        return bool(self._socket.recv(1, socket.MSG_PEEK))

    # Out

    def give_up(self) -> None:
        """Send nothing more, whatever is added. What has come can still be received, and then the stream ends."""
        self._drop()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _drop(self) -> None:
        drop(self.outgoing)
        self.outgoing.clear()

    def send(self) -> None:
        """Send everything; raises BlockingIOError when the socket takes no more for now, else OSError: it has to end.

        So it has where a range cannot be read: its size is announced, and what came next would be taken for records.
        """
        try:
            while self.outgoing:
                first = self.outgoing[0]
                if type(first) is bytearray and len(self.outgoing) == 1:
                    self._send_alone(first)
                elif type(first) is Lease and len(first) >= _SENDFILE_BYTES:
                    self._send_range(first)
                else:
                    self._send_bytes()
        except (ShortFile, StorageError) as error:
            # A log is truncated under its readers where another leader has written something else.
            level = logging.WARNING if isinstance(error, ShortFile) else logging.ERROR
            logger.log(level, "a response is cut short: %s", error)
            raise OSError(errno.EIO, "a range of a log cannot be read") from error

    def _send_alone(self, piece: bytearray) -> None:
        """A short answer with nothing behind it, as most are."""
        sent = self._socket.send(piece)
        self.outgoing.popleft()
        if sent < len(piece):
            self.outgoing.append(memoryview(piece)[sent:])

    def _send_range(self, lease: Lease) -> None:
        lease.send_to(self._fd)
        if not lease.size_bytes:
            self.outgoing.popleft()
            lease.give_back()

    def _send_bytes(self) -> None:
        pieces = self.outgoing
        vectors: list[bytes | bytearray | memoryview] = []
        more = 0
        for number, piece in enumerate(pieces):
            if type(piece) is Lease:
                if len(piece) >= _SENDFILE_BYTES:
                    more = _MSG_MORE
                    break
                data = piece.read()
                if len(data) < piece.size_bytes:
                    raise ShortFile(f"{piece.file.path} holds {len(data)} of {piece.size_bytes} bytes to be sent")
                piece.give_back()
                pieces[number] = piece = data
            assert isinstance(piece, _IN_MEMORY)
            vectors.append(piece)
            if len(vectors) == _MAX_IOVECS:
                break
        if len(vectors) == 1 and not more:
            sent = self._socket.send(vectors[0])
        else:
            sent = self._socket.sendmsg(vectors, (), more)
        for vector in vectors:
            if sent < len(vector):
                pieces[0] = memoryview(vector)[sent:]
                break
            sent -= len(vector)
            pieces.popleft()

    def close(self) -> None:
        self._drop()
        self._socket.close()


def drop(pieces: Iterable[Sized]) -> None:
    """Give back what a response that will not be sent holds."""
    for piece in pieces:
        if type(piece) is Lease:
            piece.give_back()
