"""A socket with TLS that never waits: the system's calls on one side, OpenSSL on the other, memory in between.

OpenSSL, given the socket itself, asks the system twice for each record, and librdkafka makes two of a large message.
Here one call brings as many records as have come, and one takes as many as there are. Owns the socket, both memories
and the handshake; whoever fills them bounds them. Must not know when a socket is ready, nor what is said.
"""

import socket
import ssl
from contextlib import suppress

from lamina.wire.frames import allocate

FILL_BYTES = 32 * 1024
"""So much is taken from a socket at a time: OpenSSL's memory keeps the size that it once needed."""
_HANDSHAKE_FILL_BYTES = 16 * 1024


def new_scratch() -> memoryview:
    """What a loop receives into, for all its sockets."""
    return allocate(FILL_BYTES)


class SecureSocket:
    __slots__ = ("_scratch", "_unsent", "incoming", "outgoing", "socket", "tls")

    def __init__(self, accepted: socket.socket, context: ssl.SSLContext, scratch: memoryview) -> None:
        self.socket = accepted
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self._scratch = scratch
        self._unsent = memoryview(b"")
        """Of the handshake."""

    def fill(self, most_bytes: int) -> int:
        """Take what has come, still encrypted: how much, 0 at the end of the stream.

        Raises BlockingIOError when nothing has come, else OSError.
        """
        scratch = self._scratch
        count = self.socket.recv_into(scratch, min(most_bytes, FILL_BYTES))
        if count:
            self.incoming.write(scratch[:count])
        return count

    def do_handshake(self) -> None:
        """As that of Python's own sockets; raises SSLWantReadError and SSLWantWriteError where it has to wait."""
        self._flush()
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
            except OSError:
                # OpenSSL has left an alert for the client.
                with suppress(OSError):
                    self._flush()
                raise
            else:
                self._flush()
                return
            try:
                came = self.fill(_HANDSHAKE_FILL_BYTES)
            except (BlockingIOError, InterruptedError):
                raise ssl.SSLWantReadError from None
            if not came:
                raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "the stream ended during the handshake")

    def _flush(self) -> None:
        while self._unsent or self.outgoing.pending:
            if not self._unsent:
                self._unsent = memoryview(self.outgoing.read())
            try:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
            except (BlockingIOError, InterruptedError):
                raise ssl.SSLWantWriteError from None

    def close(self) -> None:
        """Without a word."""
        self.socket.close()

    def end(self) -> None:
        """Tell the client of the end, as far as that can be done at once, and close."""
        with suppress(OSError, ValueError):
            self.tls.unwrap()
        with suppress(OSError):
            if self.outgoing.pending:
                self.socket.send(self.outgoing.read())
        self.socket.close()
