"""The listening sockets of a broker, and the connections that come through them.

Owns who is connected. Must not know what they say.
"""

import asyncio
import logging
import socket
from dataclasses import dataclass, replace

from lamina.broker.admission import Admission
from lamina.broker.connection import Connection, Service
from lamina.settings.listeners import Listener

logger = logging.getLogger(__name__)

_ACCEPTS_AT_A_TIME = 64
_ROOM_CHECK_SECONDS = 1.0
_SWEEPS_PER_IDLE_TIME = 4


@dataclass(frozen=True, slots=True)
class Bound:
    """A listener with the port that it really got."""

    listener: Listener
    socket: socket.socket

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    @property
    def taken(self) -> Listener:
        return replace(self.listener, port=self.port)


class Listening:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        service: Service,
        admission: Admission,
        max_frame_bytes: int,
        max_idle_ms: int,
    ) -> None:
        self._loop = loop
        self._service = service
        self._admission = admission
        self._max_frame_bytes = max_frame_bytes
        self._max_idle_seconds = max_idle_ms / 1000
        self._bound: list[Bound] = []
        self.connections: set[Connection] = set()

    def start(self, bound: list[Bound]) -> None:
        for one in bound:
            self._bound.append(one)
            self._loop.add_reader(one.socket.fileno(), self._accept, one)
        if self._max_idle_seconds >= 0:
            self._sweep_later()
        self._make_room_later()

    def _make_room_later(self) -> None:
        self._loop.call_later(_ROOM_CHECK_SECONDS, self._make_room)

    def _make_room(self) -> None:
        """While requests wait for memory, end those that hold it and do not arrive."""
        if self._admission.waiting:
            now = self._loop.time()
            for connection in [one for one in self.connections if one.is_dawdling(now)]:
                logger.warning("%s: closed: its request does not arrive, and others wait for memory", connection.peer)
                connection.close()
        if self._bound:
            self._make_room_later()

    def _sweep_later(self) -> None:
        self._loop.call_later(self._max_idle_seconds / _SWEEPS_PER_IDLE_TIME, self._sweep)

    def _sweep(self) -> None:
        """Close connections that nobody uses: a client that died without a word, a request that never ends."""
        idle_since = self._loop.time() - self._max_idle_seconds
        for connection in list(self.connections):
            if connection.active_at < idle_since and not connection.is_waiting:
                logger.info("%s: closed after %g s of silence", connection.peer, self._max_idle_seconds)
                connection.close()
        if self._bound:
            self._sweep_later()

    def _accept(self, bound: Bound) -> None:
        for _ in range(_ACCEPTS_AT_A_TIME):
            try:
                accepted, address = bound.socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # No descriptors left: those who are connected go on, and the next one is tried again later.
                logger.error("a connection could not be accepted: %s", error.strerror)
                self._loop.remove_reader(bound.socket.fileno())
                self._loop.call_later(0.1, self._resume, bound)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(
                self._loop,
                accepted,
                f"{address[0]}:{address[1]}",
                bound.listener.name,
                self._service,
                self._admission,
                self._max_frame_bytes,
                self.connections.discard,
            )
            self.connections.add(connection)
            connection.start()

    def _resume(self, bound: Bound) -> None:
        if bound in self._bound:
            self._loop.add_reader(bound.socket.fileno(), self._accept, bound)

    def stop_accepting(self) -> None:
        for bound in self._bound:
            self._loop.remove_reader(bound.socket.fileno())
            bound.socket.close()
        self._bound.clear()


def bind(listener: Listener, backlog: int) -> Bound:
    """Open a listening socket; an empty host means every address, IPv6 too where there is any."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    host = listener.host
    if not host:
        family, host = (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")
    elif family == socket.AF_INET:
        found = socket.getaddrinfo(host, listener.port, type=socket.SOCK_STREAM)[0]
        family, host = found[0], str(found[4][0])
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not listener.host else 1)
        listening.bind((host, listener.port))
        listening.listen(backlog)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return Bound(listener, listening)
