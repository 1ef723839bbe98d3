"""The broker as a process: start, run, drain.

Owns the order in which a broker comes up and goes down. Must not know requests.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import threading
from collections.abc import Callable
from dataclasses import replace

from lamina.broker.admin.listening import AdminListening, advertised_admin, bind_admin
from lamina.broker.admin.subject import Subject
from lamina.broker.admin.token import find_token
from lamina.broker.network.admission import Admission
from lamina.broker.network.connection import Ended
from lamina.broker.network.connection_quota import ConnectionQuota
from lamina.broker.network.listening import Bound, Listening, bind
from lamina.broker.opening import Opened, open_node
from lamina.broker.requests.apis import APIS
from lamina.broker.requests.router import API_VERSIONS, Router
from lamina.broker.requests.warming import warm
from lamina.broker.service_notice import ServiceNotice
from lamina.broker.stack_dump import dumping_on_signal
from lamina.broker.timers import Timers
from lamina.errors import StorageError
from lamina.image.changes import register_broker, set_controller
from lamina.image.image import Broker
from lamina.log.directory import LogDirectory
from lamina.settings.broker import BROKER_RACK, NUM_RECOVERY_THREADS_PER_DATA_DIR
from lamina.settings.connection_limits import connection_limits
from lamina.settings.listeners import Listener, advertised_listeners, listeners
from lamina.settings.network import (
    CONNECTIONS_MAX_IDLE_MS,
    LAMINA_ADMIN_ADVERTISED_LISTENERS,
    QUEUED_MAX_REQUEST_BYTES,
    SOCKET_LISTEN_BACKLOG_SIZE,
    SOCKET_REQUEST_MAX_BYTES,
)
from lamina.settings.values import BrokerSettings
from lamina.storage import StartError

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 1.5


class Server:
    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._stopping: asyncio.Event | None = None
        self._fatal: str | None = None
        self._notice = ServiceNotice(os.environ)

    async def run(
        self, started: Callable[[Opened, list[Bound]], None], progress: Callable[[int, int], None] | None = None
    ) -> str | None:
        """Serve until told to stop. Returns the sentence for a person if the broker could not go on.

        ``started`` is told when clients can connect.
        """
        self._stopping = asyncio.Event()

        def opening(done: int, total: int) -> None:
            self._notice.opening(done, total)
            if progress is not None:
                progress(done, total)

        with dumping_on_signal(asyncio.get_running_loop()):
            opened, bound, listening, timers, admin = await self._start(opening)
            started(opened, bound)
            partitions = len(opened.node.partitions)
            self._notice.ready(f"serving {partitions} partitions", opened.node.loop)
            await self._stopping.wait()
            self._notice.stopping()
            await self._drain(opened, listening, timers, admin)
            self._notice.ended()
        return self._fatal

    def stop(self) -> None:
        if self._stopping is not None:
            self._stopping.set()

    # Start

    async def _start(
        self, progress: Callable[[int, int], None] | None
    ) -> tuple[Opened, list[Bound], Listening, Timers, AdminListening]:
        loop = asyncio.get_running_loop()
        open_files_limit = raise_descriptor_limit()
        bound, bound_admin = self._bind()
        try:
            opened = open_node(loop, self._settings, progress)
        except BaseException:
            for one in (*bound, *bound_admin):
                one.socket.close()
            raise
        opened.open_files_limit = open_files_limit
        node = opened.node
        node.on_fatal = self._go_down

        def failed(directory: LogDirectory) -> None:
            loop.call_soon_threadsafe(self._directory_failed, opened, directory)

        for directory in node.directories:
            directory.on_failure = failed
        endpoints = {listener.name: listener for listener in self._advertised(bound)}
        broker = Broker(node.id, endpoints, self._settings.get(BROKER_RACK))
        await node.change(lambda image: set_controller(register_broker(image, broker), node.id))
        service = Router(node, APIS)
        node.router = service
        listening = Listening(
            loop,
            service,
            Admission(self._settings[QUEUED_MAX_REQUEST_BYTES]),
            ConnectionQuota(connection_limits(node.settings), tuple(one.listener.name for one in bound)),
            self._settings[SOCKET_REQUEST_MAX_BYTES],
            self._settings[CONNECTIONS_MAX_IDLE_MS],
        )
        node.listening = listening
        listening.limit(connection_limits(node.settings))
        node.on_settings = lambda settings: listening.limit(connection_limits(settings))
        # The first thing that any client says; everything else is made ready while it talks.
        warm([service.apis[API_VERSIONS]], lambda: False)
        subject = self._watched(opened, listening, bound_admin)
        timers = Timers(node)
        await timers.measure_rooms()
        listening.start(bound)
        admin = AdminListening(subject, bound_admin)
        if threading.current_thread() is threading.main_thread():
            # Only the main thread hears signals; a broker in another thread is stopped by whoever started it.
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
        timers.start()
        node.cleaner.start()
        node.threads.run_then(lambda: warm(APIS, lambda: node.is_stopping), _warmed)
        return opened, bound, listening, timers, admin

    def _watched(self, opened: Opened, listening: Listening, bound: list[Bound]) -> Subject:
        """What the admin listener shows, and where tools are told to find it."""
        node = opened.node
        opened.admin = tuple(one.taken for one in bound)
        advertised = advertised_admin(self._settings, opened.admin)
        node.actual_values[LAMINA_ADMIN_ADVERTISED_LISTENERS.name] = ",".join(one.address for one in advertised)
        token = find_token(opened.storage.data_directory) if bound else None
        return Subject(node, listening.connections, token, opened.admin, advertised, node.now_ms())

    def _bind(self) -> tuple[list[Bound], list[Bound]]:
        """Take the ports first: a broker that cannot be reached should not touch its logs."""
        bound: list[Bound] = []
        for listener in listeners(self._settings):
            try:
                bound.append(bind(listener, self._settings[SOCKET_LISTEN_BACKLOG_SIZE]))
            except OSError as error:
                for one in bound:
                    one.socket.close()
                raise StartError(
                    f"{listener.host or 'every address'}:{listener.port} cannot be listened on: {error.strerror}; "
                    "stop what uses it, or choose another with --listen HOST:PORT"
                ) from error
        try:
            return bound, bind_admin(self._settings)
        except StartError:
            for one in bound:
                one.socket.close()
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

    def _directory_failed(self, opened: Opened, failed: LogDirectory) -> None:
        for partition in opened.node.partitions:
            if partition.log.failure is not None:
                partition.release_all()
                opened.node.log_failed(partition)
        if all(directory.failure is not None for directory in opened.node.directories):
            self._go_down(f"no log directory is left: {failed.failure}")

    async def _drain(self, opened: Opened, listening: Listening, timers: Timers, admin: AdminListening) -> None:
        """Nobody new; who waits is answered; what is under way ends; then the logs are closed."""
        node = opened.node
        listening.stop_accepting()
        node.is_stopping = True
        await node.transactions.close()
        node.groups.runtime.close()
        await node.cleaner.stop()
        await timers.stop()
        await node.kernel_loading.stop()
        for partition in node.partitions:
            partition.release_all()
        node.groups.runtime.close()
        for connection in list(listening.connections):
            connection.drain()
        deadline = node.loop.time() + _DRAIN_SECONDS
        while listening.connections and node.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for connection in list(listening.connections):
            connection.close(Ended.STOP)
        await admin.stop()
        await node.finish_changes()
        threads = node.settings[NUM_RECOVERY_THREADS_PER_DATA_DIR]
        for directory in node.directories:
            try:
                if directory.failure is None:
                    directory.write_high_watermarks(timers.high_watermarks(directory))
                await node.threads.run(lambda d=directory: d.close(threads))  # type: ignore[misc]
            except StorageError as error:
                self._fatal = self._fatal or f"the stop was not clean: {error}"
        opened.storage.database.close()
        node.threads.close()


def _warmed(error: OSError | None) -> None:
    # What is there now stays: the collector need not walk it again and again, milliseconds at a time on the loop.
    gc.freeze()
    if error is not None:
        logger.warning("warming up failed: %s", error)


def raise_descriptor_limit() -> int:
    """Allow as many open files as this process may have. Returns how many that is."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else 1_048_576
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):
        logger.warning("the limit of open files could not be raised")
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
