"""A cluster of scripted brokers: leaders, controllers and coordinators that move, and brokers that die."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from lamina.errors import (
    MalformedResponse,
    NetworkError,
    NotCoordinator,
    OffsetOutOfRange,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import PlainConnector
from lamina.peer.limits import Limits
from lamina.peer.listing import LATEST
from lamina.peer.target import AnyBroker, Broker, Controller, Coordinator, CoordinatorType, Leader
from tests.peer.loops import SkippingLoop, run
from tests.peer.scripted import (
    API_VERSIONS,
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    OFFSET_DELETE,
    PRODUCE,
    Facts,
    ScriptedBroker,
)

TOPIC_ID = UUID(int=7)
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, NOT_LEADER, LOADING, NOT_COORDINATOR, NOT_CONTROLLER, FENCED = (
    1,
    3,
    6,
    14,
    16,
    41,
    74,
)
DEAD = Address("127.0.0.1", 1)
LIMITS = Limits(api_timeout_ms=60_000, retry_backoff_ms=1, retry_backoff_max_ms=1)


class Cluster:
    """What brokers would tell of themselves."""

    def __init__(self, *brokers: ScriptedBroker) -> None:
        self.brokers = dict(enumerate(brokers, 1))
        self.leader = (1, 5)
        self.controller = 1
        self.coordinator = 1
        for broker in brokers:
            broker.script = {METADATA: self.metadata, FIND_COORDINATOR: self.find_coordinator, **broker.script}

    def endpoints(self) -> list[Facts]:
        return [
            {"node_id": number, "host": broker.address.host, "port": broker.address.port}
            for number, broker in self.brokers.items()
        ]

    def metadata(self, request: Any) -> Facts:
        leader_id, leader_epoch = self.leader
        partition = {"partition_index": 0, "leader_id": leader_id, "leader_epoch": leader_epoch}
        topics = [
            {"name": asked.name, "topic_id": TOPIC_ID, "partitions": [partition]}
            if asked.name == "orders"
            else {"name": asked.name, "error_code": UNKNOWN_TOPIC}
            for asked in request.topics
        ]
        return {"brokers": self.endpoints(), "controller_id": self.controller, "topics": topics}

    def find_coordinator(self, request: Any) -> Facts:
        (key,) = request.coordinator_keys
        node = next(one for one in self.endpoints() if one["node_id"] == self.coordinator)
        return {"coordinators": [{"key": key, **node}]}


def client(*addresses: Address, limits: Limits = LIMITS, random: Callable[[], float] = lambda: 0.5) -> ClusterClient:
    return ClusterClient(addresses, PlainConnector("test"), random, limits)


def no_back_off() -> float:
    raise AssertionError("nobody should wait here")


def fetch_answer(error_code: int = 0, records: bytes | None = b"records", **more: Any) -> Facts:
    hint = more.pop("current_leader", None)
    partition = {"error_code": error_code, "high_watermark": 9, "records": records, "current_leader": hint, **more}
    return {"responses": [{"topic_id": TOPIC_ID, "partitions": [partition]}]}


def produce_answer(error_code: int = 0, **more: Any) -> Facts:
    return {
        "responses": [{"name": "orders", "partition_responses": [{"error_code": error_code, "base_offset": 3, **more}]}]
    }


def list_answer(error_code: int = 0) -> Facts:
    partition = {"error_code": error_code, "offset": 9, "timestamp": -1, "leader_epoch": 5}
    return {"topics": [{"name": "orders", "partitions": [partition]}]}


def then(*answers: Callable[[Any], Facts | None] | Facts) -> Callable[[Any], Facts | None]:
    """One after the other; the last one for ever."""
    left = list(answers)

    def answer(request: Any) -> Facts | None:
        one = left.pop(0) if len(left) > 1 else left[0]
        return one(request) if callable(one) else dict(one)

    return answer


# Finding brokers


def test_dead_addresses_in_the_bootstrap_list_are_passed_over() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as broker:
            Cluster(broker)
            async with client(DEAD, Address("nowhere.invalid", 1), broker.address) as cluster:
                assert await cluster.brokers() == {1: broker.address}

    run(scenario)


def test_a_list_of_dead_addresses_is_one_sentence_after_its_time() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with client(DEAD, DEAD._replace(port=2)) as cluster:
            await loop.skip_until(asyncio.ensure_future(cluster.brokers()))

    with pytest.raises(
        NetworkError, match=r"^no broker answers: 127.0.0.1:1 cannot.*; 127.0.0.1:2 cannot.*in vain for 60000 ms$"
    ):
        run(scenario)


def test_connections_are_made_once_and_shared() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({LIST_OFFSETS: then(list_answer())}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                asked = (cluster.list_offset("orders", 0, LATEST) for _ in range(20))
                assert {listed.offset for listed in await asyncio.gather(*asked)} == {9}
            assert broker.connections == 1
            assert broker.keys().count(METADATA) == 1

    run(scenario)


def test_a_cluster_that_was_never_reached_is_told_of_once_while_it_is_tried(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with client(DEAD) as cluster:
            await loop.skip_until(asyncio.ensure_future(cluster.brokers()))

    with pytest.raises(NetworkError):
        run(scenario)
    (told,) = (record.getMessage() for record in caplog.records if record.name == "lamina.peer.cluster")
    assert told.startswith("127.0.0.1:1 cannot be reached")
    assert told.endswith("; it is tried for 60 s in all")


def test_a_cluster_that_was_reached_before_is_waited_for_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker() as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                assert await cluster.brokers()
                await loop.skip_until(asyncio.ensure_future(cluster.request(Broker(9), delete_call())))

    with pytest.raises(NetworkError):
        run(scenario)
    assert not [record for record in caplog.records if record.name == "lamina.peer.cluster"]


def test_a_broker_that_came_back_is_connected_to_again() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({LIST_OFFSETS: then(lambda _: None, list_answer())}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                asking = asyncio.create_task(cluster.list_offset("orders", 0, LATEST))
                await broker.until_asked(2)
                broker.hang_up()
                assert (await asking).offset == 9
            assert broker.connections == 2

    run(scenario)


def test_an_unknown_broker_is_asked_for_until_the_time_is_over() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker() as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                asking = asyncio.create_task(cluster.request(Broker(9), delete_call()))
                await loop.skip_until(asking)

    with pytest.raises(NetworkError, match="the cluster has no broker 9 now; tried in vain for 60000 ms"):
        run(scenario)


# Leaders


def test_records_come_with_what_the_leader_knows_of_the_partition() -> None:
    async def scenario(_: SkippingLoop) -> None:
        answer = fetch_answer(
            last_stable_offset=8, log_start_offset=2, aborted_transactions=[{"producer_id": 4, "first_offset": 6}]
        )
        async with ScriptedBroker({FETCH: then(answer)}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                fetched = await cluster.fetch("orders", 0, 5, max_bytes=1000)
            assert fetched == (memoryview(b"records"), 9, 8, 2, [(4, 6)])
            key, request = broker.asked[-1]
            assert key == FETCH
            (topic,) = request.topics
            (partition,) = topic.partitions
            assert topic.topic_id == TOPIC_ID
            assert (partition.fetch_offset, partition.current_leader_epoch) == (5, 5)

    run(scenario)


@pytest.mark.parametrize("error_code", [NOT_LEADER, FENCED])
def test_a_leader_that_moved_is_looked_up_and_asked(error_code: int) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as old, ScriptedBroker({FETCH: then(fetch_answer())}) as new:
            told = Cluster(old, new)

            def moved(_: Any) -> Facts:
                told.leader = (2, 6)
                return fetch_answer(error_code, records=None)

            old.script[FETCH] = moved
            async with client(old.address) as cluster:
                fetched = await cluster.fetch("orders", 0, 0, max_bytes=1000)
            assert bytes(fetched.records) == b"records"
            assert old.keys() == [METADATA, FETCH, METADATA]
            assert new.asked[0][1].topics[0].partitions[0].current_leader_epoch == 6

    run(scenario)


def test_a_hint_in_a_fetch_response_saves_the_look_up() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as old, ScriptedBroker({FETCH: then(fetch_answer())}) as new:
            told = Cluster(old, new)
            hint = fetch_answer(NOT_LEADER, records=None, current_leader={"leader_id": 2, "leader_epoch": 6})
            old.script[FETCH] = then({**hint, "node_endpoints": told.endpoints()})
            async with client(old.address, random=no_back_off) as cluster:
                await cluster.fetch("orders", 0, 0, max_bytes=1000)
            assert old.keys() == [METADATA, FETCH]
            assert new.keys() == [FETCH]

    run(scenario)


def test_a_hint_in_a_produce_response_saves_the_look_up() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as old, ScriptedBroker({PRODUCE: then(produce_answer())}) as new:
            told = Cluster(old, new)
            hint = produce_answer(NOT_LEADER, current_leader={"leader_id": 2, "leader_epoch": 6})
            old.script[PRODUCE] = then({**hint, "node_endpoints": told.endpoints()})
            async with client(old.address, random=no_back_off) as cluster:
                assert (await cluster.produce("orders", 0, b"batch")).base_offset == 3
            assert old.keys() == [METADATA, PRODUCE]
            assert new.keys() == [PRODUCE]

    run(scenario)


def test_a_hint_that_is_older_than_what_is_known_is_not_followed() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as broker, ScriptedBroker() as other:
            told = Cluster(broker, other)
            hint = fetch_answer(NOT_LEADER, records=None, current_leader={"leader_id": 2, "leader_epoch": 4})
            broker.script[FETCH] = then({**hint, "node_endpoints": told.endpoints()}, fetch_answer())
            async with client(broker.address) as cluster:
                await cluster.fetch("orders", 0, 0, max_bytes=1000)
            assert broker.keys() == [METADATA, FETCH, METADATA, FETCH]
            assert other.keys() == []

    run(scenario)


def test_a_leader_that_died_is_looked_up_at_another_broker() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as first, ScriptedBroker({LIST_OFFSETS: then(list_answer())}) as second:
            told = Cluster(first, second)
            first.script[LIST_OFFSETS] = lambda _: None
            async with client(first.address, second.address) as cluster:
                asking = asyncio.create_task(cluster.list_offset("orders", 0, LATEST))
                await first.until_asked(2)
                told.leader = (2, 6)
                del told.brokers[1]
                await first.die()
                assert (await asking).offset == 9

    run(scenario)


def test_a_partition_without_a_leader_is_waited_for() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({LIST_OFFSETS: then(list_answer())}) as broker:
            told = Cluster(broker)

            def elected(request: Any) -> Facts:
                told.leader = (1, 6)
                return told.metadata(request)

            told.leader = (-1, 5)
            broker.script[METADATA] = then(told.metadata, elected)
            async with client(broker.address) as cluster:
                assert (await cluster.list_offset("orders", 0, LATEST)).offset == 9

    run(scenario)


def test_an_unknown_topic_is_named_after_its_time() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker() as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                asking = asyncio.create_task(cluster.fetch("nothing", 0, 0, max_bytes=1))
                await loop.skip_until(asking)

    with pytest.raises(UnknownTopicOrPartition, match=r"topic nothing cannot be used .*; tried in vain for 60000 ms"):
        run(scenario)


def test_an_error_that_stays_is_raised_at_once() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({FETCH: then(fetch_answer(OFFSET_OUT_OF_RANGE, records=None))}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                try:
                    await cluster.fetch("orders", 0, 99, max_bytes=1)
                finally:
                    assert broker.keys() == [METADATA, FETCH]

    with pytest.raises(OffsetOutOfRange, match=r"^orders-0 \(OFFSET_OUT_OF_RANGE\)$"):
        run(scenario)


def test_a_quota_of_the_broker_is_waited_for_however_long_it_takes() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        throttled: Facts = {"throttle_time": 90_000, "responses": []}
        async with ScriptedBroker({FETCH: then(throttled, fetch_answer())}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                begun = loop.time()
                fetching = asyncio.create_task(cluster.fetch("orders", 0, 0, max_bytes=1000))
                assert bytes((await loop.skip_until(fetching)).records) == b"records"
                assert loop.time() - begun >= 90
            assert broker.keys() == [METADATA, FETCH, FETCH]

    run(scenario)


def test_a_response_about_another_partition_is_one_error() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({FETCH: then({})}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                await cluster.fetch("orders", 0, 0, max_bytes=1)

    with pytest.raises(MalformedResponse):
        run(scenario)


def test_a_cluster_that_never_answers_is_given_up() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker({METADATA: lambda _: None}) as broker:
            limits = Limits(api_timeout_ms=5_000, request_timeout_ms=30_000)
            async with client(broker.address, limits=limits) as cluster:
                asking = asyncio.create_task(cluster.brokers())
                await broker.until_asked(1)
                loop.skip(6)
                await asking

    with pytest.raises(RequestTimedOut, match="waited in vain for 5000 ms"):
        run(scenario)


# Roles


def delete_call() -> MessageCall:
    return MessageCall(OFFSET_DELETE, range(1), group_id="group", topics=[])


GROUP = Coordinator(CoordinatorType.GROUP, "group")


@pytest.mark.parametrize("error_code", [NOT_COORDINATOR, LOADING])
def test_a_coordinator_that_moved_is_looked_up_and_asked(error_code: int) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as old, ScriptedBroker({OFFSET_DELETE: then({})}) as new:
            told = Cluster(old, new)

            def moved(_: Any) -> Facts:
                told.coordinator = 2
                return {"error_code": error_code}

            old.script[OFFSET_DELETE] = moved
            async with client(old.address) as cluster:
                assert (await cluster.request(GROUP, delete_call())).error_code == 0
                await cluster.request(GROUP, delete_call())
            assert old.keys() == [FIND_COORDINATOR, OFFSET_DELETE, FIND_COORDINATOR]
            assert new.keys() == [OFFSET_DELETE, OFFSET_DELETE]

    run(scenario)


def test_a_controller_that_moved_is_looked_up_and_asked() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as old, ScriptedBroker({OFFSET_DELETE: then({})}) as new:
            told = Cluster(old, new)

            def moved(_: Any) -> Facts:
                told.controller = 2
                return {"error_code": NOT_CONTROLLER}

            old.script[OFFSET_DELETE] = moved
            async with client(old.address) as cluster:
                await cluster.request(Controller(), delete_call())
            assert new.keys() == [OFFSET_DELETE]

    run(scenario)


@pytest.mark.parametrize("to", [AnyBroker(), Broker(1)])
def test_errors_in_a_response_are_the_callers_where_no_role_was_asked_for(to: AnyBroker | Broker) -> None:
    async def scenario(_: SkippingLoop) -> Any:
        async with ScriptedBroker({OFFSET_DELETE: then({"error_code": NOT_COORDINATOR})}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                return await cluster.request(to, delete_call())

    assert run(scenario).error_code == NOT_COORDINATOR


def test_a_request_for_a_leader_is_asked_again_where_it_leads() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as old, ScriptedBroker({LIST_OFFSETS: then(list_answer())}) as new:
            told = Cluster(old, new)

            def moved(_: Any) -> Facts:
                told.leader = (2, 6)
                return list_answer(NOT_LEADER)

            old.script[LIST_OFFSETS] = moved
            call = MessageCall(LIST_OFFSETS, range(9, 10), replica_id=-1, isolation_level=0, topics=[])
            async with client(old.address) as cluster:
                await cluster.request(Leader("orders", 0), call)
            assert new.keys() == [LIST_OFFSETS]

    run(scenario)


def test_a_coordinator_that_never_settles_is_its_own_error() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker({OFFSET_DELETE: then({"error_code": NOT_COORDINATOR})}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                asking = asyncio.create_task(cluster.request(GROUP, delete_call()))
                await loop.skip_until(asking)

    with pytest.raises(NotCoordinator, match=r"is not the one to ask .*in vain for 60000 ms"):
        run(scenario)


def test_leaving_fails_what_is_pending_and_tries_no_more() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({OFFSET_DELETE: lambda _: None}) as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                asking = asyncio.create_task(cluster.request(AnyBroker(), delete_call()))
                await broker.until_asked(1)
            with pytest.raises(NetworkError, match=f"^the connection to {broker.address} was closed$"):
                await asking
            assert broker.connections == 1

    run(scenario)


def test_leaving_while_a_connection_is_made_is_no_cancellation_of_those_who_wait() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({API_VERSIONS: lambda _: None}) as broker:
            async with client(broker.address) as cluster:
                asking = asyncio.create_task(cluster.brokers())
                await broker.until_asked(1)
            with pytest.raises(NetworkError, match=f"^the connection to {broker.address} was closed$"):
                await asking

    run(scenario)


def test_whoever_gives_up_while_a_connection_is_made_leaves_it_to_the_others() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker() as broker:
            Cluster(broker)
            async with client(broker.address) as cluster:
                hasty, patient = (asyncio.create_task(cluster.brokers()) for _ in range(2))
                await asyncio.sleep(0)
                hasty.cancel()
                assert await patient == {1: broker.address}
                assert hasty.cancelled()
            assert broker.connections == 1

    run(scenario)
