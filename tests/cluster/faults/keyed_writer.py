"""Writers of keys, with tombstones, in transactions or not, that remember what they were told.

Owns what the latest value of each key has to be. Must not know brokers.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import Random
from types import TracebackType

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.cluster.faults.story import Story
from tests.history.events import History, Send, SendOutcome, TransactionOutcome

_BATCH = 50
_CALL_SECONDS = 60.0
_TOMBSTONES = 0.2
_ABORTED = 0.4


@dataclass(slots=True)
class Written:
    key: bytes
    value: bytes | None
    partition: int
    began_ms: float
    transaction: str | None
    offset: int | None = None
    ended_ms: float = 0.0


class KeyedWriter:
    """A batch at a time, each a transaction if it ``is_transactional``. From a thread of its own, as a context."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        keys: int,
        per_second: int,
        value_bytes: int,
        seed: int,
        story: Story,
        name: str,
        *,
        is_transactional: bool,
        partitions: int = 1,
    ) -> None:
        """A key is always written to the same of the ``partitions``."""
        self.written: list[Written] = []
        self.outcomes: dict[str, TransactionOutcome] = {}
        self.errors: list[str] = []
        self._topic = topic
        self._keys = keys
        self._partitions = partitions
        self._pause_seconds = _BATCH / per_second
        self._value_bytes = value_bytes
        self._random = Random(seed)
        self._story = story
        self._name = name
        self._is_transactional = is_transactional
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "socket.timeout.ms": 5000,
            "reconnect.backoff.max.ms": 250,
            "linger.ms": 1,
            "log_level": 0,
        }
        if is_transactional:
            settings |= {"transactional.id": name, "transaction.timeout.ms": 60_000}
        self._producer = Producer(settings)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> "KeyedWriter":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def acked_count(self) -> int:
        return sum(one.offset is not None for one in list(self.written))

    def _run(self) -> None:
        try:
            if self._is_transactional:
                self._persist(lambda: self._producer.init_transactions(_CALL_SECONDS))
            while not self._stopping.wait(self._pause_seconds):
                if self._is_transactional:
                    self._transact()
                else:
                    self._write(None)
                    self._producer.poll(0)
            self._producer.flush(_CALL_SECONDS)
        except KafkaException as error:
            self.errors.append(str(error))

    def _transact(self) -> None:
        transaction = f"{self._name}/{len(self.outcomes) + 1}"
        self.outcomes[transaction] = TransactionOutcome.UNKNOWN
        self._producer.begin_transaction()
        try:
            self._write(transaction)
            self._producer.flush(_CALL_SECONDS)
            if self._random.random() < _ABORTED:
                self._abort(transaction)
            else:
                self._persist(lambda: self._producer.commit_transaction(_CALL_SECONDS))
                self.outcomes[transaction] = TransactionOutcome.COMMITTED
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(transaction)

    def _abort(self, transaction: str) -> None:
        self._persist(lambda: self._producer.abort_transaction(_CALL_SECONDS))
        self.outcomes[transaction] = TransactionOutcome.ABORTED

    def _persist(self, step: Callable[[], None]) -> None:
        """Until it is done, or cannot be."""
        while True:
            try:
                return step()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _write(self, transaction: str | None) -> None:
        for _ in range(_BATCH):
            number = self._random.randrange(self._keys)
            key, partition = b"key-%d" % number, number % self._partitions
            value = None if self._random.random() < _TOMBSTONES else b"%s %d" % (self._name.encode(), len(self.written))
            record = Written(key, value, partition, self._story.now_ms(), transaction)
            self.written.append(record)
            padded = None if value is None else value.ljust(self._value_bytes)
            self._producer.produce(
                self._topic, padded, key=key, partition=partition, on_delivery=partial(self._delivered, record)
            )

    def _delivered(self, record: Written, error: KafkaError | None, message: Message) -> None:
        record.ended_ms = self._story.now_ms()
        if error is None:
            offset = message.offset()
            record.offset = offset if offset is not None and offset >= 0 else None
        elif record.transaction is None:
            self.errors.append(f"{record.value!r}: {error}")

    def is_committed(self, record: Written) -> bool:
        return record.transaction is None or self.outcomes[record.transaction] is TransactionOutcome.COMMITTED

    def add_to(self, history: History) -> None:
        """Tombstones cannot be told apart: they are left out."""
        history.transactions |= self.outcomes
        for one in self.written:
            if one.value is not None:
                outcome = SendOutcome.UNKNOWN if one.offset is None else SendOutcome.ACKED
                place = self._topic, one.partition
                history.sends.append(
                    Send(self._name, place, one.value, outcome, one.offset, one.began_ms, one.ended_ms, one.transaction)
                )


def latest_values(writers: Iterable[KeyedWriter]) -> dict[bytes, bytes]:
    """Of each key that has one: what was committed at the highest offset."""
    latest: dict[bytes, Written] = {}
    for writer in writers:
        for one in writer.written:
            if writer.is_committed(one):
                assert one.offset is not None, f"nobody was told where {one.value!r} is"
                if one.key not in latest or (latest[one.key].offset or 0) < one.offset:
                    latest[one.key] = one
    return {key: one.value for key, one in latest.items() if one.value is not None}
