"""A machine with one broker on it: the very parts that a server runs, without sockets.

Owns the machine's disks and clocks, and the life of its broker: started, stopped, killed, without power, paused. What
makes it a cluster by itself or a member of one is in `lone_node` and `member_node`. Must not know clients, nor which
life is asked for when.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from random import Random

from lamina.broker.assembly import build_parts
from lamina.broker.parts import Parts
from lamina.broker.periodic_work import start_periodic_work
from lamina.broker.timers import Timers
from lamina.image.features import SUPPORTED
from lamina.image.image import Broker
from lamina.peer.addresses import Address
from lamina.settings.listeners import Listener as Endpoint
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import BrokerSettings
from lamina.storage import MemberStorage, Storage
from lamina.store.interface import StoreError
from tests.simulation.clocks import NodeClocks
from tests.simulation.disks import Disks
from tests.simulation.executor import SimulatedExecutor
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.network import Listener, Network, SimulatedConnector
from tests.simulation.story import Story

CLIENTS = "PLAINTEXT"
_PORT = 9092
_DRAIN_SECONDS = 1.5
RESTART_SECONDS = 0.7
_SMALL = {
    "log.dirs": "/logs",
    "lamina.data.dir": "/data",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # Segments are full after a few batches.
    "log.index.size.max.bytes": "64",
    "log.index.interval.bytes": "128",
    "log.flush.offset.checkpoint.interval.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "2000",
}
"""Few and small files."""


class Node:
    def __init__(
        self,
        loop: VirtualLoop,
        rng: Random,
        network: Network,
        story: Story,
        node_id: int,
        settings: Mapping[str, str],
        on_fatal: Callable[[str], None],
        disk_count: int = 1,
    ) -> None:
        """``on_fatal`` is told why a broker could not go on."""
        self.id = node_id
        self.machine = f"node-{node_id}"
        self.address = Address(self.machine, _PORT)
        self.clocks = NodeClocks(loop)
        self.disks = Disks(disk_count, self.clocks.clocks.now_ms)
        self.parts: Parts | None = None
        """Of a broker that is there, also while it starts."""
        self.is_serving = False
        self.features: Mapping[str, range] = SUPPORTED
        """Of the version of Lamina that is installed: the next process has them."""
        self.running: Mapping[str, range] = {}
        """Of the version that runs."""
        self._loop = loop
        self._rng = rng
        self._network = network
        self._story = story
        self._settings = _resolved(node_id, tuple(settings.items()))
        self._on_fatal = on_fatal
        self._process: Process | None = None
        self._timers: Timers | None = None

    def install(self, features: Mapping[str, range]) -> None:
        """Another version of Lamina, by what it supports."""
        self._tell(f"gets another version: {dict(features)}")
        self.features = features

    @property
    def is_up(self) -> bool:
        return self._process is not None

    @property
    def process(self) -> Process:
        assert self._process is not None
        return self._process

    def baseless_failure(self) -> str | None:
        """Why a log directory is offline whose disk is not broken."""
        for number, directory in enumerate(() if self.parts is None else self.parts.directories):
            if directory.failure is not None and number != self.disks.broken:
                return f"{self.machine}: {directory.failure}"
        return None

    def _tell(self, what: str) -> None:
        self._story.tell(self.machine, what)

    # What kinds of nodes differ in

    def _open_storage(self) -> Storage | MemberStorage:
        """Raises :class:`StoreError`; then the process ends, and is started again after a while."""
        raise NotImplementedError

    def _for_brokers(self) -> list[Endpoint]:
        """Listeners that other brokers reach this one by."""
        return []

    def _begin(self, parts: Parts) -> None:
        """What a process has beside the parts."""

    async def _drain(self, parts: Parts) -> None:
        """Before a clean stop."""

    # Starting

    def start(self) -> None:
        """Unless it is up already."""
        if self._process is None:
            self._process = self._loop.new_process(self.machine)
            self.running = self.features
            self._loop.spawn(self._process, self._start(self._process))

    async def _start(self, process: Process) -> None:
        self._tell("starts")
        storage: Storage | MemberStorage | None = None
        try:
            storage = self._open_storage()
            await self._serve(process, storage)
        except StoreError as error:
            self._tell(f"cannot start: {error}")
            if storage is not None:
                storage.release()
            self._loop.call_later(RESTART_SECONDS, self.start, context=self._loop.world.context)
            self.kill()

    async def _serve(self, process: Process, storage: Storage | MemberStorage) -> None:
        self.parts = parts = build_parts(
            self._loop,
            self._settings,
            storage,
            self._on_fatal,
            self.clocks.clocks,
            self._new_executor,
            connector_for=lambda client_id: SimulatedConnector(self._network, self.machine, client_id),
            on_unregistered=lambda: self._unregistered(process),
        )
        parts.watch_directories(self._on_fatal)
        for_brokers, for_clients = self._for_brokers(), Endpoint(CLIENTS, CLIENTS, self.machine, _PORT)
        for endpoint in for_brokers:
            self._listen(process, endpoint)
        self._begin(parts)
        endpoints = {endpoint.name: endpoint for endpoint in (for_clients, *for_brokers)}
        await parts.start(Broker(self.id, endpoints, features=self.running))
        self._listen(process, for_clients)
        self._timers = Timers(parts.counters)
        start_periodic_work(parts, self._timers)
        parts.readiness.is_ready = self.is_serving = True
        self._tell(f"serves {len(parts.partitions)} partitions")

    def _listen(self, process: Process, endpoint: Endpoint) -> None:
        assert self.parts is not None
        listener = Listener(process, endpoint.name, self.parts.router)
        self._network.listen(Address(endpoint.host, endpoint.port), listener)

    def _new_executor(self, count: int, _name: str) -> SimulatedExecutor:
        return SimulatedExecutor(self._loop, self._rng, count)

    # Ending

    def stop(self) -> "asyncio.Task[None]":
        """A clean stop; to be awaited."""
        return self._loop.spawn(self.process, self._stop())

    async def _stop(self) -> None:
        """As a server drains."""
        parts, timers, process = self.parts, self._timers, self.process
        assert parts is not None
        assert timers is not None
        self._tell("stops")
        self.is_serving = False
        await self._drain(parts)
        self._network.stop_listening(process)
        await timers.stop()
        await parts.stop()
        for connection in self._network.served(process):
            connection.drain()
        deadline = self._loop.time() + _DRAIN_SECONDS
        while self._network.served(process) and self._loop.time() < deadline:
            await asyncio.sleep(0.005)
        self._network.end_connections(process)
        for failure in await parts.close():
            self._tell(failure)
            if self.disks.broken is None or self.baseless_failure() is not None:
                self._on_fatal(failure)
        self._tell("has stopped")
        self._end()

    def _unregistered(self, process: Process) -> None:
        """Stop, and be started again by whoever has taken this broker out of the cluster."""
        if self.is_serving:
            self._loop.spawn(process, self._stop())
        elif self._process is process and self._timers is None:
            self._tell("does not go on to start")
            self.kill()

    def kill(self) -> None:
        """As ``kill -9``: what was written stays."""
        self._tell("is killed")
        self._network.stop_listening(self.process)
        self._network.end_connections(self.process)
        self._end()

    def cut_power(self) -> None:
        """What was not synced may be lost."""
        self._tell("loses its power")
        self._network.stop_listening(self.process)
        self._network.lose_power(self.machine, self.process)
        self._end()
        self.disks.cut_power(self._rng)

    def _end(self) -> None:
        self._loop.kill(self.process)
        self._process = self.parts = self._timers = None
        self.is_serving = False
        self.disks.unlock()

    # Pausing

    def pause(self) -> None:
        """As ``SIGSTOP``."""
        self._tell("is paused")
        self._loop.pause(self.process)

    def resume(self) -> None:
        self._tell("goes on")
        self._loop.resume(self.process)


@cache
def _resolved(node_id: int, settings: tuple[tuple[str, str], ...]) -> BrokerSettings:
    """They never change, so that a node of many worlds may have the same."""
    return resolve_broker(sets={**_SMALL, "node.id": str(node_id), **dict(settings)})
