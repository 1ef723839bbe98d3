"""The client against real brokers in processes of their own: round trips, restarts and deaths."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop
from confluent_kafka import Producer

from lamina.errors import KafkaError, MalformedResponse, NetworkError, OffsetOutOfRange, UnsupportedVersion
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.listing import EARLIEST, LATEST
from lamina.peer.target import AnyBroker, Broker, Controller, Coordinator, CoordinatorType
from lamina.records.batch import Codec
from lamina.wire.fetch_request import READ_COMMITTED
from tests.broker.process import BrokerProcess
from tests.client.servers import a_server_that_says
from tests.peer.clients import MIB, NOW_MS, batch_of, brokers_told_by, client, create, delete, values_in
from tests.peer.loops import SkippingLoop, run

Start = Callable[..., BrokerProcess]

VOTE = 52


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
def test_batches_of_every_codec_come_back_as_they_were(broker: BrokerProcess, topic: str, codec: Codec) -> None:
    batch = batch_of(b"one" * 100, b"two" * 100, codec=codec)

    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            await create(cluster, topic)
            first = await cluster.produce(topic, 0, batch)
            second = await cluster.produce(topic, 0, batch, acks=1)
            assert (first.base_offset, second.base_offset, second.log_start_offset) == (0, 2, 0)
            fetched = await cluster.fetch(topic, 0, 0, max_bytes=MIB)
            assert (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset) == (4, 4, 0)
            assert values_in(fetched.records) == [b"one" * 100, b"two" * 100] * 2
            # Offset and leader epoch are the broker's; all that the CRC covers is the producer's.
            assert fetched.records[17 : len(batch)] == batch[17:]
            assert (await cluster.list_offset(topic, 0, EARLIEST)).offset == 0
            assert (await cluster.list_offset(topic, 0, LATEST)).offset == 4
            assert (await cluster.list_offset(topic, 0, NOW_MS)).timestamp_ms == NOW_MS

    run(scenario)


def test_many_megabytes_come_in_one_response(broker: BrokerProcess, topic: str) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            await create(cluster, topic)
            batch = batch_of(*(bytes([number]) * (MIB // 4) for number in range(3)))
            await asyncio.gather(*(cluster.produce(topic, 0, batch) for _ in range(12)))
            fetched = await cluster.fetch(topic, 0, 0, max_bytes=50 * MIB)
            assert len(fetched.records) == 12 * len(batch)
            assert fetched.high_watermark == 36
            small = await cluster.fetch(topic, 0, 35, max_bytes=1)
            assert len(small.records) == len(batch), "the first batch is whole whatever its size"

    run(scenario)


def test_the_same_on_the_loop_that_brokers_run_on(broker: BrokerProcess, topic: str) -> None:
    batch = batch_of(*(bytes([number]) * (MIB // 4) for number in range(3)))

    async def scenario() -> None:
        async with client(f"127.0.0.1:1,{broker.address}") as cluster:
            await create(cluster, topic)
            await asyncio.gather(*(cluster.produce(topic, 0, batch) for _ in range(4)))
            fetched = await cluster.fetch(topic, 0, 0, max_bytes=50 * MIB)
            assert len(fetched.records) == 4 * len(batch)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


def test_a_parked_fetch_is_woken_by_a_produce(broker: BrokerProcess, topic: str) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as reader, client(broker.address) as writer:
            await create(writer, topic)
            parked = asyncio.create_task(reader.fetch(topic, 0, 0, max_bytes=MIB, max_wait_ms=60_000))
            await writer.produce(topic, 0, batch_of(b"news"))
            assert values_in((await parked).records) == [b"news"]

    run(scenario)


def test_aborted_transactions_come_with_the_records(broker: BrokerProcess, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": f"{topic}-producer"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"never", partition=0)
    producer.flush(30)
    producer.abort_transaction()

    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            committed = await cluster.fetch(topic, 0, 0, max_bytes=MIB, isolation_level=READ_COMMITTED)
            assert [one.first_offset for one in committed.aborted_transactions] == [0]
            assert committed.last_stable_offset == committed.high_watermark == 2
            assert list((await cluster.fetch(topic, 0, 0, max_bytes=MIB)).aborted_transactions) == []

    run(scenario)


def test_a_topic_made_again_is_found_by_its_new_id(broker: BrokerProcess, topic: str) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            await create(cluster, topic)
            await cluster.produce(topic, 0, batch_of(b"old"))
            await cluster.fetch(topic, 0, 0, max_bytes=MIB)
            async with client(broker.address) as other:
                await delete(other, topic)
                await create(other, topic)
                await other.produce(topic, 0, batch_of(b"new"))
            assert values_in((await cluster.fetch(topic, 0, 0, max_bytes=MIB)).records) == [b"new"]

    run(scenario)


def test_an_offset_that_is_not_there_is_kafkas_error(broker: BrokerProcess, topic: str) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            await create(cluster, topic)
            await cluster.fetch(topic, 0, 99, max_bytes=1)

    with pytest.raises(OffsetOutOfRange, match=f"^{topic}-0 "):
        run(scenario)


def test_a_batch_that_the_broker_refuses_is_kafkas_error(broker: BrokerProcess, topic: str) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            await create(cluster, topic)
            await cluster.produce(topic, 0, b"\0" * 100)

    with pytest.raises(KafkaError, match=f"^{topic}-0"):
        run(scenario)


def test_every_role_of_a_single_broker_is_found(broker: BrokerProcess) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            (broker_id,) = await cluster.brokers()
            transaction = Coordinator(CoordinatorType.TRANSACTION, "any id")
            for to in (AnyBroker(), Controller(), Broker(broker_id), transaction):
                assert await brokers_told_by(cluster, to) == [broker_id]

    run(scenario)


def test_an_api_that_the_broker_does_not_offer_is_one_sentence(broker: BrokerProcess) -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            await cluster.request(AnyBroker(), MessageCall(VOTE, range(2)))

    with pytest.raises(UnsupportedVersion, match="API key 52 is needed in version 0-1; the broker does not offer it"):
        run(scenario)


def test_dead_silent_and_foreign_addresses_in_the_bootstrap_list(broker: BrokerProcess) -> None:
    async def scenario(_: SkippingLoop) -> None:
        with a_server_that_says(b"HTTP/1.1 400 Bad Request\r\n\r\n") as http:
            async with client(f"127.0.0.1:1,nowhere.invalid:9,{http},{broker.address}") as cluster:
                assert list((await cluster.brokers()).values()) == [Address("127.0.0.1", broker.port)]

    run(scenario)


def test_a_port_that_speaks_http_is_told_at_once() -> None:
    async def scenario(_: SkippingLoop) -> None:
        with a_server_that_says(b"HTTP/1.1 400 Bad Request\r\n\r\n") as http:
            async with client(http) as cluster:
                await cluster.brokers()

    with pytest.raises(MalformedResponse, match="does not speak Kafka's protocol"):
        run(scenario)


def test_a_broker_killed_in_the_middle_of_a_fetch(own_broker: Start) -> None:
    broker = own_broker()

    async def scenario(loop: SkippingLoop) -> None:
        async with client(broker.address) as cluster:
            await create(cluster, "orders")
            await cluster.list_offset("orders", 0, LATEST)
            parked = asyncio.create_task(cluster.fetch("orders", 0, 0, max_bytes=MIB, max_wait_ms=600_000))
            await asyncio.sleep(0)
            await asyncio.to_thread(broker.kill)
            await loop.skip_until(parked)

    with pytest.raises(NetworkError, match=r"cannot be reached .*tried in vain for 60000 ms"):
        run(scenario)


def test_a_restarted_broker_is_found_again_by_what_was_pending_and_by_what_comes(own_broker: Start) -> None:
    broker = own_broker()
    broker.keep_port()

    async def scenario(_: SkippingLoop) -> None:
        async with client(broker.address) as reader, client(broker.address) as cluster:
            await create(cluster, "orders")
            await cluster.produce("orders", 0, batch_of(b"before"))
            await reader.list_offset("orders", 0, LATEST)
            parked = asyncio.create_task(reader.fetch("orders", 0, 1, max_bytes=MIB, max_wait_ms=600_000))
            await asyncio.sleep(0)
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            assert values_in((await cluster.fetch("orders", 0, 0, max_bytes=MIB)).records) == [b"before"]
            await cluster.produce("orders", 0, batch_of(b"after"))
            assert values_in((await parked).records) == [b"after"]

    run(scenario)
