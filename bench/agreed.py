"""What a client and a broker agreed on, seen from between them: version and cipher suite of a TLS handshake.

For clients that do not tell it themselves. Owns a relay for one connection, and where a ServerHello says it (RFC 8446,
4.1.3). Must not know either side.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from bench.load import Address
from bench.small_requests import CALL_SECONDS, WrongAnswer

VERSIONS = {0x0303: "TLSv1.2", 0x0304: "TLSv1.3"}
SUITES = {
    0x1301: "TLS_AES_128_GCM_SHA256",
    0x1302: "TLS_AES_256_GCM_SHA384",
    0x1303: "TLS_CHACHA20_POLY1305_SHA256",
}
_HANDSHAKE, _SERVER_HELLO = 22, 2
_SUPPORTED_VERSIONS = 43
_RECORD_HEADER_BYTES = 5
_AT_A_TIME_BYTES = 1 << 16


def agreed(address: Address, connect: Callable[[Address], None]) -> str:
    """Such as "TLSv1.3 TLS_AES_256_GCM_SHA384": ``connect`` is given an address that leads to the other one."""
    began = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(CALL_SECONDS)
        relaying = threading.Thread(target=_relay_first, args=(listening, address, began))
        relaying.start()
        try:
            host, port = listening.getsockname()
            connect((host, port))
        finally:
            # Wakes who still waits for a connection.
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            relaying.join()
    return read_server_hello(bytes(began))


def _relay_first(listening: socket.socket, address: Address, began: bytearray) -> None:
    """One connection, both ways until both sides have ended; what the broker said first is kept."""
    try:
        client, _ = listening.accept()
    except OSError:
        return
    with client, socket.create_connection(address, timeout=CALL_SECONDS) as broker:
        client.settimeout(CALL_SECONDS)
        backward = threading.Thread(target=_pass_on, args=(broker, client, began))
        backward.start()
        _pass_on(client, broker, bytearray())
        backward.join()


def _pass_on(source: socket.socket, target: socket.socket, began: bytearray) -> None:
    with suppress(OSError):
        while came := source.recv(_AT_A_TIME_BYTES):
            if len(began) < _AT_A_TIME_BYTES:
                began += came
            target.sendall(came)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def read_server_hello(came: bytes) -> str:
    """From the first bytes of a server."""
    try:
        kind, _, _ = struct.unpack_from(">BHH", came)
        if kind != _HANDSHAKE or came[_RECORD_HEADER_BYTES] != _SERVER_HELLO:
            raise WrongAnswer("a broker did not begin with a ServerHello")
        # Behind the header of the record, kind and length of the message: a version, and a random number.
        at = _RECORD_HEADER_BYTES + 4
        (version,) = struct.unpack_from(">H", came, at)
        at += 2 + 32
        at += 1 + came[at]
        (suite,) = struct.unpack_from(">H", came, at)
        at += 2 + 1
        (left,) = struct.unpack_from(">H", came, at)
        at, end = at + 2, at + 2 + left
        while at < end:
            extension, size = struct.unpack_from(">HH", came, at)
            if extension == _SUPPORTED_VERSIONS:
                (version,) = struct.unpack_from(">H", came, at + 4)
            at += 4 + size
    except (struct.error, IndexError):
        raise WrongAnswer("a broker's ServerHello is not whole") from None
    return f"{VERSIONS.get(version, hex(version))} {SUITES.get(suite, hex(suite))}"
