"""The broker as a process: start, run, drain.

Owns the order in which a broker comes up and goes down: ports first, then what is on disk, then clients; ``assembly``
puts its parts together. Must not know requests.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lamina.broker.admin.access import NO_ACCESS, find_access
from lamina.broker.admin.listening import AdminListening, advertised_admin, bind_admin
from lamina.broker.admin_parts import admin_subject
from lamina.broker.assembly import build_parts
from lamina.broker.cycle_collector import short_collections
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.metrics.loop_lag import LoopLag
from lamina.broker.network.address_rates import AddressRates
from lamina.broker.network.admission import Admission
from lamina.broker.network.connection_quota import ConnectionQuota
from lamina.broker.network.listening import Bound, Listening, bind, why_not_bound
from lamina.broker.network.tls_listeners import TlsError, TlsListeners, TlsReading
from lamina.broker.parts import Parts
from lamina.broker.periodic_work import start_periodic_work
from lamina.broker.requests.warming import warm
from lamina.broker.service_notice import ServiceNotice
from lamina.broker.stack_dump import dumping_on_signal
from lamina.broker.timers import Timers
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.image.diff import Changes
from lamina.image.features import SUPPORTED
from lamina.image.image import Broker
from lamina.log.descriptors import RESERVE
from lamina.settings.broker import (
    BROKER_RACK,
    LAMINA_DISK_FREE_MIN_BYTES,
)
from lamina.settings.cluster import LAMINA_CONTROLLED_SHUTDOWN_WAIT_MS
from lamina.settings.connection_limits import connection_limits
from lamina.settings.listeners import (
    ADMIN,
    Listener,
    advertised_listeners,
    broker_listener_name,
    has_sasl,
    listeners,
)
from lamina.settings.network import (
    ADVERTISED_LISTENERS,
    CONNECTIONS_MAX_IDLE_MS,
    LAMINA_ADMIN_ADVERTISED_LISTENERS,
    QUEUED_MAX_REQUEST_BYTES,
    SOCKET_LISTEN_BACKLOG_SIZE,
    SOCKET_REQUEST_MAX_BYTES,
)
from lamina.settings.quotas import QUOTA_WINDOW_NUM, QUOTA_WINDOW_SIZE_SECONDS
from lamina.settings.sasl import LAMINA_MAX_UNAUTHENTICATED_CONNECTIONS
from lamina.settings.values import BrokerSettings
from lamina.settings.zookeeper_options import zookeeper_options
from lamina.storage import MemberStorage, StartError, Storage, open_member_storage, open_storage
from lamina.store.interface import StoreError
from lamina.store.opening import connect
from lamina.wire.api_keys import API_VERSIONS

if TYPE_CHECKING:
    from lamina.broker.login.sasl_door import SaslDoors
    from lamina.broker.replication.broker_connectors import BrokerConnectors
    from lamina.store.session import SessionProber

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 1.5


class Started(NamedTuple):
    """A broker that serves, and what a person should be told of it."""

    parts: Parts
    listening: Listening
    bound: list[Bound]
    admin: tuple[Listener, ...]
    """Where the admin listener is, with the ports that it got."""
    advertised: tuple[Listener, ...]
    """What clients are told to connect to."""
    is_advertised: bool
    """Whether the settings say so; else it is what the listeners say."""
    open_files_limit: int


class _Shells(NamedTuple):
    """The listeners, and what runs by itself beside them."""

    listening: Listening
    doors: "SaslDoors | None"
    """Of listeners whose clients log in."""
    admin: AdminListening
    timers: Timers
    loop_lag: LoopLag
    prober: "SessionProber | None"
    """Of a member of a cluster."""


class _ConnectionLimits(MetadataListener):
    def __init__(self, listening: Listening) -> None:
        self._listening = listening

    def settings_changed(self, settings: BrokerSettings) -> None:
        self._listening.limit(connection_limits(settings))

    def image_changed(self, changes: Changes) -> None:
        for entity, quotas in changes.quotas.items():
            self._listening.address_rates.set(entity, quotas)


class Server:
    def __init__(self, settings: BrokerSettings, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._settings = settings
        self._clocks = clocks
        self._stopping: asyncio.Event | None = None
        self._fatal: str | None = None
        self._notice = ServiceNotice(os.environ)

    async def run(
        self, started: Callable[[Started], None], progress: Callable[[int, int], None] | None = None
    ) -> str | None:
        """Serve until told to stop. Returns the sentence for a person if the broker could not go on.

        ``started`` is told when clients can connect, ``progress`` how many of how many logs are open before.
        """
        self._stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        with dumping_on_signal(loop), short_collections(self._clocks):
            open_files_limit = raise_descriptor_limit()
            RESERVE.hold(_LOG_RESERVE)
            bound, bound_admin = self._bind()
            parts, shells = await self._start(loop, bound, bound_admin, progress)
            admin = tuple(one.taken for one in bound_admin)
            advertised, is_advertised = tuple(self._advertised(bound)), self._settings.is_given(ADVERTISED_LISTENERS)
            started(Started(parts, shells.listening, bound, admin, advertised, is_advertised, open_files_limit))
            self._notice.ready(f"serving {len(parts.partitions)} partitions", loop)
            await self._stopping.wait()
            self._notice.stopping()
            await self._drain(parts, shells)
            self._notice.ended()
        return self._fatal

    def stop(self) -> None:
        if self._stopping is not None:
            self._stopping.set()

    # Start

    async def _start(
        self,
        loop: asyncio.AbstractEventLoop,
        bound: list[Bound],
        bound_admin: list[Bound],
        progress: Callable[[int, int], None] | None,
    ) -> tuple[Parts, _Shells]:
        """Whoever asks for the broker's health is answered while logs are opened; clients come afterwards."""

        def opened(done: int, total: int) -> None:
            self._notice.opening(done, total)
            if progress is not None:
                progress(done, total)

        async with AsyncExitStack() as undo:
            undo.callback(_close_sockets, bound, bound_admin)
            connector_for = _connectors(self._settings, self._clocks)
            # ZooKeeper may take its time to answer.
            storage = await loop.run_in_executor(None, _open_storage, self._settings, self._clocks)
            parts = build_parts(
                loop,
                self._settings,
                storage,
                self._go_down,
                self._clocks,
                connector_for=connector_for,
                on_unregistered=self.stop,
            )
            undo.callback(storage.release)
            undo.callback(parts.threads.close)
            if connector_for is not None:
                parts.metadata.key_material.add_reader(connector_for)
            try:
                shells = self._shells(loop, parts, bound, bound_admin, undo)
                await self._open(parts, shells, bound, opened, undo)
            except StoreError as error:
                raise StartError(str(error)) from error
            except OSError as error:
                raise StartError(f"the listeners cannot be opened: {error.strerror}") from error
            undo.push_async_callback(shells.timers.stop)
            start_periodic_work(parts, shells.timers)
            if threading.current_thread() is threading.main_thread():
                # Only the main thread hears signals; a broker in another thread is stopped by whoever started it.
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, self.stop)
            shells.loop_lag.start()
            parts.cleaner.start()
            parts.readiness.is_ready = True
            parts.threads.run_then(lambda: warm(parts.router.apis, lambda: parts.readiness.is_stopping), _warmed)
            undo.pop_all()
        return parts, shells

    async def _open(
        self,
        parts: Parts,
        shells: _Shells,
        bound: list[Bound],
        opened: Callable[[int, int], None],
        undo: AsyncExitStack,
    ) -> None:
        """The logs, and with them the listeners."""
        parts.watch_directories(self._go_down)
        for_brokers = self._for_brokers(parts, bound)
        # Other members follow this one while it opens its logs, if it is the controller.
        parts.readiness.is_for_brokers_alone = True
        shells.listening.start(for_brokers)
        if shells.prober is not None:
            shells.prober.start()
            undo.callback(shells.prober.stop)
        await self._unless_fatal(parts.start(self._broker(parts, bound), opened))
        # The first thing that any client says; everything else is made ready while it talks.
        warm([api for api in parts.router.apis if api.key == API_VERSIONS], lambda: False)
        await parts.upkeep.measure_free_space(parts.metadata.settings[LAMINA_DISK_FREE_MIN_BYTES])
        # A member learns only now what was set while brokers ran.
        await parts.metadata.key_material.refresh(parts.metadata.settings)
        parts.readiness.is_for_brokers_alone = False
        shells.listening.start([one for one in bound if one not in for_brokers])

    async def _unless_fatal(self, starting: Coroutine[Any, Any, None]) -> None:
        """What can no longer serve does not go on starting."""
        assert self._stopping is not None, "run comes first"
        start, end = asyncio.ensure_future(starting), asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((start, end), return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                raise StartError(self._fatal or "the broker was stopped while it started")
            await start
        finally:
            start.cancel()
            end.cancel()
            await asyncio.gather(start, end, return_exceptions=True)

    def _shells(
        self,
        loop: asyncio.AbstractEventLoop,
        parts: Parts,
        bound: list[Bound],
        bound_admin: list[Bound],
        undo: AsyncExitStack,
    ) -> _Shells:
        """``undo`` is given what ends those that have begun, should the start fail."""
        limits = connection_limits(parts.metadata.settings)
        doors = self._sasl_doors(parts)
        if doors is not None:
            doors.start()
            undo.push_async_callback(doors.stop)
        listening = Listening(
            loop,
            parts.clocks,
            parts.router,
            Admission(self._settings[QUEUED_MAX_REQUEST_BYTES]),
            ConnectionQuota(limits, tuple(one.listener.name for one in bound)),
            AddressRates(self._settings[QUOTA_WINDOW_NUM], self._settings[QUOTA_WINDOW_SIZE_SECONDS] * 1000),
            self._settings[SOCKET_REQUEST_MAX_BYTES],
            self._settings[CONNECTIONS_MAX_IDLE_MS],
            self._settings[LAMINA_MAX_UNAUTHENTICATED_CONNECTIONS],
            self._tls_listeners(parts),
            {} if doors is None else doors.by_listener,
        )
        undo.callback(listening.stop_accepting)
        listening.limit(limits)
        parts.publisher.add_listener(_ConnectionLimits(listening))
        if listening.tls:
            parts.metadata.key_material.add_reader(TlsReading(listening.tls, parts.threads))
        taken = tuple(one.taken for one in bound_admin)
        advertised = advertised_admin(self._settings, taken)
        parts.actual_values[LAMINA_ADMIN_ADVERTISED_LISTENERS.name] = ",".join(one.url for one in advertised)
        access = find_access(self._settings, parts.storage.data_directory) if bound_admin else NO_ACCESS
        subject = admin_subject(parts, listening, access, taken, advertised)
        admin = AdminListening(subject, bound_admin, listening.tls.get(ADMIN))
        undo.push_async_callback(admin.stop)
        prober = None if parts.member_parts is None else parts.member_parts.prober()
        timers, loop_lag = Timers(parts.counters), LoopLag(loop, parts.clocks, parts.counters.loop_lag)
        return _Shells(listening, doors, admin, timers, loop_lag, prober)

    def _tls_listeners(self, parts: Parts) -> TlsListeners:
        try:
            return TlsListeners(parts.metadata.settings, parts.clocks.now_ms)
        except TlsError as error:
            raise StartError(str(error)) from error

    def _sasl_doors(self, parts: Parts) -> "SaslDoors | None":
        """``None`` where nobody logs in, which needs nothing of it."""
        if not has_sasl(self._settings):
            return None
        from lamina.broker.login.mechanisms import LoginError
        from lamina.broker.login.sasl_door import SaslDoors

        try:
            return SaslDoors(
                self._settings,
                parts.metadata,
                parts.storage.login_secret,
                parts.router,
                parts.counters,
                parts.threads,
                parts.clocks,
                parts.loop,
            )
        except LoginError as error:
            raise StartError(str(error)) from error

    def _for_brokers(self, parts: Parts, bound: list[Bound]) -> list[Bound]:
        """The listener between brokers; clients may use it too."""
        member = parts.member_parts
        return [] if member is None else [one for one in bound if one.listener.name == member.listener_name]

    def _broker(self, parts: Parts, bound: list[Bound]) -> Broker:
        endpoints = {listener.name: listener for listener in self._advertised(bound)}
        return Broker(parts.metadata.node_id, endpoints, self._settings.get(BROKER_RACK), features=SUPPORTED)

    def _bind(self) -> tuple[list[Bound], list[Bound]]:
        """Take the ports first: a broker that cannot be reached should not touch its logs."""
        bound: list[Bound] = []
        for listener in listeners(self._settings):
            try:
                bound.append(bind(listener, self._settings[SOCKET_LISTEN_BACKLOG_SIZE]))
            except OSError as error:
                _close_sockets(bound)
                raise StartError(
                    f"{listener.host or 'every address'}:{listener.port} cannot be listened on: "
                    f"{why_not_bound(error)}, or choose another with --listen HOST:PORT"
                ) from error
        try:
            return bound, bind_admin(self._settings)
        except StartError:
            _close_sockets(bound)
            raise

    def _advertised(self, bound: list[Bound]) -> list[Listener]:
        ports = {one.listener.name: one.port for one in bound}
        return [
            replace(
                listener,
                host=listener.host or "localhost",
                port=listener.port or ports[listener.name],
            )
            for listener in advertised_listeners(self._settings)
        ]

    # Going down

    def _go_down(self, reason: str) -> None:
        self._fatal = self._fatal or reason
        self.stop()

    async def _drain(self, parts: Parts, shells: _Shells) -> None:
        """Nobody new; who waits is answered; what is under way ends; then the logs are closed."""
        listening, loop = shells.listening, parts.loop
        if parts.member_parts is not None:
            await parts.member_parts.member.drain(self._settings[LAMINA_CONTROLLED_SHUTDOWN_WAIT_MS] / 1000)
        listening.stop_accepting()
        shells.loop_lag.stop()
        parts.readiness.is_stopping = True
        await shells.timers.stop()
        if shells.doors is not None:
            await shells.doors.stop()
        await parts.stop()
        for connection in list(listening.connections):
            connection.drain()
        deadline = loop.time() + _DRAIN_SECONDS
        while listening.connections and loop.time() < deadline:
            await asyncio.sleep(0.005)
        listening.close()
        await shells.admin.stop()
        if shells.prober is not None:
            shells.prober.stop()
        for failure in await parts.close():
            self._fatal = self._fatal or failure


def _connectors(settings: BrokerSettings, clocks: Clocks) -> "BrokerConnectors | None":
    """How other brokers are reached; ``None`` for a broker alone, which needs nothing of it."""
    if broker_listener_name(settings) is None:
        return None
    from lamina.broker.replication.broker_connectors import BrokerConnectors

    return BrokerConnectors(settings, clocks)


def _open_storage(settings: BrokerSettings, clocks: Clocks) -> Storage | MemberStorage:
    """Of a broker by itself, or of a member of the cluster that the settings name."""
    options = zookeeper_options(settings)
    if options is None:
        return open_storage(settings)
    try:
        return open_member_storage(settings, connect(options, clocks))
    except StoreError as error:
        raise StartError(str(error)) from error


def _close_sockets(*bound: list[Bound]) -> None:
    for one in (one for some in bound for one in some):
        one.socket.close()


def _warmed(error: OSError | None) -> None:
    # What is there now stays: the collector need not walk it again and again, milliseconds at a time on the loop.
    gc.freeze()
    if error is not None:
        logger.warning("warming up failed: %s", error)


_LOG_RESERVE = 16
"""Descriptors that are kept for logs which have begun something, such as a roll."""


def raise_descriptor_limit() -> int:
    """Allow as many open files as this process may have. Returns how many that is."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else 1_048_576
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):
        logger.warning("the limit of open files could not be raised")
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
