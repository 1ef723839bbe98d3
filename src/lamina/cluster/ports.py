"""Ports of this machine's loopback: free ones, and whether one is free. Must not hold any."""

import random
import socket
from collections import deque

HOST = "127.0.0.1"
"""Where everything of the cluster listens."""

_LISTENING = range(20000, 32768)
"""Below those that systems give to outgoing connections: none of them takes the port of a broker that is down."""
_given: deque[int] = deque(maxlen=1000)


def free_port() -> int:
    """One that was free a moment ago, and not among the last that were given here: nobody may listen there yet."""
    for port in random.sample(_LISTENING, len(_LISTENING)):
        if port not in _given and is_free(port):
            _given.append(port)
            return port
    raise OSError(f"no port from {_LISTENING.start} to {_LISTENING.stop - 1} is free")


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        # As a broker binds: what lingers of a closed connection does not count.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError:
            return False
    return True
