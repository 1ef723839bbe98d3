"""A program that copies one topic to another, each record exactly once, whatever happens to the brokers and to itself.

It consumes as a member of a group and commits its offsets in the transactions in which it produces. A transaction that
has to be aborted is read and written again. Each written value says in which transaction it was written. Tells what it
does, event by event; ``python -m tests.cluster.copying BOOTSTRAP SOURCE TARGET NAME`` prints them as lines of JSON.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from lamina.clocks import pause
from tests.cluster.verifiable_producer import monotonic_ms

HANGING = "HANGING"
"""How a copy fails whose client does not return from a call, long after the time it was given."""
SEPARATOR = b" in "
"""Between what is copied and the name of a transaction."""

_CALL_SECONDS = 10.0
_HANGING_SECONDS = 30.0

Tell = Callable[..., None]
"""Given the name of an event and what belongs to it."""


class Copying:
    def __init__(self, bootstrap: str, source: str, target: str, name: str, tell: Tell, a_transaction: int) -> None:
        """Copies of a source share a group and a transactional id: the newest fences those before it."""
        self._target = target
        self._name = name
        self._tell = tell
        self._a_transaction = a_transaction
        self._transactions = 0
        self.active_ms = monotonic_ms()
        """When it last came back from its client."""
        self._source = source
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{source}-copy",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 1000,
                "log_level": 0,
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"{source}-copy",
                "transaction.timeout.ms": 30_000,
                "socket.timeout.ms": 5000,
                "reconnect.backoff.max.ms": 250,
                "linger.ms": 1,
                "log_level": 0,
            }
        )

    def run(self, stopping: threading.Event) -> None:
        """Raises KafkaException where it cannot go on: fenced, for one."""
        try:
            self._consumer.subscribe([self._source], on_assign=self._assigned)
            self._persist(lambda: self._producer.init_transactions(_CALL_SECONDS))
            self._tell("started")
            while not stopping.is_set():
                self.active_ms = monotonic_ms()
                messages = [one for one in self._consumer.consume(self._a_transaction, 0.2) if one.error() is None]
                if messages:
                    self._copy(messages)
        finally:
            self._consumer.close()

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._tell("assigned", [one.partition for one in partitions])

    def _copy(self, messages: list[Message]) -> None:
        self._transactions += 1
        transaction = f"{self._name}/{self._transactions}"
        self._producer.begin_transaction()
        try:
            for message in messages:
                self._write(message, transaction)
            self._persist(
                lambda: self._producer.send_offsets_to_transaction(
                    self._consumer.position(self._consumer.assignment()),
                    self._consumer.consumer_group_metadata(),
                    _CALL_SECONDS,
                )
            )
            self._persist(lambda: self._producer.commit_transaction(_CALL_SECONDS))
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._persist(lambda: self._producer.abort_transaction(_CALL_SECONDS))
            self._tell("ended", transaction, "aborted", 0, str(error))
            self._rewind()
            return
        self._tell("ended", transaction, "committed", len(messages), "")

    def _write(self, message: Message, transaction: str) -> None:
        partition, read = int(message.partition() or 0), (message.value() or b"").rstrip()
        value = read + SEPARATOR + transaction.encode()
        began_ms = monotonic_ms()
        self._tell("read", transaction, partition, int(message.offset() or 0), read.decode(), began_ms)
        self._tell("sent", transaction, partition, value.decode(), began_ms)
        delivered = partial(self._delivered, partition, value)
        self._producer.produce(self._target, value, partition=partition, on_delivery=delivered)
        self._producer.poll(0)

    def _delivered(self, partition: int, value: bytes, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._tell("acked", partition, value.decode(), int(message.offset() or 0), monotonic_ms())

    def _persist(self, step: Callable[[], None]) -> None:
        """Until it is done, or cannot be."""
        while True:
            self.active_ms = monotonic_ms()
            try:
                return step()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _rewind(self) -> None:
        """To what is committed."""
        assigned = self._consumer.assignment()
        self._tell("assigned", [one.partition for one in assigned])
        for position in self._committed(assigned):
            if position.offset < 0:
                position.offset = 0
            self._consumer.seek(position)

    def _committed(self, assigned: list[TopicPartition]) -> list[TopicPartition]:
        while True:
            try:
                return self._consumer.committed(assigned, _CALL_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise


def end_if_hanging(copying: Copying, tell: Tell) -> None:
    """librdkafka 2.16 may wait for ever for a coordinator that has left the cluster (its issues 5456 and 5511)."""
    while monotonic_ms() - copying.active_ms < _HANGING_SECONDS * 1000:
        pause(1)
    tell("failed", HANGING, False)
    os._exit(1)


def main(bootstrap: str, source: str, target: str, name: str, a_transaction: str) -> int:
    """Until it is killed, or its standard input is closed."""
    stopping = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        stopping.set()

    def tell(event: str, *facts: Any) -> None:
        print(json.dumps([event, *facts]), flush=True)

    copying = Copying(bootstrap, source, target, name, tell, int(a_transaction))
    threading.Thread(target=wait_for_the_end, daemon=True).start()
    threading.Thread(target=end_if_hanging, args=[copying, tell], daemon=True).start()
    try:
        copying.run(stopping)
    except KafkaException as error:
        tell("failed", error.args[0].name(), bool(error.args[0].fatal()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
