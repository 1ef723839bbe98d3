"""When a broker that is not connected any more is looked at, and when it counts as dead."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lamina.broker.metadata.silent_brokers import SilentBrokers, is_dead
from lamina.image.image import Broker
from tests.simulation.loop import VirtualLoop

BROKER, OTHER = Broker(1, {}, None, 5), Broker(2, {}, None, 6)


class Connection:
    """Over which the broker asks."""

    def __init__(self, number: int = 1) -> None:
        self.id = number
        self._told: list[Callable[[], None]] = []

    def when_gone(self, told: Callable[[], None]) -> None:
        self._told.append(told)

    def end(self) -> None:
        assert len(self._told) == 1, "asked for once, however many questions there are"
        self._told[0]()


class Scene:
    """A broker, and another one, and what becomes of whoever connects to them."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.broker = BROKER
        """As it is registered."""
        self.refuses = False
        self.is_expected = True
        self.looks: list[float] = []
        """When each was."""
        self.removed: list[float] = []
        self.removed_together: list[list[int]] = []
        self.hangs: set[int] = set()
        """Brokers that neither take a connection nor refuse it."""
        self._loop = loop
        self.silent = SilentBrokers(self._is_refused, self._expected, self._remove)

    def heard(self, connection: Connection, broker: Broker | None = None) -> None:
        self.silent.heard(broker or self.broker, connection)

    def _expected(self, broker_id: int) -> Broker | None:
        is_removed = any(broker_id in ids for ids in self.removed_together)
        every = (self.broker, OTHER)
        return next(one for one in every if one.id == broker_id) if self.is_expected and not is_removed else None

    async def _is_refused(self, broker: Broker) -> bool:
        self.looks.append(self._loop.time())
        if broker.id in self.hangs:
            await asyncio.sleep(30)
        return self.refuses

    async def _remove(self, dead: Sequence[Broker]) -> None:
        self.removed.append(self._loop.time())
        self.removed_together.append([broker.id for broker in dead])


@pytest.fixture
def live() -> Iterator[Callable[[Callable[[Scene], Coroutine[Any, Any, None]]], None]]:
    loop = VirtualLoop(Random(1))

    def run(script: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
        loop.run(script(Scene(loop)), limit_s=60)

    yield run
    loop.close()


Live = Callable[[Callable[[Scene], Coroutine[Any, Any, None]]], None]


@pytest.mark.parametrize(
    ("refusals", "dead"),
    [([True] * 3, True), ([False], False), ([True, False], False), ([True, True, False], False)],
)
def test_only_who_refuses_every_time_is_dead(refusals: Sequence[bool], dead: bool) -> None:
    loop, left = VirtualLoop(Random(1)), list(refusals)

    async def is_refused(_: Broker) -> bool:
        return left.pop(0)

    async def looked() -> bool:
        return await is_dead(BROKER, is_refused)

    try:
        assert loop.run(looked(), limit_s=10) is dead
    finally:
        loop.close()
    assert not left


def test_one_whose_last_connection_ends_and_that_refuses_is_removed_soon(live: Live) -> None:
    async def script(scene: Scene) -> None:
        scene.refuses = True
        connection = Connection()
        for _ in range(3):
            scene.heard(connection)
        await asyncio.sleep(2)
        assert not scene.looks, "it is connected"
        connection.end()
        await asyncio.sleep(1)
        [removed] = scene.removed
        assert 2.1 <= removed < 2.4

    live(script)


def test_one_that_connects_again_is_not_looked_at(live: Live) -> None:
    async def script(scene: Scene) -> None:
        for number in range(5):
            connection = Connection(number)
            scene.heard(connection)
            await asyncio.sleep(2)
            connection.end()
            await asyncio.sleep(0.05)
        scene.heard(Connection(9))
        await asyncio.sleep(2)
        assert not scene.looks

    live(script)


def test_one_whose_connections_end_again_and_again_is_looked_at_by_one(live: Live) -> None:
    async def script(scene: Scene) -> None:
        for number in range(100):
            connection = Connection(number)
            scene.heard(connection)
            connection.end()
        await asyncio.sleep(0.5)
        assert len(scene.looks) == 1

    live(script)


def test_one_of_two_connections_that_ends_says_nothing(live: Live) -> None:
    async def script(scene: Scene) -> None:
        first, second = Connection(1), Connection(2)
        for connection in (first, second):
            scene.heard(connection)
        first.end()
        await asyncio.sleep(2)
        assert not scene.looks

    live(script)


def test_one_that_connects_again_while_it_is_looked_at_is_not_removed(live: Live) -> None:
    async def script(scene: Scene) -> None:
        scene.refuses = True
        connection = Connection(1)
        scene.heard(connection)
        connection.end()
        await asyncio.sleep(0.15)
        assert scene.looks
        scene.heard(Connection(2))
        await asyncio.sleep(2)
        assert not scene.removed

    live(script)


def test_one_that_refuses_nobody_is_looked_at_again_until_it_does(live: Live) -> None:
    async def script(scene: Scene) -> None:
        connection = Connection()
        scene.heard(connection)
        connection.end()
        await asyncio.sleep(3)
        assert len(scene.looks) == 6
        assert not scene.removed
        scene.refuses = True
        await asyncio.sleep(1)
        assert len(scene.removed) == 1

    live(script)


def test_one_that_is_not_expected_is_not_looked_at(live: Live) -> None:
    async def script(scene: Scene) -> None:
        scene.refuses, scene.is_expected = True, False
        connection = Connection()
        scene.heard(connection)
        connection.end()
        await asyncio.sleep(3)
        assert not scene.looks

    live(script)


def test_a_connection_of_a_former_registration_does_not_speak_for_the_new_one(live: Live) -> None:
    """Its machine was without power: nobody told that the connection had ended."""

    async def script(scene: Scene) -> None:
        scene.refuses = True
        scene.heard(Connection(1))
        scene.broker = replace(BROKER, epoch=BROKER.epoch + 1)
        connection = Connection(2)
        scene.heard(connection)
        connection.end()
        await asyncio.sleep(1)
        assert len(scene.removed) == 1

    live(script)


def test_one_that_asks_on_in_its_next_registration_is_not_looked_at(live: Live) -> None:
    async def script(scene: Scene) -> None:
        scene.refuses = True
        first, second = Connection(1), Connection(2)
        for connection in (first, second):
            scene.heard(connection)
        scene.broker = replace(BROKER, epoch=BROKER.epoch + 1)
        scene.heard(Connection(3))
        first.end()
        second.end()
        await asyncio.sleep(1)
        assert not scene.looks

    live(script)


@pytest.mark.parametrize("apart_seconds", [0.0, 0.05, 0.15, 0.19])
def test_those_that_die_almost_together_are_removed_together(live: Live, apart_seconds: float) -> None:
    """R48: had they gone one by one, only the last could lead when it comes back."""

    async def script(scene: Scene) -> None:
        scene.refuses = True
        first, second = Connection(1), Connection(2)
        scene.heard(first)
        scene.heard(second, OTHER)
        first.end()
        await asyncio.sleep(apart_seconds)
        second.end()
        await asyncio.sleep(0.05)
        assert scene.silent.suspects == {1, 2}
        await asyncio.sleep(1)
        assert scene.removed_together == [[1, 2]]
        assert not scene.silent.suspects

    live(script)


def test_a_dead_one_does_not_wait_long_for_one_that_says_nothing(live: Live) -> None:
    async def script(scene: Scene) -> None:
        scene.refuses, scene.hangs = True, {OTHER.id}
        first, second = Connection(1), Connection(2)
        scene.heard(first)
        scene.heard(second, OTHER)
        second.end()
        await asyncio.sleep(5)
        assert scene.silent.suspects == {2}
        first.end()
        await asyncio.sleep(1)
        assert scene.removed_together == [[1]]
        assert 5.2 <= scene.removed[0] < 5.5

    live(script)


def test_a_dead_one_waits_for_none_that_connects_again(live: Live) -> None:
    async def script(scene: Scene) -> None:
        scene.refuses = True
        first, second = Connection(1), Connection(2)
        scene.heard(first)
        scene.heard(second, OTHER)
        first.end()
        second.end()
        await asyncio.sleep(0.05)
        scene.heard(Connection(3), OTHER)
        assert scene.silent.suspects == {1}
        await asyncio.sleep(1)
        assert scene.removed_together == [[1]]
        assert scene.removed[0] < 0.25

    live(script)


def test_one_that_connects_again_while_another_is_waited_for_is_not_removed(live: Live) -> None:
    async def script(scene: Scene) -> None:
        scene.refuses = True
        first, second = Connection(1), Connection(2)
        scene.heard(first)
        scene.heard(second, OTHER)
        first.end()
        await asyncio.sleep(0.15)
        second.end()
        await asyncio.sleep(0.1)
        scene.heard(Connection(3))
        await asyncio.sleep(1)
        assert scene.removed_together == [[2]]

    live(script)


def test_nobody_is_looked_at_once_it_is_closed(live: Live) -> None:
    async def script(scene: Scene) -> None:
        scene.refuses = True
        first, second = Connection(1), Connection(2)
        scene.heard(first)
        first.end()
        scene.heard(second)
        scene.silent.close()
        second.end()
        scene.heard(Connection(3))
        await asyncio.sleep(3)
        assert not scene.looks

    live(script)
