"""How long a broker waits for its id, in virtual time."""

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from lamina.broker.metadata.registering import register
from lamina.broker.threads import Threads
from lamina.store.membership import IdTaken, Membership
from lamina.store.registration import Registration
from tests.simulation.clocks import NodeClocks
from tests.simulation.executor import SimulatedExecutor
from tests.simulation.loop import VirtualLoop
from tests.store.memory_zookeeper import MemoryZooKeeper

TIMEOUT_MS = 6000


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    virtual = VirtualLoop(Random(1))
    yield virtual
    virtual.close()


def registration(directory: str) -> Registration:
    return Registration((), None, "0.1", True, (directory,), 1234)


def new_thread(loop: VirtualLoop) -> Threads:
    return Threads(
        loop, NodeClocks(loop).clocks, 1, new_executor=lambda count, _: SimulatedExecutor(loop, Random(2), count)
    )


def test_a_second_broker_is_refused_after_one_session_timeout_and_the_servers_tick(
    loop: VirtualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    zookeeper = MemoryZooKeeper()
    Membership(zookeeper.connect(), 1).try_register(registration("dir-1"))
    second = Membership(zookeeper.connect(), 1)
    with pytest.raises(IdTaken, match=r"broker id 1 is taken: .*: give this one another --node-id, or stop that one$"):
        loop.run(register(second, registration("dir-2"), new_thread(loop), TIMEOUT_MS))
    assert 9.0 <= loop.time() < 9.3
    assert [one.getMessage() for one in caplog.records] == [
        "waiting up to 9 s for the id of this broker: it may be left over from its own last run"
    ]


def test_whose_session_ends_while_another_waits_leaves_the_id_to_it(loop: VirtualLoop) -> None:
    zookeeper = MemoryZooKeeper()
    first, second = zookeeper.connect(), Membership(zookeeper.connect(), 1)
    Membership(first, 1).try_register(registration("dir-1"))

    async def wait() -> int:
        asyncio.get_running_loop().call_later(5.0, zookeeper.expire, first)
        return await register(second, registration("dir-2"), new_thread(loop), TIMEOUT_MS)

    epoch = loop.run(wait())
    assert 5.0 <= loop.time() < 5.3
    assert second.brokers()[1][1] == epoch
