"""Brokers of one cluster in this process: a ZooKeeper in memory, connections without sockets, logs in real files.

The parts are those that a server runs. They share a loop and work at once instead of on threads. Time is the system's,
but for the time since boot, by which leases go: a test sets it.
"""

import asyncio
import contextvars
import errno
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from lamina.broker.assembly import build_parts
from lamina.broker.metadata.member import Member
from lamina.broker.parts import Parts
from lamina.broker.requests.request import ANONYMOUS, CloseConnection, Request
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.image.features import SUPPORTED
from lamina.image.image import Broker, Image
from lamina.image.topic import Partition as PartitionState
from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.limits import Limits
from lamina.records.record import Record, build_batch
from lamina.settings.listeners import Listener
from lamina.settings.resolve import resolve_broker
from lamina.storage import open_member_storage
from lamina.store.interface import StoreError
from lamina.wire.codec import SIZE_BYTES, encode_request, parse_response
from lamina.wire.primitives import MalformedRequest
from lamina.wire.versions import request_schema
from tests.broker.in_process import CONSUMER, NoSocket, build, joined
from tests.broker.power_cuts import AtOnce
from tests.store.memory_zookeeper import MemorySession, MemoryZooKeeper

CLIENTS, BROKERS = "PLAINTEXT", "BROKERS"
PORTS = {CLIENTS: 9092, BROKERS: 9093}
PRODUCE, FETCH, METADATA, CREATE_TOPICS, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 0, 1, 3, 19, 20, 44
QUICK = {
    "zookeeper.connect": "memory:2181",
    "num.recovery.threads.per.data.dir": "1",
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "20",
    "replica.lag.time.max.ms": "1000",
    "lamina.controlled.shutdown.wait.ms": "2000",
    "lamina.unclean.recovery.wait.ms": "300",
    "log.cleaner.enable": "false",
}
_CORRELATION_ID = 7
_LONGEST_SECONDS = 20.0
_NODE: contextvars.ContextVar["MemberProcess | None"] = contextvars.ContextVar("node", default=None)


@dataclass(eq=False)
class MemberProcess:
    """One life of one broker."""

    id: int
    session: MemorySession
    parts: Parts
    fatal: list[str] = field(default_factory=list)
    is_unregistered: bool = False
    """Whether it was told to stop because of that."""
    tasks: set["asyncio.Task[Any]"] = field(default_factory=set)
    transports: list["MemoryTransport"] = field(default_factory=list)

    @property
    def member(self) -> Member:
        assert isinstance(self.parts.participant, Member)
        return self.parts.participant

    @property
    def image(self) -> Image:
        return self.parts.metadata.image


class Members:
    def __init__(self, directory: Path, **settings: str) -> None:
        """Underscores in the names of settings stand for dots."""
        self.directory = directory
        self.settings = QUICK | dotted(settings)
        self.loop = asyncio.new_event_loop()
        self.loop.set_task_factory(_counted_task)
        self.zookeeper = MemoryZooKeeper(self._deliver_soon)
        self.boottime_ms = 1_000_000
        self.features = SUPPORTED
        """What a broker supports that is started."""
        self.principal = ANONYMOUS
        """Who asks; brokers are nobody, as on listeners without logins."""
        self.up: dict[int, MemberProcess] = {}
        self.ended: dict[int, MemberProcess] = {}
        """The last of each that was killed."""
        self.isolated: set[int] = set()
        """Brokers that no other broker reaches, and that reach none."""
        self.refused: set[int] = set()
        """Live brokers behind a firewall that rejects whoever connects."""
        self.without_process: set[int] = set()
        """Brokers whose machines live, and refuse whoever connects."""
        self.closed_connections: list[str] = []
        """What ended a connection, as the broker would log it."""

    # Life

    def start(self, node_id: int | None = None, **settings: str) -> MemberProcess:
        process = self.begin_start(node_id, **settings)
        return self.finish_start(process)

    def begin_start(self, node_id: int | None = None, **settings: str) -> MemberProcess:
        """Open the storage and begin to start; without an id, ZooKeeper gives one."""
        given = self.settings | {"lamina.data.dir": str(self.directory / f"broker-{node_id}")} | dotted(settings)
        if node_id is not None:
            given["node.id"] = str(node_id)
        resolved = resolve_broker(sets=given)
        session = self.zookeeper.connect()
        storage = open_member_storage(resolved, session)
        clocks = Clocks(SYSTEM_CLOCKS.wall_ns, SYSTEM_CLOCKS.monotonic_ns, lambda: self.boottime_ms * 1_000_000)
        fatal: list[str] = []
        parts = build_parts(
            self.loop,
            resolved,
            storage,
            fatal.append,
            clocks,
            lambda _count, _name: AtOnce(),
            connector_for=lambda client_id: MemoryConnector(self, client_id),
            on_unregistered=lambda: setattr(process, "is_unregistered", True),
        )
        parts.watch_directories(fatal.append)
        process = MemberProcess(storage.node_id, session, parts, fatal)
        self.up[process.id] = process
        self.without_process.discard(process.id)
        endpoints = {name: Listener(name, CLIENTS, f"broker-{process.id}", port) for name, port in PORTS.items()}
        self._spawn(process, parts.start(Broker(process.id, endpoints, features=self.features)))
        return process

    def finish_start(self, process: MemberProcess) -> MemberProcess:
        (starting,) = [one for one in process.tasks if one.get_name() == "start"]
        self.run_until(starting.done)
        try:
            starting.result()
        except BaseException:
            self.kill(process.id)
            raise
        process.parts.readiness.is_ready = True
        return process

    def _spawn(self, process: MemberProcess, work: Coroutine[Any, Any, None]) -> None:
        context = contextvars.copy_context()
        context.run(_NODE.set, process)
        task = self.loop.create_task(work, context=context)
        task.set_name("start")

    def stop(self, node_id: int) -> None:
        """As a server drains."""
        process = self.up[node_id]

        async def stopped() -> list[str]:
            await process.member.drain(2.0)
            await process.parts.stop()
            self._cut(process)
            return await process.parts.close()

        assert self.finish(stopped()) == []
        del self.up[node_id]
        self._cancel(process)

    def kill(self, node_id: int, *, session_ends: bool = True, machine_lives: bool = False) -> None:
        """As a power cut, or as ``kill -9`` where the machine lives.

        What was written stays; its session may outlive it.
        """
        process = self.ended[node_id] = self.up.pop(node_id)
        if machine_lives:
            self.without_process.add(node_id)
        process.session.is_connected = False
        self._cut(process)
        self._cancel(process)
        process.parts.threads.close()
        for directory in process.parts.directories:
            directory.release()
        if session_ends:
            self.zookeeper.leave(process.session)

    def _cut(self, process: MemberProcess) -> None:
        for transport in tuple(process.transports):
            transport.end()

    def _cancel(self, process: MemberProcess) -> None:
        self.finish(_all_cancelled(process.tasks))

    def close(self) -> None:
        for node_id in list(self.up):
            self.kill(node_id)
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    # ZooKeeper

    def _deliver_soon(self) -> None:
        self.loop.call_soon(self.zookeeper.deliver)

    def expire(self, node_id: int) -> None:
        """The servers end a session, and its process lives on."""
        self.zookeeper.expire(self.up[node_id].session)

    def forget_zookeeper(self) -> None:
        """Its disks are empty, and nobody has a session."""
        self.zookeeper = MemoryZooKeeper(self._deliver_soon)

    def isolate(self, node_id: int) -> None:
        self.isolated.add(node_id)
        self._cut(self.up[node_id])

    def heal(self) -> None:
        self.isolated.clear()

    def set_zookeeper_away(self, *, is_away: bool) -> None:
        for process in self.up.values():
            process.session.is_connected = not is_away
            self.zookeeper.connection_changed(process.session)
        if is_away:
            # Nobody has proven anything for as long as a session lasts.
            self.boottime_ms += 1_000_000

    def probe(self) -> None:
        for process in self.up.values():
            if process.parts.member_parts is not None:
                with suppress(StoreError):
                    process.parts.member_parts.lease.session.probe()

    # Asking

    def ask(self, node_id: int, api_key: int, api_version: int, *, listener: str = CLIENTS, **facts: Any) -> Any:
        return self.finish(self.begin(node_id, api_key, api_version, listener=listener, **facts))

    async def begin(
        self, node_id: int, api_key: int, api_version: int, *, listener: str = CLIENTS, **facts: Any
    ) -> Any:
        request = build(request_schema(api_key, api_version), CONSUMER | facts)
        frame = encode_request(request, _CORRELATION_ID, "test")
        client = NoSocket(listener_name=listener, principal=self.principal)
        _, served = self.up[node_id].parts.router.serve(client, memoryview(frame[SIZE_BYTES:]))
        pieces = await served if isinstance(served, Awaitable) else served
        return parse_response(api_key, api_version, joined(pieces)[SIZE_BYTES:])[1]

    def create(self, node_id: int, name: str, assignments: list[list[int]], **configs: str) -> Any:
        """Make a topic at any broker, and wait until all that are up know its leaders."""
        response = self.finish(self.begin_create(node_id, name, assignments, **configs))
        assert response.topics[0].error_code == 0, response.topics[0].error_message
        self.run_until(lambda: all(name in one.image.topics for one in self.up.values()))
        return response

    async def begin_create(self, node_id: int, name: str, assignments: list[list[int]], **configs: str) -> Any:
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": at, "broker_ids": ids} for at, ids in enumerate(assignments)],
            "configs": [{"name": key, "value": value} for key, value in dotted(configs).items()],
        }
        return await self.begin(node_id, CREATE_TOPICS, 7, topics=[topic], timeout=timedelta(seconds=5))

    def delete(self, node_id: int, name: str) -> None:
        self.finish(self._deleted(node_id, name))
        self.run_until(lambda: all(name not in one.image.topics for one in self.up.values()))

    def begin_delete(self, node_id: int, name: str) -> None:
        self.loop.create_task(self._deleted(node_id, name))

    async def _deleted(self, node_id: int, name: str) -> None:
        topics = [{"name": name, "topic_id": None}]
        await self.begin(node_id, DELETE_TOPICS, 6, topics=topics, timeout=timedelta(seconds=5))

    def produce(self, node_id: int, topic: str, count: int = 1, acks: int = -1, timeout_ms: int = 3000) -> int:
        """One batch into partition 0; returns the error code."""
        now_ms = SYSTEM_CLOCKS.now_ms()
        batch = bytes(build_batch([Record(number, now_ms, b"key", b"value") for number in range(count)]))
        data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
        response = self.ask(node_id, PRODUCE, 9, acks=acks, timeout=timedelta(milliseconds=timeout_ms), topic_data=data)
        return int(response.responses[0].partition_responses[0].error_code)

    def state(self, topic: str, index: int = 0) -> PartitionState:
        """As the controller has it; as anybody has it while there is none."""
        deciding = [one for one in self.up.values() if one.member.is_controller] or list(self.up.values())
        return deciding[0].member.decided.partition(topic, index)

    def leads(self, node_id: int, topic: str) -> bool:
        """Whether a broker leads partition 0 by its own account."""
        partition = self.up[node_id].parts.partitions.find(topic, 0)
        return partition is not None and partition.leader is not None

    def controller(self) -> MemberProcess:
        self.run_until(lambda: any(one.member.is_controller for one in self.up.values()))
        return next(one for one in self.up.values() if one.member.is_controller)

    # Running

    def finish(self, work: Coroutine[Any, Any, Any]) -> Any:
        task = self.loop.create_task(work)
        self.run_until(task.done)
        return task.result()

    def run_until(self, holds: Callable[[], bool], seconds: float = _LONGEST_SECONDS) -> None:
        """Let the brokers work, with their probers, until something is so."""
        deadline = self.loop.time() + seconds
        while not holds():
            assert self.loop.time() < deadline, "it never came true"
            self.probe()
            self.loop.run_until_complete(asyncio.sleep(0.001))

    def run_for(self, seconds: float) -> None:
        """Let the brokers work for a while in which nothing may happen."""
        deadline = self.loop.time() + seconds
        self.run_until(lambda: self.loop.time() >= deadline)


class MemoryConnector:
    def __init__(self, members: Members, client_id: str) -> None:
        self._members = members
        self._client_id = client_id

    def is_of(self, node_id: int) -> bool:
        return self._client_id.startswith(f"broker-{node_id}-")

    async def connect(self, address: Address, limits: Limits) -> Connection:
        await asyncio.sleep(0)
        node_id, source = int(address.host.removeprefix("broker-")), _NODE.get()
        target, isolated = self._members.up.get(node_id), self._members.isolated
        if node_id in self._members.refused | self._members.without_process:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        if target is None or target.id in isolated or (source is not None and source.id in isolated):
            raise OSError(errno.EHOSTUNREACH, "No route to host")
        name = next(name for name, port in PORTS.items() if port == address.port)
        connection = Connection(address, self._client_id, limits)
        transport = MemoryTransport(self._members, target, name, connection, self._client_id)
        for process in (target, source):
            if process is not None:
                process.transports.append(transport)
        connection.connection_made(transport)
        return connection


class MemoryTransport(asyncio.Transport):
    """Both ends of a connection: requests are served one after the other."""

    def __init__(
        self, members: Members, target: MemberProcess, listener: str, protocol: Connection, client_id: str
    ) -> None:
        super().__init__()
        self.client_id = client_id
        self._members = members
        self._target = target
        self._client = NoSocket(peer="another broker", listener_name=listener)
        self._protocol = protocol
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()
        self._is_ended = False
        self._request: Request | None = None
        """The one that is served."""
        self._source_context = contextvars.copy_context()
        self._context = contextvars.copy_context()
        self._context.run(_NODE.set, target)
        self._serving = members.loop.create_task(self._serve(), context=self._context)

    def write(self, data: Any) -> None:
        self._frames.put_nowait(bytes(data))

    async def _serve(self) -> None:
        while True:
            frame = await self._frames.get()
            try:
                self._request, served = self._target.parts.router.serve(self._client, memoryview(frame)[SIZE_BYTES:])
                pieces = await served if isinstance(served, Awaitable) else served
            except (CloseConnection, MalformedRequest) as error:
                self._members.closed_connections.append(str(error))
                self.end()
                return
            self._request = None
            if self._is_ended:
                return
            # In the context of whoever asked, who may ask again at once; others have their turn all the same.
            self._source_context.run(self._received, joined(pieces))
            await asyncio.sleep(0)

    def _received(self, data: bytes) -> None:
        while data:
            buffer = self._protocol.get_buffer(len(data))
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self._protocol.buffer_updated(count)

    def abort(self) -> None:
        self.end()

    def end(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            if self._request is None:
                self._serving.cancel()
            else:
                # What was received is served to its end, as on a socket.
                self._request.abandon()
            for told in self._client.gone:
                self._members.loop.call_soon(told, context=self._context)
            self._members.loop.call_soon(self._protocol.connection_lost, None)


def dotted(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def _counted_task(loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> "asyncio.Task[Any]":
    """Tasks belong to the process in whose context they begin, and end with it."""
    context = cast(contextvars.Context, named.get("context") or contextvars.copy_context())
    task = asyncio.Task(work, loop=loop, **named)
    process = context.get(_NODE)
    if process is not None:
        process.tasks.add(task)
        task.add_done_callback(process.tasks.discard)
    return task


async def _all_cancelled(tasks: set["asyncio.Task[Any]"]) -> None:
    """Those too that others begin as they end."""
    while tasks:
        for task in tuple(tasks):
            if not task.cancelling():
                task.cancel()
        await asyncio.sleep(0)
