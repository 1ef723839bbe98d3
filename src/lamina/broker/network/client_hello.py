"""Whether the first record of a TLS handshake has come, looked at without taking it.

Owns how much of it has to be there, and tells the system, so that the loop is told of the whole record and not of each
byte. A stranger who has sent less than the whole has cost no TLS. Must not know who waits for it.
"""

import socket
from contextlib import suppress
from enum import Enum, auto

_HEADER_BYTES = 5
_HANDSHAKE = 0x16
_MAJOR_VERSION = 3
_MOST_BYTES = 1 << 14
"""In a record that is not encrypted, behind its header."""
EARLY_PAUSE_SECONDS = 0.5
"""How long to leave a socket of which the loop tells too early."""


class Hello(Enum):
    NONE = auto()
    PART = auto()
    """The loop tells of the rest."""
    EARLY = auto()
    """A part, as before: the system tells of each byte, and the socket is better looked at later."""
    WHOLE = auto()
    NO_TLS = auto()
    GONE = auto()
    """The client has, before it said anything."""


class ClientHello:
    __slots__ = ("_socket", "_wanted_bytes")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._wanted_bytes = 1

    def look(self) -> Hello:
        try:
            came = self._socket.recv(_HEADER_BYTES + _MOST_BYTES, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return Hello.NONE
        except OSError:
            return Hello.GONE
        if not came:
            return Hello.GONE
        if came[0] != _HANDSHAKE or came[1:2] not in (b"", bytes([_MAJOR_VERSION])):
            return Hello.NO_TLS
        wanted = _HEADER_BYTES
        if len(came) >= _HEADER_BYTES:
            wanted += min(int.from_bytes(came[3:5], "big"), _MOST_BYTES)
            if len(came) >= wanted:
                self._want(1)
                return Hello.WHOLE
        if wanted == self._wanted_bytes:
            return Hello.EARLY
        self._want(wanted)
        return Hello.PART

    def _want(self, count: int) -> None:
        if count != self._wanted_bytes:
            self._wanted_bytes = count
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
