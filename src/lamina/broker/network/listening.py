"""The listening sockets of a broker, and the connections that come through them.

Owns who is connected, and does what ``connection_quota`` decides about who may. Must not know what they say.
"""

import asyncio
import errno
import logging
import resource
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from ipaddress import ip_address
from typing import NamedTuple, Protocol

from lamina.broker.network.address_rates import AddressRates
from lamina.broker.network.admission import Admission, strangers_share
from lamina.broker.network.channel import Channel, PlainChannel
from lamina.broker.network.connection import Connection, Ended, Service, refusal_lines
from lamina.broker.network.connection_quota import UNTIL_ONE_LEAVES, ConnectionQuota
from lamina.broker.network.handshakes import Handshakes
from lamina.broker.network.hang_ups import HangUps
from lamina.broker.network.refusal_lines import RefusalLines
from lamina.broker.network.secure_socket import SecureSocket
from lamina.broker.network.tls_channel import TlsChannel
from lamina.broker.network.tls_connection import TlsConnection
from lamina.broker.network.tls_listeners import TlsListeners
from lamina.broker.requests.request import ANONYMOUS
from lamina.clocks import Clocks
from lamina.security.quotas import CONNECTION_CREATION_RATE
from lamina.settings.connection_limits import ConnectionLimits
from lamina.settings.listeners import Listener
from lamina.wire.frames import SharedBuffers

logger = logging.getLogger(__name__)

_ACCEPTS_AT_A_TIME = 64
_REFUSALS_AT_A_TIME = 16
_REFUSAL_PAUSE_SECONDS = 0.005
"""So many are turned away, then those who are connected have the loop for a while: a flood takes a part of it only."""
_STALLED_CHECK_SECONDS = 1.0
_SWEEPS_PER_IDLE_TIME = 4
_MOST_KEPT = 256
"""Connections of addresses that exceed their quota, which wait for their end."""
_LEAST_KEPT_DESCRIPTORS = 64
_MOST_KEPT_DESCRIPTORS = 4096
_LEAST_SWEEP_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Bound:
    """A listener with the port that it really got."""

    listener: Listener
    socket: socket.socket
    backlog: int

    def listen(self) -> None:
        """From now on the system takes connections; before, it refuses them."""
        self.socket.listen(self.backlog)

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    @property
    def taken(self) -> Listener:
        return replace(self.listener, port=self.port)


class Door(Protocol):
    """What the connections of one listener pass before they are served."""

    def service(self) -> Service:
        """Of one more connection."""

    def opened(self, connection: Connection) -> None:
        """It is served from now on."""


class _Refusal(NamedTuple):
    reason: str
    seconds: float = 0.0
    """How long the connection is kept before it is closed."""


class Listening:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        service: Service,
        admission: Admission,
        quota: ConnectionQuota,
        address_rates: AddressRates,
        max_frame_bytes: int,
        max_idle_ms: int,
        most_handshakes: int,
        tls: TlsListeners,
        doors: Mapping[str, Door] | None = None,
    ) -> None:
        """``most_handshakes`` may wait to begin; ``doors`` are those of listeners that have one, by name."""
        self._loop = loop
        self.tls = tls
        self.handshakes = Handshakes(loop, most_handshakes)
        self._clocks = clocks
        self._service = service
        self._doors = doors or {}
        self._buffers = SharedBuffers()
        self._hang_ups = HangUps(loop)
        self.admission = admission
        self.strangers_admission = strangers_share(admission)
        """The memory of clients that have not logged in where they have to."""
        self.quota = quota
        self.address_rates = address_rates
        self._kept: set[socket.socket] = set()
        """Connections that were turned away, and are closed later."""
        self._refusals = RefusalLines(logger)
        self._refused_later = refusal_lines()
        """About connections that came in and were ended for what they said, or did not say."""
        self._max_frame_bytes = max_frame_bytes
        self._max_idle_seconds = max_idle_ms / 1000
        self._bound: list[Bound] = []
        self._waiting: set[Bound] = set()
        """Listeners that accept no connection until one closes or the limits change."""
        self._looking_up: asyncio.Task[None] | None = None
        self._is_watching = False
        """Whether connections are looked at for silence and for requests that do not arrive."""
        self.connections: set[Connection] = set()
        self.created: Counter[str] = Counter()
        """Accepted connections by listener, those that are gone included."""
        self.closed: Counter[Ended] = Counter()
        self.refused_by_system = 0
        """How often a connection could not be accepted, mostly because no descriptor was left."""
        self._connection_descriptors = 0
        """Connections have descriptors below this one: the system gives the lowest that is free."""
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
        """Accept connections on these listeners too."""
        self._connection_descriptors = connection_descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        for one in bound:
            one.listen()
            self._bound.append(one)
            self._loop.add_reader(one.socket.fileno(), self._accept, one)
        self._watch()

    def _watch(self) -> None:
        """From the first start on, whichever listeners open when."""
        if self._is_watching:
            return
        self._is_watching = True
        if self._max_idle_seconds >= 0:
            self._sweep_later()
        self._look_for_stalled_later()

    def _look_for_stalled_later(self) -> None:
        self._loop.call_later(_STALLED_CHECK_SECONDS, self._close_stalled)

    def _close_stalled(self) -> None:
        """While requests wait for memory, end those that hold it and do not arrive."""
        if self.admission.waiting or self.strangers_admission.waiting:
            now = self._loop.time()
            for connection in [one for one in self.connections if one.is_stalled(now)]:
                logger.warning("%s: closed: its request does not arrive, and others wait for memory", connection.peer)
                connection.close(Ended.ARRIVAL)
        if self._is_watching:
            self._look_for_stalled_later()

    def _sweep_later(self) -> None:
        seconds = max(self._max_idle_seconds / _SWEEPS_PER_IDLE_TIME, _LEAST_SWEEP_SECONDS)
        self._loop.call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        """Close unused connections: a client that died without a word, a request that never ends."""
        idle_since = self._loop.time() - self._max_idle_seconds
        for connection in list(self.connections):
            if connection.active_at < idle_since and not connection.is_waiting:
                logger.info("%s: closed after %g s of silence", connection.peer, self._max_idle_seconds)
                connection.close(Ended.IDLE)
        if self._is_watching:
            self._sweep_later()

    def _accept(self, bound: Bound) -> None:
        if self._has_to_wait(bound):
            return
        refused = 0
        for _ in range(_ACCEPTS_AT_A_TIME):
            try:
                accepted, address = bound.socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # No descriptors left: those who are connected go on, and the next one is tried again later.
                logger.error("a connection could not be accepted: %s", error.strerror)
                self.refused_by_system += 1
                self._pause(bound, 0.1)
                return
            if accepted.fileno() >= self._connection_descriptors and self.handshakes.give_way():
                # It has left a descriptor that connections may have.
                accepted, last = accepted.dup(), accepted
                last.close()
            refusal = self._refusal(bound, accepted, address)
            if refusal is None:
                self._connect(bound, accepted, address)
            else:
                self._turn_away(accepted, refusal)
                self._say_refused(f"{address[0]} was turned away: {refusal.reason}")
                if (refused := refused + 1) == _REFUSALS_AT_A_TIME:
                    self._pause(bound, _REFUSAL_PAUSE_SECONDS)
                    return
            if self.quota.wait_seconds(bound.listener.name, self._loop.time()):
                # Whether anybody is there to be held back is known when the socket is readable again.
                return

    def _refusal(self, bound: Bound, accepted: socket.socket, address: tuple[str, int]) -> "_Refusal | None":
        """Why a connection is turned away; ``None`` once it is counted as one of those that are connected."""
        if accepted.fileno() >= self._connection_descriptors:
            self.refused_by_system += 1
            return _Refusal("the last descriptors are kept for the logs")
        if not self.quota.is_protected(bound.listener.name):
            seconds = self.address_rates.wait_seconds(address[0], self._loop.time())
            if seconds:
                return _Refusal(f"its {CONNECTION_CREATION_RATE} is reached", seconds)
        limit = self.quota.add(bound.listener.name, address[0])
        return None if limit is None else _Refusal(f"its limit of connections is {limit}")

    def _turn_away(self, accepted: socket.socket, refusal: "_Refusal") -> None:
        """Some at once, some later, so that they do not come again at once; of these a few are kept."""
        if refusal.seconds and len(self._kept) < _MOST_KEPT:
            self._kept.add(accepted)
            self._loop.call_later(refusal.seconds, self._let_go, accepted)
        else:
            accepted.close()

    def _let_go(self, kept: socket.socket) -> None:
        self._kept.discard(kept)
        kept.close()

    def _connect(self, bound: Bound, accepted: socket.socket, address: tuple[str, int]) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            # The client is gone already: on macOS its socket takes no options any more.
            accepted.close()
            self.quota.remove(bound.listener.name, address[0])
            return
        tls = self.tls.get(bound.listener.name)
        peer = f"{address[0]}:{address[1]}"
        if tls is None:
            self._serve(bound, peer, PlainChannel(accepted))
        else:
            self.handshakes.begin(accepted, tls, peer, partial(self._handshaken, bound, peer))

    def _handshaken(self, bound: Bound, peer: str, secured: SecureSocket | None, principal: str) -> None:
        if secured is None:
            self.quota.remove(bound.listener.name, peer.rpartition(":")[0])
            self._wake()
        elif bound in self._bound:
            self._serve(bound, peer, TlsChannel(secured), TlsConnection, principal)
        else:
            secured.close()
            self.quota.remove(bound.listener.name, peer.rpartition(":")[0])

    def _serve(
        self,
        bound: Bound,
        peer: str,
        channel: Channel,
        kind: type[Connection] = Connection,
        principal: str = ANONYMOUS,
    ) -> None:
        door = self._doors.get(bound.listener.name)
        connection = kind(
            self._loop,
            self._clocks,
            channel,
            peer,
            bound.listener.name,
            self._service if door is None else door.service(),
            self.admission,
            self._buffers,
            self._hang_ups,
            self._refused_later,
            self._max_frame_bytes,
            self._disconnected,
        )
        connection.principal = principal
        self.connections.add(connection)
        self.created[bound.listener.name] += 1
        if door is not None:
            connection.hold_apart(self.strangers_admission)
            door.opened(connection)
        connection.start()
        self._close_excess()

    def _disconnected(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._gone_bytes_in += connection.bytes_in
        self._gone_bytes_out += connection.bytes_out
        if connection.ended is not None:
            self.closed[connection.ended] += 1
        self.quota.remove(connection.listener_name, connection.peer.rpartition(":")[0])
        self._wake()

    # Limits

    def _has_to_wait(self, bound: Bound) -> bool:
        """Whether the quota does not let in who waits now; then the listener is looked at again when it may."""
        seconds = self.quota.wait_seconds(bound.listener.name, self._loop.time())
        if not seconds:
            return False
        if seconds == UNTIL_ONE_LEAVES:
            self.quota.waits_for_room += 1
            self._loop.remove_reader(bound.socket.fileno())
            self._waiting.add(bound)
            self._say_refused(f"{bound.listener.name} accepts no connections for now: {self.quota.count} are open")
        else:
            self.quota.waits_for_rate += 1
            self._pause(bound, seconds)
            self._say_refused(f"{bound.listener.name} accepts more slowly: max.connection.creation.rate is reached")
        return True

    def _say_refused(self, sentence: str) -> None:
        self._refusals.say(sentence, self._loop.time())

    def _pause(self, bound: Bound, seconds: float) -> None:
        self._loop.remove_reader(bound.socket.fileno())
        self._loop.call_later(seconds, self._resume, bound)

    def _resume(self, bound: Bound) -> None:
        if bound in self._bound:
            self._loop.add_reader(bound.socket.fileno(), self._accept, bound)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for bound in waiting:
            self._resume(bound)

    def _close_excess(self) -> None:
        """Beyond ``max.connections``, those go that were silent longest; brokers keep theirs."""
        excess = self.quota.excess
        if not excess:
            return
        others = [one for one in self.connections if not self.quota.is_protected(one.listener_name)]
        for connection in nsmallest(excess, others, key=lambda one: one.active_at):
            self.quota.closed_as_excess += 1
            self._say_refused(f"{connection.peer} was closed: there are more than max.connections")
            connection.close(Ended.EXCESS)

    def limit(self, limits: ConnectionLimits) -> None:
        """Take other limits: who is too many goes, who may come now comes. Names of hosts are looked up meanwhile."""
        self._apply(limits, {})
        names = [host for host in limits.per_host if not _is_address(host)]
        if self._looking_up is not None:
            self._looking_up.cancel()
        if names:
            self._looking_up = self._loop.create_task(self._look_up(limits, names))

    async def _look_up(self, limits: ConnectionLimits, names: list[str]) -> None:
        addresses: dict[str, str] = {}
        for name in names:
            try:
                addresses[name] = str((await self._loop.getaddrinfo(name, None))[0][4][0])
            except (OSError, UnicodeError) as error:
                logger.warning("max.connections.per.ip.overrides: %s is not known: %s", name, error)
        self._apply(limits, addresses)

    def _apply(self, limits: ConnectionLimits, addresses: dict[str, str]) -> None:
        self.quota.configure(limits, addresses)
        self._close_excess()
        self._wake()

    def stop_accepting(self) -> None:
        self._is_watching = False
        for bound in self._bound:
            self._loop.remove_reader(bound.socket.fileno())
            bound.socket.close()
        self._bound.clear()
        self._waiting.clear()
        if self._looking_up is not None:
            self._looking_up.cancel()
        self.handshakes.close()

    def close(self) -> None:
        """End all connections that are left."""
        for connection in list(self.connections):
            connection.close(Ended.STOP)
        for kept in list(self._kept):
            self._let_go(kept)
        self._hang_ups.close()


def connection_descriptors(limit: int) -> int:
    """How many of a process's descriptors connections may have at most: the last ones are for logs and the rest."""
    kept = min(max(_LEAST_KEPT_DESCRIPTORS, limit // 8), _MOST_KEPT_DESCRIPTORS)
    return max(limit - kept, limit // 2)


def bind(listener: Listener, backlog: int) -> Bound:
    """Take a port, and listen later; an empty host means every address, IPv6 too where there is any."""
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
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return Bound(listener, listening, backlog)


def why_not_bound(error: OSError) -> str:
    """What the system refused, and what to do about it."""
    if isinstance(error, socket.gaierror):
        return "there is no host of that name; correct it"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address; correct it"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "this user may not use that port; take one above 1023"
    return f"{error.strerror}; stop what uses it"


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
