"""A producer that remembers what it sent and what it was told.

It is idempotent and waits for all in-sync replicas, unless it is configured otherwise.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tests.history.events import Send, SendOutcome

WAIT_SECONDS = 60.0
PER_SECOND = 500
_PAUSE_SECONDS = 0.002
_REFUSED = frozenset({KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.POLICY_VIOLATION})
"""Nothing is written."""

Now = Callable[[], float]


def monotonic_ms() -> float:
    return time.monotonic() * 1000


class VerifiableProducer:
    """Sends numbers to a topic's partitions in turn, from a thread of its own, as a context."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int = 1,
        name: str = "producer",
        now_ms: Now = monotonic_ms,
        per_second: int = PER_SECOND,
        value_bytes: int = 0,
        patience_seconds: float | None = None,
        **configs: Any,
    ) -> None:
        """``patience_seconds``: while a record has waited so long for its answer no other one is sent.

        ``was_held_back`` says whether that was so: then brokers are slower than ``per_second``, and waits say little of
        them. librdkafka sends one partition's records in a request, and does not ask which have waited longest: of many
        partitions that are behind one would be passed over for minutes.
        """
        self.errors: list[str] = []
        self.name = name
        self.sends: list[Send] = []
        """In the order of sending; without an answer until there is one."""
        self._topic = topic
        self._partitions = partitions
        self._now_ms = now_ms
        self._per_second = per_second
        self._value_bytes = value_bytes
        """At least: blanks follow the number. Who reads leaves them out."""
        self._patience_seconds = patience_seconds
        self.was_held_back = False
        self._oldest = 0
        """Everything that was sent before this one is answered."""
        self._acked = 0
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
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> "VerifiableProducer":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.stop()
        else:
            self._stopping.set()
            self._thread.join()

    def stop(self) -> None:
        """Send nothing more, and wait for what was sent."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(WAIT_SECONDS)

    def await_acked(self, more: int, seconds: float = WAIT_SECONDS) -> None:
        """Until so many more are acknowledged than are now."""
        with self._progress:
            wanted = self._acked + more
            assert self._progress.wait_for(lambda: self._acked >= wanted, seconds), (
                f"{wanted - self._acked} of {more} records were not acknowledged within {seconds:g} s: {self.errors}"
            )

    def await_acked_in_all(self, wanted: int, seconds: float = WAIT_SECONDS) -> None:
        """Until so many are acknowledged since the start."""
        self.await_acked(max(wanted - self.acked_count, 0), seconds)

    @property
    def sent(self) -> int:
        return len(self.sends)

    @property
    def acked_count(self) -> int:
        return self._acked

    @property
    def acked(self) -> list[Send]:
        return [send for send in list(self.sends) if send.outcome is SendOutcome.ACKED]

    def longest_wait_seconds(self, first: int = 300) -> float:
        """The ``first`` ones waited for connections and a producer id too."""
        return max(self.waits_seconds(first))

    def waits_seconds(self, first: int = 300) -> list[float]:
        """From sending to the acknowledgement, in the order of sending; without the ``first`` ones."""
        return [(one.ended_ms - one.began_ms) / 1000 for one in self.acked[first:]]

    def resumed_ms(self, partition: int, since_ms: float) -> float | None:
        """When a record of a partition was acknowledged that was sent after a moment."""
        for send in list(self.sends):
            if send.partition[1] == partition and send.began_ms >= since_ms and send.outcome is SendOutcome.ACKED:
                return send.ended_ms
        return None

    def _run(self) -> None:
        began_ms = self._now_ms()
        while not self._stopping.is_set():
            self._producer.poll(_PAUSE_SECONDS)
            due = int((self._now_ms() - began_ms) * self._per_second / 1000)
            # What a busy machine made late is not caught up with all at once.
            for _ in range(min(due - len(self.sends), self._per_second // 10)):
                if self._is_behind():
                    self.was_held_back = True
                    break
                self._send()
            self._producer.poll(0)

    def _is_behind(self) -> bool:
        if self._patience_seconds is None:
            return False
        while self._oldest < len(self.sends) and self.sends[self._oldest].ended_ms:
            self._oldest += 1
        waited_ms = self._now_ms() - self.sends[self._oldest].began_ms if self._oldest < len(self.sends) else 0.0
        return waited_ms > 1000 * self._patience_seconds

    def _send(self) -> None:
        number = len(self.sends)
        key = self._topic, number % self._partitions
        value = b"%d" % number
        self.sends.append(Send(self.name, key, value, SendOutcome.UNKNOWN, None, self._now_ms()))
        delivered = partial(self._delivered, number)
        padded = value.ljust(self._value_bytes)
        self._producer.produce(self._topic, padded, partition=key[1], on_delivery=delivered)

    def _delivered(self, number: int, error: KafkaError | None, message: Message) -> None:
        sent, outcome, offset = self.sends[number], SendOutcome.ACKED, message.offset()
        if error is not None:
            outcome = SendOutcome.FAILED if error.code() in _REFUSED else SendOutcome.UNKNOWN
        # It is not told where a record is that was written by an earlier try whose answer was lost.
        told = offset if error is None and offset is not None and offset >= 0 else None
        with self._progress:
            self.sends[number] = Send(
                sent.producer, sent.partition, sent.value, outcome, told, sent.began_ms, self._now_ms()
            )
            if error is None:
                self._acked += 1
            else:
                self.errors.append(f"{sent.value!r}: {error}")
            self._progress.notify_all()
