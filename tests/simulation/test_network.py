"""The network in memory: order, partitions, and what arrives from the dead."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from random import Random
from typing import Any

import pytest

from lamina.broker.requests.request import Client, Request, Response
from lamina.errors import NetworkError, RequestTimedOut
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.connection import Connection
from lamina.peer.limits import Limits
from lamina.wire.headers import parse_request_header
from tests.peer.responses import response_frame
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.network import Listener, Network, SimulatedConnector

ADDRESS = Address("node", 9092)
LIMITS = Limits(request_timeout_ms=1000, max_in_flight=5)
_LIST_GROUPS = 16


class _Request:
    def abandon(self) -> None:
        """Nothing here waits for news."""


class Service:
    """Answers after a while, and remembers what came."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.served: list[int] = []
        self._seconds = seconds

    def serve(self, client: Client, frame: memoryview) -> "tuple[Request, Response | Awaitable[Response]]":
        correlation_id = parse_request_header(frame).correlation_id
        self.served.append(correlation_id)
        return _Request(), self._answer(correlation_id)  # type: ignore[return-value]

    async def _answer(self, correlation_id: int) -> Response:
        await asyncio.sleep(self._seconds)
        return [response_frame(_LIST_GROUPS, 3, correlation_id, throttle_time=0, error_code=0, groups=[])]


class Scene:
    def __init__(self, seed: int, service: Service) -> None:
        self.loop = VirtualLoop(Random(seed))
        self.network = Network(self.loop, Random(seed))
        self.node = self.loop.new_process("node")
        self.service = service
        self.network.listen(ADDRESS, Listener(self.node, "PLAINTEXT", service))

    def play(self, client: Callable[[Connection], Coroutine[Any, Any, None]]) -> None:
        async def connected() -> None:
            connector = SimulatedConnector(self.network, "client", "client")
            await client(await connector.connect(ADDRESS, LIMITS))

        async def world() -> None:
            await self.loop.spawn(self.loop.new_process("client"), connected())

        self.loop.run(world(), limit_s=60)


@pytest.fixture
def scenes() -> Iterator[Callable[..., Scene]]:
    made: list[Scene] = []

    def make(seed: int = 1, seconds: float = 0.0) -> Scene:
        made.append(Scene(seed, Service(seconds)))
        return made[-1]

    yield make
    for scene in made:
        scene.loop.close()


def ask(connection: Connection) -> Awaitable[Any]:
    return connection.send(MessageCall(_LIST_GROUPS, range(3, 4)), 3)


def test_requests_of_a_connection_are_served_in_order(scenes: Callable[..., Scene]) -> None:
    scene = scenes(seconds=0.01)

    async def client(connection: Connection) -> None:
        await asyncio.gather(*(ask(connection) for _ in range(5)))

    scene.play(client)
    assert scene.service.served == sorted(scene.service.served)
    assert len(scene.service.served) == 5


def test_what_is_sent_over_a_cut_link_arrives_when_it_heals(scenes: Callable[..., Scene]) -> None:
    scene = scenes()

    async def client(connection: Connection) -> None:
        link = scene.network.link("client", "node")
        link.cut()
        asked = asyncio.ensure_future(ask(connection))
        await asyncio.sleep(0.5)
        assert not scene.service.served
        link.heal()
        await asked

    scene.play(client)


def test_one_way_is_enough_to_lose_the_response(scenes: Callable[..., Scene]) -> None:
    scene = scenes()

    async def client(connection: Connection) -> None:
        scene.network.link("node", "client").cut()
        with pytest.raises(RequestTimedOut):
            await ask(connection)

    scene.play(client)
    assert len(scene.service.served) == 1


def test_a_request_of_a_connection_that_died_may_still_arrive(scenes: Callable[..., Scene]) -> None:
    def late(seed: int) -> int:
        scene = scenes(seed)

        async def client(connection: Connection) -> None:
            scene.network.link("client", "node").cut()
            with pytest.raises(RequestTimedOut):
                await ask(connection)
            scene.network.heal()
            await asyncio.sleep(1)

        scene.play(client)
        return len(scene.service.served)

    assert {late(seed) for seed in range(20)} == {0, 1}


def test_a_client_learns_of_a_kill_and_not_of_a_power_cut(scenes: Callable[..., Scene]) -> None:
    def end(how: Callable[[Scene, Process], None]) -> type[Exception]:
        scene = scenes(seconds=30)
        raised: list[type[Exception]] = []

        async def client(connection: Connection) -> None:
            asked = asyncio.ensure_future(ask(connection))
            await asyncio.sleep(0.1)
            scene.loop.kill(scene.node)
            how(scene, scene.node)
            try:
                await asked
            except NetworkError:
                raised.append(NetworkError)
            except RequestTimedOut:
                raised.append(RequestTimedOut)

        scene.play(client)
        return raised[0]

    assert end(lambda scene, node: scene.network.end_connections(node)) is NetworkError
    assert end(lambda scene, node: scene.network.lose_power("node", node)) is RequestTimedOut


def test_nobody_listens_where_a_process_stopped(scenes: Callable[..., Scene]) -> None:
    scene = scenes()

    async def client(_: Connection) -> None:
        scene.network.stop_listening(scene.node)
        with pytest.raises(ConnectionRefusedError):
            await SimulatedConnector(scene.network, "client", "client").connect(ADDRESS, LIMITS)

    scene.play(client)


def test_a_firewall_refuses_whoever_connects_and_leaves_connections(scenes: Callable[..., Scene]) -> None:
    scene = scenes()

    async def client(connection: Connection) -> None:
        scene.network.reject("node")
        with pytest.raises(ConnectionRefusedError):
            await SimulatedConnector(scene.network, "client", "client").connect(ADDRESS, LIMITS)
        await ask(connection)
        scene.network.accept("node")
        await SimulatedConnector(scene.network, "client", "client").connect(ADDRESS, LIMITS)

    scene.play(client)
