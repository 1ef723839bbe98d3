"""A channel that speaks TLS: as the plain one, on a socket without waiting whose handshake is over.

Owns what is encrypted but not sent. Ranges of files are read in bounded pieces, for ``sendfile`` cannot encrypt
(S22), and no response has the loop for long, however fast its client takes it. Must not know when a socket is ready.
"""

import errno
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sized
from contextlib import suppress

from lamina.broker.network.channel import drop
from lamina.errors import StorageError
from lamina.log.lease import Lease, ShortFile

logger = logging.getLogger(__name__)

_PIECE_BYTES = 128 * 1024
"""So much is read of a log, or gathered of small responses, before it is encrypted."""
_SENT_AT_A_TIME_BYTES = 1024 * 1024
_RECEIVED_AT_A_TIME_BYTES = 256 * 1024
_AGAIN = (errno.EAGAIN, "the socket is not ready")


class TlsChannel:
    __slots__ = ("_chunk", "_fd", "_is_over", "_read", "_socket", "_write", "outgoing")

    def __init__(self, connected: ssl.SSLSocket) -> None:
        self._socket = connected
        self._fd = connected.fileno()
        self._read: Callable[[memoryview], int] = connected.recv_into
        self._write: Callable[[memoryview], int] = connected.send
        self._is_over = False
        """Whether the stream has ended or failed behind what was received."""
        self._chunk: memoryview | None = None
        """What is being sent, the first in ``outgoing``: OpenSSL wants the same bytes again if they could not go."""
        self.outgoing: deque[Sized] = deque()
        """What is left to be sent, in order."""

    @property
    def fileno(self) -> int:
        return self._fd

    # In

    def receive_into(self, buffer: memoryview) -> int:
        """0 at the end of the stream; raises BlockingIOError when nothing has come, else OSError."""
        received, limit = 0, min(len(buffer), _RECEIVED_AT_A_TIME_BYTES)
        try:
            while received < limit:
                count = self._read(buffer[received:])
                if not count:
                    self._is_over = True
                    break
                received += count
        except ssl.SSLWantReadError:
            if not received:
                raise BlockingIOError(*_AGAIN) from None
        except OSError:
            self._is_over = True
            if not received:
                raise
        return received

    @property
    def has_unread(self) -> bool:
        """Whether something was decrypted, or an end was seen, of which the loop will not tell."""
        return self._is_over or self._socket.pending() > 0

    def has_more(self) -> bool:
        """Whether bytes have come; False at the end of the stream. Raises BlockingIOError or OSError."""
        if self.has_unread:
            return not self._is_over
        # The socket's own, below TLS.
        return bool(socket.socket.recv(self._socket, 1, socket.MSG_PEEK))

    # Out

    def give_up(self) -> None:
        """Send nothing more, whatever is added. What has come can still be received, and then the stream ends."""
        self._drop()
        with suppress(OSError):
            # Not the TLS socket's own, which would take what comes next for plain bytes.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _drop(self) -> None:
        drop(self.outgoing)
        self.outgoing.clear()
        self._chunk = None

    def send(self) -> None:
        """Send what there is; raises BlockingIOError when the rest has to wait, else OSError: the client is lost.

        So it has where a range cannot be read: its size is announced, and what came next would be taken for records.
        """
        left = _SENT_AT_A_TIME_BYTES
        try:
            while self.outgoing:
                if left <= 0:
                    raise BlockingIOError(*_AGAIN)
                chunk = self._chunk or self._next_chunk()
                sent = self._write(chunk) if chunk else 0
                left -= sent
                if sent < len(chunk):
                    self._chunk = self.outgoing[0] = chunk[sent:]
                else:
                    self._chunk = None
                    self.outgoing.popleft()
        except ssl.SSLWantWriteError:
            raise BlockingIOError(*_AGAIN) from None
        except (ShortFile, StorageError) as error:
            logger.error("a response is cut short: %s", error)
            raise OSError(errno.EIO, "a range of a log cannot be read") from error

    def _next_chunk(self) -> memoryview:
        """Take the next bytes together: each call of OpenSSL makes records of its own."""
        outgoing = self.outgoing
        chunk = memoryview(self._take(_PIECE_BYTES))
        if outgoing and len(chunk) < _PIECE_BYTES:
            gathered = bytearray(chunk)
            while outgoing and len(gathered) < _PIECE_BYTES:
                gathered += self._take(_PIECE_BYTES - len(gathered))
            chunk = memoryview(gathered)
        outgoing.appendleft(chunk)
        self._chunk = chunk
        return chunk

    def _take(self, most_bytes: int) -> bytes | bytearray | memoryview:
        """The first bytes of what is left, at most so many."""
        piece = self.outgoing[0]
        if type(piece) is Lease:
            wanted = min(piece.size_bytes, most_bytes)
            data = piece.read_at(piece.position, wanted)
            if len(data) < wanted:
                raise ShortFile(f"{piece.file.path} holds {len(data)} of {wanted} bytes to be sent")
            piece.advance(wanted)
            if not piece.size_bytes:
                self.outgoing.popleft()
                piece.give_back()
            return data
        assert isinstance(piece, bytes | bytearray | memoryview)
        if len(piece) <= most_bytes:
            self.outgoing.popleft()
            return piece
        whole = memoryview(piece)
        self.outgoing[0] = whole[most_bytes:]
        return whole[:most_bytes]

    def close(self) -> None:
        """Tell the client of the end, as far as that can be done at once."""
        self._drop()
        with suppress(OSError, ValueError):
            self._socket.unwrap()
        self._socket.close()
