"""A network in memory: machines, the links between them, listeners, and connections that carry real frames.

Owns which connections exist. Each has two pipes, so that its requests arrive in order and once; what was sent on a
connection that died may still arrive, beside the next one. A machine ends the connections of a process that is killed;
one without power says nothing, and knows no connection when it is there again. Must not know requests.
"""

import asyncio
import errno
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.limits import Limits
from tests.simulation.links import Link, Pipe
from tests.simulation.loop import PROCESS, Process, VirtualLoop
from tests.simulation.served import ServedConnection, Service


@dataclass(frozen=True, slots=True)
class Listener:
    """A port that a process listens on. Its machine has the host's name."""

    process: Process
    name: str
    service: Service


@dataclass(frozen=True, slots=True, eq=False)
class _Connection:
    """Both ends, and both ways."""

    client: Process
    server: Process
    served: ServedConnection
    to_server: Pipe
    to_client: Pipe


class Network:
    def __init__(self, loop: VirtualLoop, rng: Random) -> None:
        self._loop = loop
        self._rng = rng
        self._process = loop.new_process("network")
        self._links: dict[tuple[str, str], Link] = {}
        self._listeners: dict[Address, Listener] = {}
        self._connections: dict[int, _Connection] = {}
        self._without_power: set[str] = set()
        self._rejecting: set[str] = set()
        self._last_number = 0

    def link(self, source: str, target: str) -> Link:
        key = (source, target)
        if key not in self._links:
            self._links[key] = Link(self._loop, self._rng, self._process)
        return self._links[key]

    def heal(self) -> None:
        """Every link is whole, and as quick as it was."""
        for link in self._links.values():
            link.heal()

    # Machines and their processes

    def listen(self, address: Address, listener: Listener) -> None:
        self._without_power.discard(address.host)
        self._listeners[address] = listener

    def stop_listening(self, process: Process) -> None:
        self._listeners = {where: one for where, one in self._listeners.items() if one.process is not process}

    def served(self, process: Process) -> list[ServedConnection]:
        """The connections that a process has taken."""
        return [one.served for one in self._connections.values() if one.server is process]

    def end_connections(self, process: Process, is_chosen: Callable[[Process], bool] = lambda _: True) -> None:
        """Those with a process that is chosen: both ends learn of it, after some of what is on its way."""
        for number, one in list(self._connections.items()):
            if process in (one.client, one.server) and is_chosen(one.server if one.client is process else one.client):
                del self._connections[number]
                one.to_server.give_up()
                one.to_client.give_up()

    def lose_power(self, machine: str, process: Process) -> None:
        """Nobody is told, and nobody answers there until a process listens again."""
        self._without_power.add(machine)
        for number, one in list(self._connections.items()):
            if one.server is process:
                one.to_client.forget()
            elif one.client is process:
                one.to_server.forget()
                del self._connections[number]

    def reject(self, machine: str) -> None:
        """From now on a firewall answers for a machine that it refuses; what is connected stays so."""
        self._rejecting.add(machine)

    def accept(self, machine: str) -> None:
        self._rejecting.discard(machine)

    # Connecting

    async def connect(self, machine: str, address: Address, client_id: str, limits: Limits) -> Connection:
        await self.link(machine, address.host).cross()
        if address.host in self._without_power:
            await asyncio.Event().wait()
        listener = self._listeners.get(address)
        await self.link(address.host, machine).cross()
        is_rejected = address.host in self._rejecting or self.link(machine, address.host).is_rejecting
        if listener is None or listener.process.is_dead or is_rejected:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        return self._connected(machine, address, listener, Connection(address, client_id, limits))

    def _connected(self, machine: str, address: Address, listener: Listener, connection: Connection) -> Connection:
        self._last_number += 1
        number, client = self._last_number, PROCESS.get()
        transport = ClientTransport(self._loop, client, connection)

        def deliver_to_server(data: bytes) -> None:
            if not listener.process.is_dead:
                self._loop.call_in(listener.process, served.received, data)
            elif address.host not in self._without_power:
                # Its machine knows nothing of the connection.
                self._loop.call_in(client, transport.received, b"")

        def deliver_to_client(data: bytes) -> None:
            self._loop.call_in(client, transport.received, data)

        def forget() -> None:
            self._connections.pop(number, None)

        served = ServedConnection(
            number,
            f"{machine}:{number}",
            listener.name,
            listener.service,
            forget,
        )
        served.outgoing = Pipe(self.link(address.host, machine), deliver_to_client)
        transport.outgoing = Pipe(self.link(machine, address.host), deliver_to_server)
        self._connections[number] = _Connection(client, listener.process, served, transport.outgoing, served.outgoing)
        connection.connection_made(transport)
        return connection


class ClientTransport(asyncio.Transport):
    """A client's end of a connection, as `lamina.peer` sees it."""

    outgoing: Pipe

    def __init__(self, loop: VirtualLoop, process: Process, protocol: Connection) -> None:
        super().__init__()
        self._loop = loop
        self._process = process
        self._protocol = protocol
        self._is_closed = False

    def write(self, data: Any) -> None:
        self.outgoing.send(bytes(data))

    def abort(self) -> None:
        self.outgoing.give_up()
        self._end()

    def received(self, data: bytes) -> None:
        if self._is_closed:
            return
        if not data:
            self.outgoing.give_up()
            self._end()
        while data:
            buffer = self._protocol.get_buffer(len(data))
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self._protocol.buffer_updated(count)

    def _end(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.call_in(self._process, self._protocol.connection_lost, None)


class SimulatedConnector:
    """`lamina.peer`'s way to connect, from one machine."""

    def __init__(self, network: Network, machine: str, client_id: str) -> None:
        self._network = network
        self._machine = machine
        self._client_id = client_id

    async def connect(self, address: Address, limits: Limits) -> Connection:
        return await self._network.connect(self._machine, address, self._client_id, limits)
