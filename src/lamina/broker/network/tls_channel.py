"""A channel that speaks TLS: as the plain one, on a socket without waiting whose handshake is over.

Owns what is encrypted but not sent. Ranges of files are read in bounded pieces, for ``sendfile`` cannot encrypt
(S22), and no response has the loop for long, however fast its client takes it. Not more is taken from the socket than
the caller has room for, and a record: what is not decrypted yet stays small. Records that say little or nothing are
taken a little at a time, and a client that sends many of them and nothing else is ended: they cost as much as others,
and come from clients that have not logged in. Must not know when a socket is ready.
"""

import errno
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sized
from contextlib import suppress
from typing import cast

from lamina.broker.network.channel import drop
from lamina.broker.network.secure_socket import FILL_BYTES, SecureSocket
from lamina.errors import StorageError
from lamina.log.lease import Lease, ShortFile

logger = logging.getLogger(__name__)

_PIECE_BYTES = 128 * 1024
"""So much is read of a log, or gathered of small responses, before it is encrypted."""
_SENT_AT_A_TIME_BYTES = 1024 * 1024
_RECEIVED_AT_A_TIME_BYTES = 256 * 1024
_RECORD_BYTES = 16 * 1024
"""In a record at most. So much is encrypted at a time: OpenSSL's memory keeps the size that it once needed."""
_LEAST_FILL_BYTES = _RECORD_BYTES + 512
"""A whole record, however little room there is: else it would come in parts as small as that."""
_UNTOLD_BYTES = 4 * 1024
"""What OpenSSL itself answers leaves with the next response. A client may ask it for new keys again and again, and for
nothing else: it has so much of our memory."""
_READS_AT_A_TIME = 64
"""Each costs the same, whether a record has one byte or 16 KiB."""
_RECORD_OVERHEAD_BYTES = 96
"""The most that ciphers add to a record, without padding."""
_DOUBTFUL_BYTES = _LEAST_FILL_BYTES
"""Less than this may be the part of a record of which the rest has not come."""
_DOUBTFUL_FILL_BYTES = 2 * 1024
_LONG_DOUBTED_BYTES = 64 * 1024
"""So much is not forgotten for a word or two."""
_MOST_UNEXPLAINED_BYTES = _LONG_DOUBTED_BYTES + 32 * 1024
"""A padded record more, at least."""
_AGAIN = (errno.EAGAIN, "the socket is not ready")
_SEALED = b""
"""Stands in ``outgoing`` for what is encrypted and has not left."""


class TlsChannel:
    __slots__ = (
        "_encrypted",
        "_fd",
        "_fill",
        "_incoming",
        "_is_cut",
        "_is_over",
        "_read",
        "_sealed",
        "_secured",
        "_socket",
        "_unexplained_bytes",
        "_write",
        "outgoing",
    )

    def __init__(self, secured: SecureSocket) -> None:
        self._secured = secured
        self._socket = secured.socket
        self._fd = secured.socket.fileno()
        self._fill = secured.fill
        self._incoming, self._encrypted = secured.incoming, secured.outgoing
        self._read = cast(Callable[[int, memoryview], int], secured.tls.read)
        self._write: Callable[[memoryview], int] = secured.tls.write
        self._is_cut = False
        """Whether a record may have had no room as a whole: OpenSSL has the rest, decrypted."""
        self._is_over = False
        """Whether the stream has ended or failed behind what was received."""
        self._unexplained_bytes = 0
        """So much was taken from the socket beyond what was said with it. Whatever is said keeps it below what ends a
        client: whoever pads each record is slow, and stays."""
        self._sealed: deque[bytes | memoryview] = deque()
        """What is encrypted and has not left, in order."""
        self.outgoing: deque[Sized] = deque()
        """What is left to be sent, in order."""

    @property
    def fileno(self) -> int:
        return self._fd

    # In

    def receive_into(self, buffer: memoryview) -> int:
        """0 at the end of the stream; raises BlockingIOError when nothing has come, else OSError.

        More may have come in either case: :attr:`has_unread` says so, or the loop.
        """
        incoming, read = self._incoming, self._read
        received, limit = 0, min(len(buffer), _RECEIVED_AT_A_TIME_BYTES)
        came = wanted = reads = 0
        unexplained_bytes = self._unexplained_bytes
        is_cut, self._is_cut = self._is_cut, False
        try:
            while received < limit and reads < _READS_AT_A_TIME:
                if not incoming.pending and not is_cut:
                    if came < wanted:
                        # The socket is empty.
                        break
                    if self._is_over:
                        return received
                    self._refuse_floods(unexplained_bytes)
                    if unexplained_bytes < _DOUBTFUL_BYTES:
                        wanted = min(max(limit - received, _LEAST_FILL_BYTES), FILL_BYTES)
                    elif wanted:
                        break
                    else:
                        wanted = _DOUBTFUL_FILL_BYTES
                    came = self._fill(wanted)
                    if not came:
                        self._is_over = True
                        return received
                    unexplained_bytes += came
                    self._unexplained_bytes = unexplained_bytes
                is_cut = False
                reads += 1
                try:
                    count = read(limit - received, buffer[received:])
                except ssl.SSLWantReadError:
                    # The rest of a record has not come.
                    continue
                if not count:
                    self._is_over = True
                    return received
                received += count
                unexplained_bytes -= count + _RECORD_OVERHEAD_BYTES
            self._is_cut = received == limit
        except (BlockingIOError, InterruptedError):
            if not received:
                raise
        except OSError:
            self._is_over = True
            if not received:
                raise
        if not received:
            raise BlockingIOError(*_AGAIN)
        self._unexplained_bytes = min(max(unexplained_bytes, 0), _LONG_DOUBTED_BYTES)
        return received

    def _refuse_floods(self, unexplained_bytes: int) -> None:
        """Raise ConnectionAbortedError where a client has OpenSSL work, and says nothing."""
        if self._encrypted.pending > _UNTOLD_BYTES:
            raise ConnectionAbortedError(errno.ECONNABORTED, "the client asks TLS for much, and for no response")
        if unexplained_bytes > _MOST_UNEXPLAINED_BYTES:
            raise ConnectionAbortedError(errno.ECONNABORTED, "the client sends much, and says nothing")

    @property
    def has_unread(self) -> bool:
        """Whether something was taken from the socket, or an end was seen, of which the loop will not tell."""
        return self._is_over or self._incoming.pending > 0 or (self._is_cut and self._secured.tls.pending() > 0)

    def has_more(self) -> bool:
        """Whether bytes have come; False at the end of the stream. Raises BlockingIOError or OSError."""
        if self.has_unread:
            return not self._is_over
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
        self._sealed.clear()

    def send(self) -> None:
        """Send what there is; raises BlockingIOError when the rest has to wait, else OSError: the client is lost.

        So it has where a range cannot be read: its size is announced, and what came next would be taken for records.
        """
        left, sealed, outgoing = _SENT_AT_A_TIME_BYTES, self._sealed, self.outgoing
        try:
            while outgoing:
                if not sealed:
                    if left <= 0:
                        raise BlockingIOError(*_AGAIN)
                    left -= self._seal()
                while sealed:
                    self._send_sealed()
                outgoing.popleft()
        except (ShortFile, StorageError) as error:
            # A log is truncated under its readers where another leader has written something else.
            level = logging.WARNING if isinstance(error, ShortFile) else logging.ERROR
            logger.log(level, "a response is cut short: %s", error)
            raise OSError(errno.EIO, "a range of a log cannot be read") from error

    def _seal(self) -> int:
        """Encrypt the next bytes; how many they were."""
        chunk, at = self._next_chunk(), 0
        while at < len(chunk):
            at += self._write(chunk[at : at + _RECORD_BYTES])
            self._sealed.append(self._encrypted.read())
        self.outgoing.appendleft(_SEALED)
        return at

    def _send_sealed(self) -> None:
        sealed = self._sealed
        sent = self._socket.send(sealed[0]) if len(sealed) == 1 else self._socket.sendmsg(sealed)
        while sent:
            first = sealed.popleft()
            if sent < len(first):
                sealed.appendleft(memoryview(first)[sent:])
                return
            sent -= len(first)

    def _next_chunk(self) -> memoryview:
        """Take the next bytes together: each record costs."""
        outgoing = self.outgoing
        chunk = memoryview(self._take(_PIECE_BYTES))
        if outgoing and len(chunk) < _PIECE_BYTES:
            gathered = bytearray(chunk)
            while outgoing and len(gathered) < _PIECE_BYTES:
                gathered += self._take(_PIECE_BYTES - len(gathered))
            chunk = memoryview(gathered)
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
        is_in_order = not self._sealed
        self._drop()
        if is_in_order:
            self._secured.end()
        else:
            self._secured.close()
