"""The routes of one cluster when many need them at the same time: what is asked, and how often."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from lamina.errors import CoordinatorNotAvailable, ErrorCode
from lamina.peer.connection_pool import ConnectionPool
from lamina.peer.connector import PlainConnector
from lamina.peer.limits import Limits
from lamina.peer.routes import Routes
from lamina.peer.target import Controller, Coordinator, CoordinatorType
from tests.peer.loops import SkippingLoop, run
from tests.peer.scripted import API_VERSIONS, FIND_COORDINATOR, METADATA, Facts, ScriptedBroker, versions_facts

SILENT = "silent"
"""The topic about which a broker says nothing, ever."""


class Broker(ScriptedBroker):
    def __init__(self) -> None:
        super().__init__({METADATA: self._metadata, FIND_COORDINATOR: self._coordinator})

    @property
    def _endpoint(self) -> Facts:
        return {"node_id": 1, "host": self.address.host, "port": self.address.port}

    def _metadata(self, request: Any) -> Facts | None:
        names = [asked.name for asked in request.topics]
        if SILENT in names:
            return None
        partition = {"partition_index": 0, "leader_id": 1, "leader_epoch": 5}
        topics = [{"name": name, "topic_id": UUID(int=7), "partitions": [partition]} for name in names]
        return {"brokers": [self._endpoint], "controller_id": 1, "topics": topics}

    def _coordinator(self, request: Any) -> Facts:
        if not hasattr(request, "coordinator_keys"):
            assert (request.key_type, request.key) == (CoordinatorType.TRANSACTION, "t")
            return self._endpoint
        return {"coordinators": [{"key": key, **self._endpoint} for key in request.coordinator_keys]}

    def routes(self) -> Routes:
        return Routes((self.address,), ConnectionPool(PlainConnector("test"), Limits()))


def test_everybody_who_needs_the_same_metadata_waits_for_one_answer() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with Broker() as broker:
            routes = broker.routes()
            found = await asyncio.gather(*(routes.leader("orders", 0) for _ in range(20)))
            assert {route.leader_epoch for route in found} == {5}
            await asyncio.gather(*(routes.connection_to(Controller()) for _ in range(20)))
            assert broker.keys() == [METADATA]
            await routes.close()

    run(scenario)


@pytest.mark.parametrize("newest", [1, 3])
def test_a_coordinator_is_found_where_brokers_answer_for_one_key_at_a_time(newest: int) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with Broker() as broker:
            offered = versions_facts({METADATA: 7, FIND_COORDINATOR: newest})
            broker.script[API_VERSIONS] = lambda _: {"api_keys": offered}
            routes = broker.routes()
            assert await routes.coordinator_id(Coordinator(CoordinatorType.TRANSACTION, "t")) == 1
            broker.script[FIND_COORDINATOR] = lambda _: {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}
            with pytest.raises(CoordinatorNotAvailable):
                await routes.coordinator_id(Coordinator(CoordinatorType.TRANSACTION, "u"))
            await routes.close()

    run(scenario)


def test_a_route_that_is_known_waits_for_no_answer_about_another() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with Broker() as broker:
            routes = broker.routes()
            await routes.leader("orders", 0)
            waiting = asyncio.ensure_future(routes.leader(SILENT, 0))
            await broker.until_asked(2)
            assert (await routes.leader("orders", 0)).leader_epoch == 5
            assert await routes.connection_to(Controller()) is (await routes.leader("orders", 0)).connection
            assert not waiting.done()
            waiting.cancel()
            await routes.close()

    run(scenario)


def test_everybody_who_needs_the_same_coordinator_waits_for_one_answer() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with Broker() as broker:
            routes = broker.routes()
            group = Coordinator(CoordinatorType.GROUP, "g")
            assert await asyncio.gather(*(routes.coordinator_id(group) for _ in range(20))) == [1] * 20
            assert broker.keys() == [FIND_COORDINATOR]
            await routes.close()

    run(scenario)
