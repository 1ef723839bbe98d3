"""A program that copies one topic to another, each record exactly once, whatever happens to the brokers.

It consumes as a member of a group and commits its offsets in the transactions in which it produces. A transaction that
has to be aborted is read and written again.
"""

import threading
from collections.abc import Callable
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Message, Producer

from tests.cluster.verifiable_producer import WAIT_SECONDS

_A_TRANSACTION = 50


class ExactlyOnceCopy:
    """From a thread of its own, as a context."""

    def __init__(self, bootstrap: str, source: str, target: str) -> None:
        self.copied = 0
        """Committed."""
        self.failure: BaseException | None = None
        self._source = source
        self._target = target
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{source}-copy",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"{source}-copy", "linger.ms": 1, "log_level": 0}
        )
        self._stopping = threading.Event()
        self._progress = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="exactly-once-copy", daemon=True)

    def __enter__(self) -> "ExactlyOnceCopy":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def await_copied(self, records: int) -> None:
        with self._progress:
            assert self._progress.wait_for(lambda: self.copied >= records or self.failure, WAIT_SECONDS), self.copied
        assert self.failure is None, self.failure

    def _run(self) -> None:
        try:
            self._consumer.subscribe([self._source])
            self._producer.init_transactions(WAIT_SECONDS)
            while not self._stopping.is_set():
                messages = [one for one in self._consumer.consume(_A_TRANSACTION, 0.2) if one.error() is None]
                if messages:
                    self._copy(messages)
        except BaseException as failure:
            self.failure = failure
            with self._progress:
                self._progress.notify_all()

    def _copy(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        try:
            for message in messages:
                self._producer.produce(self._target, message.value(), partition=int(message.partition() or 0))
            self._persist(
                lambda: self._producer.send_offsets_to_transaction(
                    self._consumer.position(self._consumer.assignment()),
                    self._consumer.consumer_group_metadata(),
                    WAIT_SECONDS,
                )
            )
            self._persist(lambda: self._producer.commit_transaction(WAIT_SECONDS))
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._persist(lambda: self._producer.abort_transaction(WAIT_SECONDS))
            self._rewind()
            return
        with self._progress:
            self.copied += len(messages)
            self._progress.notify_all()

    def _persist(self, step: Callable[[], None]) -> None:
        """Until it is done, or cannot be."""
        while True:
            try:
                return step()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _rewind(self) -> None:
        """To what is committed."""
        for position in self._consumer.committed(self._consumer.assignment(), WAIT_SECONDS):
            if position.offset < 0:
                position.offset = 0
            self._consumer.seek(position)
