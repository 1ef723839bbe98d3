"""The way to other brokers: by lanes, so that nothing waits behind a long poll."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from lamina.broker.replication.broker_links import BrokerLinks
from lamina.errors import NetworkError
from lamina.image.image import Image
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.limits import Limits
from lamina.peer.listing import LATEST, list_one
from tests.broker.replication.following_broker import LEADER, NODE, with_broker, without_broker
from tests.broker.replication.memory_leader import LIST_OFFSETS, MemoryConnector, MemoryLeader
from tests.peer.responses import response_frame

CALL = list_one("t", 0, 0, LATEST, 0)


class Held(MemoryLeader):
    """Answers nothing but ApiVersions until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def serve(self, frame: bytes) -> bytes:
        is_asked = int.from_bytes(frame[:2], "big") == LIST_OFFSETS
        if is_asked:
            self.asked.append((LIST_OFFSETS, None, None))
            await self.go.wait()
        return await super().serve(frame)

    def _list_offsets(self, header: Any, request: Any) -> bytes:
        return response_frame(LIST_OFFSETS, header.api_version, header.correlation_id, topics=[])


class Cluster:
    def __init__(self) -> None:
        self.leader = Held()
        self.image = with_broker(Image("c"), LEADER, 9001, 1)
        self.leaders: dict[Address, MemoryLeader] = {Address("broker.test", 9001): self.leader}
        self.links = BrokerLinks(
            NODE, lambda: self.image, "BROKERS", Limits(), lambda client_id: MemoryConnector(self.leaders, client_id)
        )


def run(scenario: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        cluster = Cluster()
        await asyncio.wait_for(scenario(cluster), 30)
        await cluster.links.close()

    asyncio.run(main())


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_each_lane_has_a_connection_of_its_own() -> None:
    async def scenario(cluster: Cluster) -> None:
        asked = [asyncio.create_task(cluster.links.ask(LEADER, CALL, lane)) for lane in ("", "", "fetcher-0")]
        await turns()
        assert len(cluster.leader.connections) == 2
        cluster.leader.go.set()
        await asyncio.gather(*asked)

    run(scenario)


def test_a_broker_that_is_not_in_the_cluster_cannot_be_asked() -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(NetworkError, match="broker 8 is not in the cluster now"):
            await cluster.links.ask(8, CALL)

    run(scenario)


def test_a_broker_without_the_listener_cannot_be_asked() -> None:
    async def scenario(cluster: Cluster) -> None:
        links = BrokerLinks(NODE, lambda: cluster.image, "OTHERS", Limits())
        with pytest.raises(NetworkError, match="broker 1 has no listener OTHERS"):
            await links.ask(LEADER, CALL)

    run(scenario)


@pytest.mark.parametrize(("port", "epoch"), [(9001, 2), (9002, 1)])
def test_a_broker_that_came_back_gets_another_connection(port: int, epoch: int) -> None:
    """What the old one was asked is answered by nobody."""

    async def scenario(cluster: Cluster) -> None:
        asked = asyncio.create_task(cluster.links.ask(LEADER, CALL))
        await turns()
        cluster.image = with_broker(cluster.image, LEADER, port, epoch)
        cluster.leaders[Address("broker.test", port)] = cluster.leader
        again = asyncio.create_task(cluster.links.ask(LEADER, CALL))
        with pytest.raises(NetworkError):
            await asked
        await turns()
        cluster.leader.go.set()
        await again
        assert len(cluster.leader.connections) == 2

    run(scenario)


def test_who_waits_for_a_broker_that_has_gone_is_told() -> None:
    async def scenario(cluster: Cluster) -> None:
        asked = asyncio.create_task(cluster.links.ask(LEADER, CALL))
        await turns()
        cluster.image = without_broker(cluster.image, LEADER)
        cluster.links.image_changed()
        with pytest.raises(NetworkError):
            await asked

    run(scenario)


def test_closed_links_ask_nobody() -> None:
    async def scenario(cluster: Cluster) -> None:
        asked = asyncio.create_task(cluster.links.ask(LEADER, CALL))
        await turns()
        await cluster.links.close()
        for waiting in (asked, cluster.links.ask(LEADER, CALL)):
            with pytest.raises(NetworkError):
                await waiting

    run(scenario)


def test_calls_do_not_follow_each_other_to_where_the_broker_was_before_its_connection_was_made() -> None:
    async def scenario(cluster: Cluster) -> None:
        seen: list[Any] = []

        def follow_up(response: Any) -> MessageCall | None:
            seen.append(response)
            return CALL if len(seen) < 3 else None

        asked = asyncio.create_task(cluster.links.ask(LEADER, CALL, "", follow_up))
        await asyncio.sleep(0)
        cluster.image = with_broker(cluster.image, LEADER, 9002, 2)
        cluster.leader.go.set()
        await asked
        assert seen == [], "the one call, and none behind it"

    run(scenario)


@pytest.mark.parametrize("has_changed", [False, True])
def test_calls_follow_each_other_until_the_metadata_changes(*, has_changed: bool) -> None:
    """Where the broker is then has to be looked up again."""

    async def scenario(cluster: Cluster) -> None:
        seen: list[Any] = []

        def follow_up(response: Any) -> MessageCall | None:
            seen.append(response)
            return CALL if len(seen) < 3 else None

        asked = asyncio.create_task(cluster.links.ask(LEADER, CALL, "", follow_up))
        await turns()
        if has_changed:
            cluster.image = with_broker(cluster.image, NODE, 9002, 1)
        cluster.leader.go.set()
        await asked
        assert len(seen) == (0 if has_changed else 3)

    run(scenario)
