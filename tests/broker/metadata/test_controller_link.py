"""The way to the controller: whoever is it now, and nobody who was."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from lamina.broker.metadata.controller_link import ControllerLink
from lamina.errors import NetworkError, NotController
from lamina.image.image import Broker, Image
from lamina.peer.addresses import Address
from lamina.peer.limits import Limits
from tests.broker.replication.following_broker import NODE, with_broker
from tests.broker.replication.memory_leader import MemoryConnector, MemoryLeader
from tests.broker.replication.test_broker_links import CALL, Held, turns

PORTS = {3: 9003, 4: 9004}


class Cluster:
    """Brokers 3 and 4; nobody is elected yet."""

    def __init__(self) -> None:
        self.brokers = {3: Held(), 4: Held()}
        leaders: dict[Address, MemoryLeader] = {
            Address("broker.test", PORTS[broker_id]): broker for broker_id, broker in self.brokers.items()
        }
        self._controller: Broker | None = None
        self._moved = asyncio.Event()
        self.link = ControllerLink(
            NODE,
            lambda: self._controller,
            lambda: self._moved,
            "BROKERS",
            Limits(),
            lambda client_id: MemoryConnector(leaders, client_id),
        )

    def elect(self, broker_id: int) -> None:
        self._controller = with_broker(Image("c"), broker_id, PORTS[broker_id], 1).brokers[broker_id]
        self._moved.set()
        self._moved = asyncio.Event()


def run(scenario: Callable[[Cluster], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        cluster = Cluster()
        await asyncio.wait_for(scenario(cluster), 30)
        await cluster.link.close()

    asyncio.run(main())


def test_without_a_controller_nobody_is_asked() -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(NetworkError, match="no controller is elected now"):
            await cluster.link.ask(CALL, "follow")

    run(scenario)


def test_a_controller_that_is_replaced_while_it_says_nothing_is_not_waited_for() -> None:
    """It may be paused, or cut off: the next one is there, and waits for this broker's report."""

    async def scenario(cluster: Cluster) -> None:
        cluster.elect(3)
        asking = asyncio.ensure_future(cluster.link.ask(CALL, "follow"))
        await turns()
        assert cluster.brokers[3].asked
        assert not asking.done()
        cluster.elect(4)
        await turns()
        assert asking.done()
        with pytest.raises(NotController):
            asking.result()
        cluster.brokers[4].go.set()
        await cluster.link.ask(CALL, "follow")
        assert cluster.brokers[4].asked

    run(scenario)


def test_a_long_poll_holds_up_no_other_lane() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.elect(3)
        lanes = [asyncio.ensure_future(cluster.link.ask(CALL, lane)) for lane in ("follow", "report")]
        await turns()
        assert len(cluster.brokers[3].asked) == 2
        cluster.brokers[3].go.set()
        await asyncio.gather(*lanes)

    run(scenario)
