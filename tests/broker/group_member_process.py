"""A member of a consumer group in a process of its own, which tells on its standard output what happens to it.

``python -m tests.broker.group_member_process CLIENT '{"servers": …, "topics": …, "config": …}'``: one JSON object a
line, with the time on the clock that all processes of a machine share. On its standard input it takes ``hold`` (no
more polls), ``commit``, ``go on`` and ``stop``.
"""

import asyncio
import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

POLL_SECONDS = 0.05


def tell(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, "at_ns": time.monotonic_ns(), **facts}), flush=True)


def _told(partitions: Iterable[Any]) -> list[list[Any]]:
    return sorted([one.topic, one.partition] for one in partitions)


class Client(Protocol):
    def poll(self) -> None:
        """Take what comes, tell it and commit it."""

    def commit(self) -> None: ...

    def close(self) -> None: ...


class Librdkafka:
    def __init__(self, servers: str, topics: list[str], config: dict[str, Any]) -> None:
        from confluent_kafka import Consumer

        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
                **config,
            }
        )
        self._consumer.subscribe(
            topics,
            on_assign=lambda _, some: tell("assigned", partitions=_told(some)),
            on_revoke=lambda _, some: tell("revoked", partitions=_told(some)),
            on_lost=lambda _, some: tell("revoked", partitions=_told(some), lost=True),
        )

    def poll(self) -> None:
        from confluent_kafka import KafkaException

        records = self._consumer.consume(100, POLL_SECONDS)
        values = []
        for record in records:
            error, value = record.error(), record.value()
            if error is not None:
                tell("error", code=error.name())
            elif value is not None:
                values.append(value.decode())
        if values:
            tell("records", values=values)
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException as error:
                tell("commit_failed", code=error.args[0].name())

    def commit(self) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        mine = self._consumer.assignment()
        try:
            done = self._consumer.commit(
                offsets=[TopicPartition(one.topic, one.partition, 0) for one in mine], asynchronous=False
            )
            failed = [one.error.name() for one in done if one.error is not None]
        except KafkaException as error:
            failed = [error.args[0].name()]
        if failed:
            tell("commit_failed", code=failed[0])
        else:
            tell("committed")

    def close(self) -> None:
        self._consumer.close()


class KafkaPython:
    def __init__(self, servers: str, topics: list[str], config: dict[str, Any]) -> None:
        from kafka import ConsumerRebalanceListener, KafkaConsumer

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                tell("revoked", partitions=_told(revoked))

            def on_partitions_assigned(self, assigned: Any) -> None:
                tell("assigned", partitions=_told(assigned))

        self._consumer = KafkaConsumer(
            bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False, **config
        )
        self._consumer.subscribe(topics, listener=Listener())

    def poll(self) -> None:
        # Not POLL_SECONDS: kafka-python 3.0.12 forgets an assignment that comes just when a poll times out. It asks for
        # metadata, which makes it join again, after as long.
        found = self._consumer.poll(timeout_ms=1000)
        values = [record.value.decode() for records in found.values() for record in records]
        if values:
            tell("records", values=values)
            self._try_commit()

    def _try_commit(self) -> None:
        from kafka.errors import KafkaError

        try:
            self._consumer.commit()
        except KafkaError as error:
            tell("commit_failed", code=type(error).__name__)

    def commit(self) -> None:
        self._try_commit()

    def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    def __init__(self, servers: str, topics: list[str], config: dict[str, Any]) -> None:
        self._loop = asyncio.new_event_loop()
        self._consumer: Any = None
        self._loop.run_until_complete(self._start(servers, topics, config))

    async def _start(self, servers: str, topics: list[str], config: dict[str, Any]) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Any) -> None:
                tell("revoked", partitions=_told(revoked))

            async def on_partitions_assigned(self, assigned: Any) -> None:
                tell("assigned", partitions=_told(assigned))

        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False, **config
        )
        self._consumer.subscribe(topics, listener=Listener())
        await self._consumer.start()

    def poll(self) -> None:
        self._loop.run_until_complete(self._poll())

    async def _poll(self) -> None:
        found = await self._consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
        values = [record.value.decode() for records in found.values() for record in records]
        if values:
            tell("records", values=values)
            await self._try_commit()

    async def _try_commit(self) -> None:
        from aiokafka.errors import KafkaError

        try:
            await self._consumer.commit()
        except KafkaError as error:
            tell("commit_failed", code=type(error).__name__)

    def commit(self) -> None:
        self._loop.run_until_complete(self._try_commit())

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()


CLIENTS: dict[str, Callable[..., Client]] = {
    "librdkafka": Librdkafka,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
}


def main() -> None:
    asked = json.loads(sys.argv[2])
    client = CLIENTS[sys.argv[1]](asked["servers"], asked["topics"], asked["config"])
    commands: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            commands.put(line.strip())

    threading.Thread(target=read, daemon=True).start()
    tell("started")
    is_held = False
    while True:
        try:
            command = commands.get(block=is_held)
        except queue.Empty:
            command = ""
        if command == "stop":
            break
        if command in ("hold", "go on"):
            is_held = command == "hold"
            tell(command)
        elif command == "commit":
            client.commit()
        elif not is_held:
            client.poll()
    tell("stopping")
    client.close()


if __name__ == "__main__":
    main()
