"""The peer room against a real Kafka: versions that Kafka offers, raw batches there and back, roles, a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from lamina.errors import OffsetOutOfRange
from lamina.peer.listing import EARLIEST, LATEST
from lamina.peer.target import AnyBroker, Controller, Coordinator, CoordinatorType
from lamina.records.batch import Codec
from lamina.wire.fetch_request import READ_COMMITTED
from tests.peer.clients import MIB, NOW_MS, batch_of, brokers_told_by, client, create, delete, values_in
from tests.peer.loops import SkippingLoop, run
from tests.peers.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with Kafka(tmp_path_factory.mktemp("kafka")) as node:
        yield node


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
def test_batches_of_every_codec_come_back_as_they_were(kafka: Kafka, codec: Codec) -> None:
    batch = batch_of(b"one" * 100, b"two" * 100, codec=codec)
    topic = f"codec-{codec.name.lower()}"

    async def scenario(_: SkippingLoop) -> None:
        async with client(kafka.bootstrap) as cluster:
            await create(cluster, topic)
            assert (await cluster.produce(topic, 0, batch)).base_offset == 0
            assert (await cluster.produce(topic, 0, batch, acks=1)).base_offset == 2
            fetched = await cluster.fetch(topic, 0, 0, max_bytes=MIB)
            assert (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset) == (4, 4, 0)
            assert values_in(fetched.records) == [b"one" * 100, b"two" * 100] * 2
            assert fetched.records[17 : len(batch)] == batch[17:]
            assert (await cluster.list_offset(topic, 0, EARLIEST)).offset == 0
            assert (await cluster.list_offset(topic, 0, LATEST)).offset == 4
            assert (await cluster.list_offset(topic, 0, NOW_MS)).timestamp_ms == NOW_MS
            with pytest.raises(OffsetOutOfRange):
                await cluster.fetch(topic, 0, 99, max_bytes=1)

    run(scenario)


def test_aborted_transactions_and_roles(kafka: Kafka) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "aborts"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("aborted", b"never", partition=0)
    producer.flush(30)
    producer.abort_transaction()

    async def scenario(_: SkippingLoop) -> None:
        async with client(kafka.bootstrap) as cluster:
            committed = await cluster.fetch("aborted", 0, 0, max_bytes=MIB, isolation_level=READ_COMMITTED)
            assert [one.first_offset for one in committed.aborted_transactions] == [0]
            for to in (AnyBroker(), Controller(), Coordinator(CoordinatorType.TRANSACTION, "aborts")):
                assert await brokers_told_by(cluster, to) == [1]

    run(scenario)


def test_a_topic_made_again_and_a_broker_started_again(tmp_path: Path) -> None:
    async def scenario(_: SkippingLoop) -> None:
        with Kafka(tmp_path) as kafka:
            async with client(kafka.bootstrap) as cluster:
                await create(cluster, "again")
                await cluster.produce("again", 0, batch_of(b"old"))
                async with client(kafka.bootstrap) as other:
                    await delete(other, "again")
                    await create(other, "again")
                    await other.produce("again", 0, batch_of(b"new"))
                assert values_in((await cluster.fetch("again", 0, 0, max_bytes=MIB)).records) == [b"new"]
                await asyncio.to_thread(kafka.kill)
                await asyncio.to_thread(kafka.start)
                assert values_in((await cluster.fetch("again", 0, 0, max_bytes=MIB)).records) == [b"new"]

    run(scenario)
