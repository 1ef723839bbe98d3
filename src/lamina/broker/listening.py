"""The listening sockets of a broker, and the connections that come through them.

Owns who is connected. Must not know what they say.
"""

import asyncio
import logging
import socket
from collections import Counter
from dataclasses import dataclass, replace

from lamina.broker.admission import Admission
from lamina.broker.connection import Connection, Ended, Service
from lamina.settings.listeners import Listener

logger = logging.getLogger(__name__)

_ACCEPTS_AT_A_TIME = 64
DESCRIPTORS = "descriptors"
"""Why a connection is refused when the system gives no socket for it."""
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
        self.admission = admission
        self._max_frame_bytes = max_frame_bytes
        self._max_idle_seconds = max_idle_ms / 1000
        self._bound: list[Bound] = []
        self.connections: set[Connection] = set()
        self.created: Counter[str] = Counter()
        """Accepted connections by listener, those that are gone included."""
        self.closed: Counter[Ended] = Counter()
        self.refused: Counter[str] = Counter()
        """Those that could not be accepted, by reason."""
        self._gone_bytes_in = 0
        self._gone_bytes_out = 0

    @property
    def names(self) -> list[str]:
        """Of the listeners."""
        return [bound.listener.name for bound in self._bound]

    @property
    def bytes_in(self) -> int:
        """Received over all connections there ever were."""
        return self._gone_bytes_in + sum(connection.bytes_in for connection in self.connections)

    @property
    def bytes_out(self) -> int:
        """Answered over all connections there ever were."""
        return self._gone_bytes_out + sum(connection.bytes_out for connection in self.connections)

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
        if self.admission.waiting:
            now = self._loop.time()
            for connection in [one for one in self.connections if one.is_dawdling(now)]:
                logger.warning("%s: closed: its request does not arrive, and others wait for memory", connection.peer)
                connection.close(Ended.ARRIVAL)
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
                connection.close(Ended.IDLE)
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
                self.refused[DESCRIPTORS] += 1
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
                self.admission,
                self._max_frame_bytes,
                self._disconnected,
            )
            self.connections.add(connection)
            self.created[bound.listener.name] += 1
            connection.start()

    def _disconnected(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._gone_bytes_in += connection.bytes_in
        self._gone_bytes_out += connection.bytes_out
        if connection.ended is not None:
            self.closed[connection.ended] += 1

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
