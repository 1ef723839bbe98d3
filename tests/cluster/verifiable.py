"""A producer and a consumer that remember what they were told, and the comparison of both with what is there at last.

The producer is idempotent and waits for all in-sync replicas: what it was told to be written is readable exactly once,
where it was told, in the order in which it was sent; and a consumer is never told anything else of an offset.
"""

import asyncio
import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.002

Place = tuple[int, int]
"""A partition and an offset in it."""


@dataclass(frozen=True, slots=True)
class Acked:
    place: Place
    value: bytes
    waited_seconds: float
    at_seconds: float


class VerifiableProducer:
    """Sends numbers to a topic's partitions in turn, from a thread of its own, as a context."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = 1, **configs: Any) -> None:
        self.acked: list[Acked] = []
        self.errors: list[str] = []
        self._topic = topic
        self._partitions = partitions
        self._sent = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                # By default it waits up to ten seconds before it connects again: that would be all that is measured.
                "reconnect.backoff.max.ms": 250,
                "log_level": 0,
                **{key.replace("_", "."): value for key, value in configs.items()},
            }
        )
        self._stopping = threading.Event()
        self._progress = threading.Condition()
        self._thread = threading.Thread(target=self._send, name="verifiable-producer", daemon=True)

    def __enter__(self) -> "VerifiableProducer":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Send nothing more, and wait for what was sent."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(WAIT_SECONDS)

    def await_acked(self, more: int) -> None:
        """Until so many more are acknowledged than are now."""
        with self._progress:
            wanted = len(self.acked) + more
            assert self._progress.wait_for(lambda: len(self.acked) >= wanted, WAIT_SECONDS), self.errors

    @property
    def sent(self) -> int:
        return self._sent

    def longest_wait_seconds(self, first: int = 300) -> float:
        """From sending to the acknowledgement; the ``first`` ones waited for connections and a producer id too."""
        return max(one.waited_seconds for one in self.acked[first:])

    def _send(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(_PAUSE_SECONDS)
            number = self._sent
            began = time.monotonic()
            self._producer.produce(
                self._topic,
                b"%d" % number,
                partition=number % self._partitions,
                on_delivery=partial(self._delivered, began),
            )
            self._sent += 1

    def _delivered(self, began: float, error: KafkaError | None, message: Message) -> None:
        now = time.monotonic()
        with self._progress:
            if error is None:
                place = (int(message.partition() or 0), int(message.offset() or 0))
                self.acked.append(Acked(place, message.value() or b"", now - began, now))
            else:
                self.errors.append(f"{message.value()!r}: {error}")
            self._progress.notify_all()


class VerifiableConsumer:
    """Reads a topic from its beginning, from a thread of its own, as a context: another client than the producer."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = 1) -> None:
        self.seen: dict[Place, bytes] = {}
        self.broken: list[str] = []
        """What must never be: an offset that is not above the one before."""
        self._bootstrap = bootstrap
        self._partitions = [AioTopicPartition(topic, partition) for partition in range(partitions)]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()), name="verifiable-consumer")

    def __enter__(self) -> "VerifiableConsumer":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join()

    async def _read(self) -> None:
        last: dict[int, int] = {}
        consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, auto_offset_reset="earliest", group_id=None)
        consumer.assign(self._partitions)
        await consumer.start()
        try:
            while not self._stopping.is_set():
                for key, records in (await consumer.getmany(timeout_ms=100)).items():
                    for record in records:
                        if record.offset <= last.get(key.partition, -1):
                            self.broken.append(f"{record.offset} after {last[key.partition]} of {key}")
                        last[key.partition] = record.offset
                        self.seen[key.partition, record.offset] = record.value
        finally:
            await consumer.stop()


def read_all(bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed") -> dict[Place, bytes]:
    """Everything that is in a topic now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    found: dict[Place, bytes] = {}
    ended: set[int] = set()
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"partitions {ended} of {partitions} were read"
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            partition = int(message.partition() or 0)
            if error is None:
                found[partition, int(message.offset() or 0)] = message.value() or b""
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
            else:
                assert error.retriable() or error.code() < 0, error
    finally:
        consumer.close()
    return found


def verify(producer: VerifiableProducer, found: dict[Place, bytes], consumer: VerifiableConsumer | None = None) -> None:
    """``found`` is what is there at last; raises for whatever differs from what anybody was told."""
    assert producer.errors == []
    assert len(producer.acked) == producer.sent, "some records have no answer"
    moved = {
        one.place: (one.value, found.get(one.place)) for one in producer.acked if found.get(one.place) != one.value
    }
    assert moved == {}, "acknowledged records are not where they were told to be"
    assert [value for value, times in Counter(found.values()).items() if times > 1] == [], "written twice"
    by_partition: dict[int, list[int]] = {}
    for (partition, _), value in sorted(found.items()):
        by_partition.setdefault(partition, []).append(int(value))
    assert all(numbers == sorted(numbers) for numbers in by_partition.values()), "not in the order of sending"
    if consumer is not None:
        assert consumer.broken == []
        changed = {place: value for place, value in consumer.seen.items() if found.get(place) != value}
        assert changed == {}, "a consumer was told something else"
