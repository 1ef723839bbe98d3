"""Why an ensemble did not answer: each of its servers is tried once, by a connection of its own.

kazoo tells only that it has no session yet. Owns the words for each cause. Must not open a session.
"""

import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

_SECONDS = 1.0
_UNKNOWN_NAME, _REFUSED = "the name cannot be resolved", "connection refused"
_UNREACHED, _CONNECTED = "it cannot be reached", "it accepts the connection and says nothing"

_ADVICE = {
    _CONNECTED: "check that a majority of the servers runs, and that the port is the one for clients",
    _UNKNOWN_NAME: "correct zookeeper.connect",
    _REFUSED: "start ZooKeeper, or correct zookeeper.connect",
    _UNREACHED: "check the network, or correct zookeeper.connect",
}
"""What to do; that of the first cause which some server has."""


def why_silent(hosts: Iterable[str]) -> str:
    """Each server, as host:port, with its cause, and what to do."""
    servers = list(hosts)
    with ThreadPoolExecutor(len(servers)) as threads:
        causes = list(threads.map(_cause, servers))
    told = ", ".join(f"{server} ({cause})" for server, cause in zip(servers, causes, strict=True))
    return f"{told}; {next(advice for cause, advice in _ADVICE.items() if cause in causes)}"


def _cause(server: str) -> str:
    host, _, port = server.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _SECONDS):
            return _CONNECTED
    except socket.gaierror:
        return _UNKNOWN_NAME
    except ConnectionRefusedError:
        return _REFUSED
    except OSError:
        return _UNREACHED
