"""Readers that remember what they were told: one follows a topic, one looks at its ends, one reads all of it.

Tombstones cannot be told apart: they are left out.
"""

import asyncio
import threading
import time
from contextlib import suppress
from types import TracebackType

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tests.cluster.verifiable_producer import WAIT_SECONDS, Now, monotonic_ms
from tests.history.events import Assigned, EndSeen, Partition, Read

_LOOK_SECONDS = 0.05


class VerifiableConsumer:
    """Reads a topic from its beginning, from a thread of its own, as a context: another client than the producer."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int = 1,
        name: str = "consumer",
        now_ms: Now = monotonic_ms,
        isolation: str = "read_uncommitted",
    ) -> None:
        self.name = name
        self.isolation = isolation
        self.moves: list[Assigned | Read] = [Assigned(name, (topic, one), 0) for one in range(partitions)]
        self._bootstrap = bootstrap
        self._now_ms = now_ms
        self._partitions = [AioTopicPartition(topic, partition) for partition in range(partitions)]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()), name=name)

    def __enter__(self) -> "VerifiableConsumer":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def reads(self) -> list[Read]:
        return [move for move in list(self.moves) if isinstance(move, Read)]

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="earliest",
            group_id=None,
            isolation_level=self.isolation,
        )
        consumer.assign(self._partitions)
        await consumer.start()
        try:
            while not self._stopping.is_set():
                for key, records in (await consumer.getmany(timeout_ms=100)).items():
                    at_ms = self._now_ms()
                    for record in records:
                        if record.value is None:
                            continue
                        place = key.topic, key.partition
                        self.moves.append(Read(self.name, place, record.offset, record.value.rstrip(), at_ms))
        finally:
            await consumer.stop()


class EndWatcher:
    """Asks for the ends of a topic's partitions again and again, from a thread of its own, as a context."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int = 1, name: str = "end watcher", now_ms: Now = monotonic_ms
    ) -> None:
        self.ends: list[EndSeen] = []
        self._name = name
        self._now_ms = now_ms
        self._partitions = [TopicPartition(topic, partition) for partition in range(partitions)]
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "isolation.level": "read_uncommitted",
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def __enter__(self) -> "EndWatcher":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            for one in self._partitions:
                began_ms = self._now_ms()
                with suppress(KafkaException):
                    _, end = self._consumer.get_watermark_offsets(one, 1.0)
                    place = one.topic, one.partition
                    self.ends.append(EndSeen(self._name, place, end, began_ms, self._now_ms()))


def read_all(
    bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed"
) -> dict[Partition, dict[int, bytes]]:
    """Everything that is in a topic now, by partition and offset."""
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
    found: dict[Partition, dict[int, bytes]] = {(topic, partition): {} for partition in range(partitions)}
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
            value = message.value()
            if error is None and value is not None:
                found[topic, partition][int(message.offset() or 0)] = value.rstrip()
            elif error is None:
                continue
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
            else:
                assert error.retriable() or error.code() < 0, error
    finally:
        consumer.close()
    return found
