"""Whether a ZooKeeper server is well, by its own word: ``ruok``, which it answers with ``imok``.

Owns the word, one of ZooKeeper's four-letter words. Must not open a session, nor know which servers there are.
"""

import socket

_WORD, _WELL = b"ruok", b"imok"
_ANSWER_BYTES = 256


def says_it_is_well(host: str, port: int, timeout_seconds: float) -> bool:
    """False where it accepts the connection and says anything else, or nothing: the word may not be on its list.

    Raises OSError where nobody accepts the connection, or nothing comes in time.
    """
    with socket.create_connection((host, port), timeout_seconds) as connection:
        connection.sendall(_WORD)
        return connection.recv(_ANSWER_BYTES) == _WELL


def accepts(host: str, port: int, timeout_seconds: float) -> None:
    """Raises OSError where nobody accepts a connection: all that can be asked of a server that wants TLS."""
    socket.create_connection((host, port), timeout_seconds).close()
