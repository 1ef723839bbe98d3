"""Transactional producers of the clients that Python people use, against a real broker, through kills of it."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
)
from confluent_kafka import TopicPartition as RdTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer
from kafka import TopicPartition as PyTopicPartition
from kafka.consumer.group import ConsumerGroupMetadata
from kafka.structs import OffsetAndMetadata as PyOffset

from tests.broker.process import BrokerProcess, eventually

pytestmark = pytest.mark.timeout(600)

WAIT_SECONDS = 60.0
RECORDS, A_TRANSACTION, KILLS = 30_000, 300, 3
STALL_SECONDS = 15.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    quick = ("--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=50")
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data", *quick) as process:
        yield process
    assert "Traceback" not in "\n".join(process.log)


def make_topic(broker: BrokerProcess, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(WAIT_SECONDS)


@contextmanager
def reader(broker: BrokerProcess, topic: str) -> Iterator[Consumer]:
    """Of committed records, from the beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([RdTopicPartition(topic, 0, OFFSET_BEGINNING)])
    try:
        yield consumer
    finally:
        consumer.close()


def read_to_the_end(broker: BrokerProcess, topic: str) -> list[bytes]:
    seen: list[bytes] = []
    with reader(broker, topic) as consumer:
        while True:
            message = consumer.poll(WAIT_SECONDS)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.name() == "_PARTITION_EOF", error
                return seen
            seen.append(message.value() or b"")


def committed_offset(broker: BrokerProcess, group: str, topic: str, *, stable: bool = True) -> int | str:
    """The offset, or the name of the error."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    of = [ConsumerGroupTopicPartitions(group, [RdTopicPartition(topic, 0)])]
    found = admin.list_consumer_group_offsets(of, require_stable=stable, request_timeout=10)[group]
    try:
        partitions: Any = found.result(WAIT_SECONDS).topic_partitions
    except KafkaException as refused:
        return str(refused.args[0].name())
    error = partitions[0].error
    return int(partitions[0].offset) if error is None else str(error.name())


class Client(Protocol):
    """A producer that was initialized."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: bytes) -> None: ...

    def commit_offset(self, group: str, topic: str, offset: int) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Confluent:
    def __init__(self, address: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.producer = Producer(
            {
                "bootstrap.servers": address,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "retry.backoff.ms": 50,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self.producer.init_transactions(WAIT_SECONDS)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        self.producer.produce(topic, value, partition=0)

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group})
        try:
            where = [RdTopicPartition(topic, 0, offset)]
            self.producer.send_offsets_to_transaction(where, consumer.consumer_group_metadata(), WAIT_SECONDS)
        finally:
            consumer.close()

    def commit(self) -> None:
        self.producer.commit_transaction(WAIT_SECONDS)

    def abort(self) -> None:
        # Else librdkafka may abort before the coordinator knows that it has begun (its issue 4849).
        assert self.producer.flush(WAIT_SECONDS) == 0
        self.producer.abort_transaction(WAIT_SECONDS)

    def close(self) -> None:
        self.producer.flush(1)


class KafkaPython:
    def __init__(self, address: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.producer = KafkaProducer(
            bootstrap_servers=address, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        self.producer.init_transactions()

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        self.producer.send(topic, value, partition=0)

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        offsets = {PyTopicPartition(topic, 0): PyOffset(offset, "", -1)}
        self.producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(group, -1, "", None))

    def commit(self) -> None:
        self.producer.commit_transaction()

    def abort(self) -> None:
        self.producer.abort_transaction()

    def close(self) -> None:
        self.producer.close(timeout=10)


class Aiokafka:
    def __init__(self, address: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._loop = asyncio.new_event_loop()

        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=address, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
            )
            await producer.start()
            return producer

        self.producer = self._loop.run_until_complete(start())

    def begin(self) -> None:
        self._loop.run_until_complete(self.producer.begin_transaction())

    def send(self, topic: str, value: bytes) -> None:
        self._loop.run_until_complete(self.producer.send(topic, value, partition=0))

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        offsets = {AioTopicPartition(topic, 0): offset}
        self._loop.run_until_complete(self.producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._loop.run_until_complete(self.producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run_until_complete(self.producer.abort_transaction())

    def close(self) -> None:
        self._loop.run_until_complete(self.producer.stop())
        self._loop.close()


CLIENTS: list[Callable[..., Client]] = [Confluent, KafkaPython, Aiokafka]
each_client = pytest.mark.parametrize("client", CLIENTS)


@each_client
def test_what_was_committed_is_read_and_nothing_else(broker: BrokerProcess, client: Callable[..., Client]) -> None:
    topic = f"all-{client.__name__}"
    make_topic(broker, topic)
    producer = client(broker.address, topic)
    for number in range(6):
        producer.begin()
        for part in range(3):
            producer.send(topic, f"{number}.{part}".encode())
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    producer.close()
    assert read_to_the_end(broker, topic) == [f"{n}.{part}".encode() for n in (0, 2, 4) for part in range(3)]


@each_client
def test_offsets_are_there_after_the_commit_and_never_after_an_abort(
    broker: BrokerProcess, client: Callable[..., Client]
) -> None:
    topic = group = f"offsets-{client.__name__}"
    make_topic(broker, topic)
    producer = client(broker.address, topic)
    producer.begin()
    producer.commit_offset(group, topic, 5)
    assert committed_offset(broker, group, topic) == "UNSTABLE_OFFSET_COMMIT"
    assert committed_offset(broker, group, topic, stable=False) == -1001
    producer.commit()
    eventually(lambda: committed_offset(broker, group, topic) == 5)
    producer.begin()
    producer.commit_offset(group, topic, 9)
    producer.abort()
    eventually(lambda: committed_offset(broker, group, topic) == 5)
    producer.close()


@each_client
def test_a_zombie_is_fenced(broker: BrokerProcess, client: Callable[..., Client]) -> None:
    topic = f"zombie-{client.__name__}"
    make_topic(broker, topic)
    zombie = client(broker.address, topic)
    zombie.begin()
    zombie.send(topic, b"from the dead")
    heir = client(broker.address, topic)
    heir.begin()
    heir.send(topic, b"alive")
    heir.commit()
    with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
        zombie.commit()
    assert read_to_the_end(broker, topic) == [b"alive"]
    heir.close()
    # Some clients tell once more that they were fenced; all of them let go of their connections.
    with suppress(Exception):
        zombie.close()


def test_a_transaction_that_runs_out_is_aborted_and_its_producer_told(broker: BrokerProcess) -> None:
    make_topic(broker, "late")
    producer = Confluent(broker.address, "late", timeout_ms=1000)
    producer.begin()
    producer.send("late", b"too late")
    producer.producer.flush(WAIT_SECONDS)
    make_topic(broker, "after")
    with reader(broker, "late") as consumer:
        # The end comes when the last stable offset passes the transaction.
        eventually(
            lambda: consumer.get_watermark_offsets(RdTopicPartition("late", 0), 10)[1] == 2, seconds=WAIT_SECONDS
        )
    with pytest.raises(KafkaException):
        producer.commit()
    assert read_to_the_end(broker, "late") == []


class Copier:
    """Reads ``source``, writes ``target``, commits both in transactions, and starts anew when it has to."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._address = broker.address
        self.copied = 0
        self.is_retired = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self._is_over:
            consumer = Consumer(
                {
                    "bootstrap.servers": self._address,
                    "group.id": "copiers",
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "reconnect.backoff.max.ms": 500,
                }
            )
            consumer.assign([RdTopicPartition("source", 0)])
            try:
                producer = Confluent(self._address, "copier").producer
                while not self._is_over:
                    self._copy(consumer, producer)
            except KafkaException:
                # Fatal, or nobody knows how the commit went: what was committed is told by the group's offset.
                continue
            finally:
                consumer.close()

    @property
    def _is_over(self) -> bool:
        return self.is_retired or self.copied >= RECORDS

    def _copy(self, consumer: Consumer, producer: Producer) -> None:
        messages: list[Any] = []
        while len(messages) < A_TRANSACTION:
            messages += consumer.consume(A_TRANSACTION - len(messages), 1.0)
            messages = [message for message in messages if message.error() is None]
            if self._is_over:
                return
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce("target", message.value(), partition=0)
            where = [RdTopicPartition("source", 0, messages[-1].offset() + 1)]
            _again(lambda: producer.send_offsets_to_transaction(where, consumer.consumer_group_metadata(), 10))
            _again(lambda: producer.commit_transaction(10))
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            _again(lambda: producer.abort_transaction(10))
            consumer.seek(RdTopicPartition("source", 0, messages[0].offset()))
            return
        self.copied = messages[-1].offset() + 1


class Copying:
    """A copier, and another one where it stands still: librdkafka may wait for ever after its broker was killed.

    The one that is replaced is a zombie: should it wake, it is fenced.
    """

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._copier = Copier(broker)
        self._moved_at = time.monotonic()
        self._copied = 0

    def has_copied(self, count: float) -> bool:
        copier, now = self._copier, time.monotonic()
        if copier.copied > self._copied:
            self._copied, self._moved_at = copier.copied, now
        elif now - self._moved_at > STALL_SECONDS:
            copier.is_retired = True
            self._copier, self._moved_at = Copier(self._broker), now
        return self._copied >= count

    def stop(self) -> None:
        self._copier.is_retired = True


def _again(ask: Callable[[], object]) -> None:
    while True:
        try:
            ask()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


@pytest.mark.long
def test_thirty_thousand_records_are_copied_once_and_in_order_through_three_kills(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        broker.keep_port()
        for topic in ("source", "target"):
            make_topic(broker, topic)
        wanted = [b"%d" % number for number in range(RECORDS)]
        writer = Producer({"bootstrap.servers": broker.address, "queue.buffering.max.messages": RECORDS})
        for value in wanted:
            writer.produce("source", value, partition=0)
        assert writer.flush(WAIT_SECONDS) == 0
        copying = Copying(broker)
        seen: list[bytes] = []
        is_over = threading.Event()

        def watch() -> None:
            with reader(broker, "target") as consumer:
                while len(seen) < RECORDS and not is_over.is_set():
                    messages = consumer.consume(1000, 0.2)
                    seen.extend(message.value() or b"" for message in messages if message.error() is None)

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            for kill in range(1, KILLS + 1):
                eventually(lambda part=kill: copying.has_copied(part * RECORDS / (KILLS + 1)), seconds=180)  # type: ignore[misc]
                broker.kill()
                broker.start()
            eventually(lambda: copying.has_copied(RECORDS), seconds=180)
            eventually(lambda: len(seen) >= RECORDS, seconds=WAIT_SECONDS)
        finally:
            copying.stop()
            is_over.set()
            watching.join(60)
        assert seen == wanted
        assert read_to_the_end(broker, "target") == wanted
        assert "Traceback" not in "\n".join(broker.log)
