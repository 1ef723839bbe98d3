"""How long a steady producer waits through what happens to the brokers, and that nothing it is told is wrong.

Owns the producer, and the measure: the longest time that a partition goes without an acknowledgement. Must not know
what happens.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from bench.librdkafka import CALL_SECONDS
from bench.replicas import await_until
from tests.cluster.verifiable_consumer import read_all

PACE_SECONDS = 0.002
SERVED_SECONDS = 120
FIRST_RECORDS = 200
"""Sent while the client connects, finds the leaders and is given a producer id: what they wait for is not counted."""
STEADY_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 0,
    # By default a client waits up to ten seconds before it connects again: that would be all that is measured.
    "reconnect.backoff.max.ms": 250,
    # Else it says of every broker that ends that it has ended.
    "log_level": 0,
}


class WrongRecords(Exception):
    """What was acknowledged is not there, or more than once; one sentence."""


class Acked(NamedTuple):
    partition: int
    value: bytes
    at_seconds: float


class SteadyProducer:
    """Sends numbers to the partitions in turn, from a thread of its own, as a context."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, more: Mapping[str, str | int | float | bool] | None = None
    ) -> None:
        self.acked: list[Acked] = []
        self._refused: list[str] = []
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._sent = 0
        self._producer = Producer({"bootstrap.servers": bootstrap, **STEADY_PRODUCER, **(more or {})})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, name="steady-producer", daemon=True)

    def __enter__(self) -> SteadyProducer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join()
        if kind is None and self._producer.flush(CALL_SECONDS):
            raise TimeoutError(f"{self._topic}: records were not acknowledged within {CALL_SECONDS} s")

    def _send(self) -> None:
        due = time.monotonic()
        while not self._stopping.is_set():
            value, partition = b"%d" % self._sent, self._sent % self._partitions
            self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
            self._sent += 1
            due = max(due + PACE_SECONDS, time.monotonic() - PACE_SECONDS)
            while (left := due - time.monotonic()) > 0:
                self._producer.poll(left)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value, partition = message.value() or b"", message.partition() or 0
        if error is None:
            self.acked.append(Acked(partition, value, time.monotonic()))
        else:
            self._refused.append(f"{value!r}: {error}")

    def run_for(self, seconds: float) -> None:
        """From when it is steady."""
        await_until(lambda: len(self.acked) >= FIRST_RECORDS, "a producer had too few acknowledgements", SERVED_SECONDS)
        time.sleep(seconds)

    def await_all_partitions(self) -> None:
        """Until in each a record is acknowledged that was not yet sent when this was called."""
        first, seen = self._sent, 0
        waiting = set(range(self._partitions))

        def is_served() -> bool:
            nonlocal seen
            new = self.acked[seen:]
            seen += len(new)
            waiting.difference_update(one.partition for one in new if int(one.value) >= first)
            return not waiting

        await_until(is_served, f"partitions of {self._topic} took no records", SERVED_SECONDS)

    def longest_wait_seconds(self) -> float:
        return longest_gap_seconds(self.acked[FIRST_RECORDS:])

    def check(self) -> None:
        """Once it has ended: every record is in the log, and once; raises :class:`WrongRecords`."""
        if self._refused:
            raise WrongRecords(f"{len(self._refused)} records were refused, one is {self._refused[0]}")
        found = read_all(self._bootstrap, self._topic, self._partitions)
        values = [value for records in found.values() for value in records.values()]
        lost, doubled = lost_and_doubled([one.value for one in self.acked], values)
        if lost or doubled:
            raise WrongRecords(f"of {len(self.acked)} acknowledged records {lost} are lost, {doubled} are there twice")


def longest_gap_seconds(acked: Iterable[Acked]) -> float:
    """Between an acknowledgement and the next one of the same partition."""
    by_partition: dict[int, list[float]] = {}
    for one in acked:
        by_partition.setdefault(one.partition, []).append(one.at_seconds)
    return max(later - earlier for times in by_partition.values() for earlier, later in pairwise(times))


def lost_and_doubled(acked: Sequence[bytes], found: Sequence[bytes]) -> tuple[int, int]:
    """How many values are missing, and how many are there more than once."""
    times = Counter(found)
    return sum(not times[value] for value in acked), sum(count > 1 for count in times.values())
