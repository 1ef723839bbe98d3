"""The three clients that Python people use, against a real broker: what they send is what they get."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as RdTopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PyTopicPartition
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from tests.broker.process import BrokerProcess

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SIZES = (0, 1, 100, 70_000, 1_000_000)
WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Sent:
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes], ...] = ()


class Client(Protocol):
    """What a client must do here: write records to partition 0, read them all back, look a time up."""

    def write(self, topic: str, records: Sequence[Sent], codec: str) -> None: ...

    def read(self, topic: str, count: int) -> list[Sent]: ...

    def offset_at(self, topic: str, timestamp_ms: int) -> int: ...


class Confluent:
    def __init__(self, address: str) -> None:
        self._address = address

    def write(self, topic: str, records: Sequence[Sent], codec: str) -> None:
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        producer = Producer(
            {"bootstrap.servers": self._address, "compression.type": codec, "message.max.bytes": 2_000_000}
        )
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=0,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=delivered,
            )
        assert producer.flush(WAIT_SECONDS) == 0
        assert not failed

    def read(self, topic: str, count: int) -> list[Sent]:
        consumer = self._consumer()
        consumer.assign([RdTopicPartition(topic, 0, OFFSET_BEGINNING)])
        read: list[Sent] = []
        try:
            while len(read) < count:
                message = consumer.poll(WAIT_SECONDS)
                assert message is not None
                assert message.error() is None
                headers: Any = tuple(message.headers() or ())
                read.append(Sent(message.key(), message.value(), message.timestamp()[1], headers))
        finally:
            consumer.close()
        return read

    def offset_at(self, topic: str, timestamp_ms: int) -> int:
        consumer = self._consumer()
        try:
            (found,) = consumer.offsets_for_times([RdTopicPartition(topic, 0, timestamp_ms)], timeout=WAIT_SECONDS)
        finally:
            consumer.close()
        return int(found.offset)

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": "unused",
                "enable.auto.commit": False,
                "check.crcs": True,
                "message.max.bytes": 2_000_000,
            }
        )


class KafkaPython:
    def __init__(self, address: str) -> None:
        self._address = address

    def write(self, topic: str, records: Sequence[Sent], codec: str) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self._address,
            compression_type=None if codec == "none" else codec,
            max_request_size=2_000_000,
            enable_idempotence=False,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    partition=0,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            for future in sent:
                future.get(WAIT_SECONDS)
        finally:
            producer.close()

    def read(self, topic: str, count: int) -> list[Sent]:
        consumer = self._consumer()
        partition = PyTopicPartition(topic, 0)
        read: list[Sent] = []
        try:
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            deadline = time.monotonic() + WAIT_SECONDS
            while len(read) < count:
                assert time.monotonic() < deadline
                for messages in consumer.poll(1000).values():
                    read += [Sent(one.key, one.value, one.timestamp, tuple(one.headers)) for one in messages]
        finally:
            consumer.close()
        return read

    def offset_at(self, topic: str, timestamp_ms: int) -> int:
        consumer = self._consumer()
        partition = PyTopicPartition(topic, 0)
        try:
            return int(consumer.offsets_for_times({partition: timestamp_ms})[partition].offset)
        finally:
            consumer.close()

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(bootstrap_servers=self._address, max_partition_fetch_bytes=2_000_000)


class AioKafka:
    def __init__(self, address: str) -> None:
        self._address = address

    def write(self, topic: str, records: Sequence[Sent], codec: str) -> None:
        async def write() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._address,
                compression_type=None if codec == "none" else codec,
                max_request_size=2_000_000,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        record.value,
                        record.key,
                        partition=0,
                        timestamp_ms=record.timestamp_ms,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                for future in sent:
                    await asyncio.wait_for(future, WAIT_SECONDS)
            finally:
                await producer.stop()

        asyncio.run(write())

    def read(self, topic: str, count: int) -> list[Sent]:
        async def read() -> list[Sent]:
            consumer = AIOKafkaConsumer(bootstrap_servers=self._address, max_partition_fetch_bytes=2_000_000)
            partition = AioTopicPartition(topic, 0)
            await consumer.start()
            try:
                consumer.assign([partition])
                await consumer.seek_to_beginning(partition)
                messages = [await asyncio.wait_for(consumer.getone(), WAIT_SECONDS) for _ in range(count)]
            finally:
                await consumer.stop()
            return [Sent(one.key, one.value, one.timestamp, tuple(one.headers)) for one in messages]

        return asyncio.run(read())

    def offset_at(self, topic: str, timestamp_ms: int) -> int:
        async def look_up() -> int:
            consumer = AIOKafkaConsumer(bootstrap_servers=self._address)
            partition = AioTopicPartition(topic, 0)
            await consumer.start()
            try:
                consumer.assign([partition])
                found = await consumer.offsets_for_times({partition: timestamp_ms})
            finally:
                await consumer.stop()
            return int(found[partition].offset)

        return asyncio.run(look_up())


CLIENTS: tuple[Callable[[str], Client], ...] = (Confluent, KafkaPython, AioKafka)


@pytest.fixture(params=CLIENTS, ids=("confluent-kafka", "kafka-python", "aiokafka"))
def client(request: pytest.FixtureRequest, broker: BrokerProcess) -> Client:
    made: Client = request.param(broker.address)
    return made


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_and_size_comes_back_as_it_was(client: Client, topic: str, codec: str) -> None:
    first_ms = now_ms()
    records = [
        Sent(None if size == 1 else f"key-{size}".encode(), (b"0123456789abcdef" * 62_500)[:size], first_ms + number)
        for number, size in enumerate(SIZES)
    ]
    client.write(topic, records, codec)
    assert client.read(topic, len(records)) == records


def test_headers_and_nulls(client: Client, topic: str) -> None:
    at = now_ms()
    records = [
        Sent(b"k", b"v", at, (("one", b"1"), ("one", b"again"), ("empty", b""))),
        Sent(b"tombstone", None, at),
        Sent(None, b"no key", at),
        Sent(b"", b"", at),
    ]
    client.write(topic, records, "none")
    assert client.read(topic, len(records)) == records


def test_times_are_looked_up(client: Client, topic: str) -> None:
    first_ms = now_ms() - 60_000
    client.write(topic, [Sent(None, b"v", first_ms + 1000 * number) for number in range(20)], "none")
    assert client.offset_at(topic, first_ms) == 0
    assert client.offset_at(topic, first_ms + 6_001) == 7


@pytest.mark.parametrize("codec", CODECS)
def test_what_one_client_writes_the_others_read(broker: BrokerProcess, topic: str, codec: str) -> None:
    at = now_ms()
    records: list[Sent] = []
    for number, kind in enumerate(CLIENTS):
        mine = [Sent(f"{number}-{one}".encode(), b"value " * 50, at + one) for one in range(20)]
        kind(broker.address).write(topic, mine, codec)
        records += mine
    for kind in CLIENTS:
        assert kind(broker.address).read(topic, len(records)) == records


def test_kafka_python_takes_the_broker_for_the_newest_release_that_it_knows(broker: BrokerProcess) -> None:
    with closing(KafkaConsumer(bootstrap_servers=broker.address)) as consumer:
        assert consumer.config["api_version"] == max(BROKER_API_VERSIONS)
