"""Measuring a cluster from this client: sending and reading records as fast as they go, or at a rate.

Owns the temporary topic and the records' content. Must not know the command line.
"""

import os
import random
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lamina.cli.interruption import Interruption
from lamina.cli.printing.progress import ProgressLine
from lamina.cli.printing.text import counted, rate_text
from lamina.client import topic as topics
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, no_topic
from lamina.client.latencies import Latencies
from lamina.client.pacing import Pacer
from lamina.client.partition_range import PartitionRange
from lamina.client.reader import Reader
from lamina.client.sender import Sender
from lamina.clocks import SYSTEM_CLOCKS, Clocks

_VALUES = 64
_SILENCE_SECONDS = 30.0
_LOOK_EVERY = 64
_LEAST_ROOM_BYTES = 1_048_588


@dataclass(frozen=True, slots=True)
class Amount:
    """How much to measure: whichever comes first."""

    records: int | None
    seconds: float | None


@dataclass(slots=True)
class Measured:
    records: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    first_seconds: float | None = None
    """Until the first record came."""


@contextmanager
def measured_topic(cluster: Cluster, given: str | None, partitions: int, size_bytes: int) -> Iterator[str]:
    """The topic that was given, which must be there; else one that takes such records and is removed in the end."""
    admin = cluster.admin()
    if given is not None:
        if topics.find(admin, given) is None:
            raise no_topic(given, "leave out --topic for a temporary one")
        yield given
        return
    name = f"lamina-bench-{os.urandom(6).hex()}"
    room_bytes = str(max(2 * size_bytes, _LEAST_ROOM_BYTES))
    topics.create(admin, name, partitions, {"max.message.bytes": room_bytes})
    try:
        yield name
    finally:
        topics.delete(admin, name)


def send(
    cluster: Cluster,
    topic: str,
    config: dict[str, Any],
    amount: Amount,
    size_bytes: int,
    rate: float | None,
    interruption: Interruption,
    latencies: Latencies | None,
    clocks: Clocks = SYSTEM_CLOCKS,
) -> Measured:
    """Raises ClientError when a record is not delivered."""
    values = _values(size_bytes)
    sender = Sender(cluster, topic, config, latencies)
    sender.warm_up(values[0])
    deliveries, progress = sender.deliveries, ProgressLine()
    began = clocks.monotonic_seconds()
    end = None if amount.seconds is None else began + amount.seconds
    pacer = None if rate is None else Pacer(rate, began)

    def show() -> None:
        elapsed = clocks.monotonic_seconds() - began
        shown = rate_text(deliveries.records, deliveries.size_bytes, elapsed)
        progress.show(lambda: f"sending: {counted(deliveries.records, 'record')} ({shown})")

    number = 0
    while number != amount.records and deliveries.failed_number is None:
        if pacer is not None or not number % _LOOK_EVERY:
            now = clocks.monotonic_seconds()
            if interruption() or (end is not None and now >= end):
                break
            show()
            if pacer is not None:
                if delay := pacer.delay(now):
                    sender.serve(min(delay, 0.1))
                    continue
                pacer.sent(now)
        sender.send(number, values[number % _VALUES])
        number += 1
    try:
        sender.finish(show)
    finally:
        progress.clear()
    if deliveries.failed_number is not None:
        delivered = counted(deliveries.records, "record")
        raise ClientError(
            f"record {deliveries.failed_number + 1} was not delivered: {deliveries.failure}; delivered: {delivered}"
        )
    return Measured(deliveries.records, deliveries.size_bytes, clocks.monotonic_seconds() - began)


def read(
    cluster: Cluster,
    topic: str,
    amount: Amount,
    interruption: Interruption,
    clocks: Clocks = SYSTEM_CLOCKS,
) -> Measured:
    """From the beginning of the topic to its end as it is now."""
    admin = cluster.admin()
    found = topics.find(admin, topic)
    if found is None:
        raise no_topic(topic)
    logs = topics.Offsets(admin, topic, found.partitions, read_committed=False)
    first, end = logs.first(), logs.end()
    ranges = [PartitionRange(each, first[each], end[each]) for each in found.partitions]
    reader = Reader(cluster, topic, ranges, read_committed=False, follow=False, silence_seconds=_SILENCE_SECONDS)
    measured, progress = Measured(), ProgressLine()
    began = clocks.monotonic_seconds()

    def is_stopped() -> bool:
        measured.seconds = clocks.monotonic_seconds() - began
        return interruption() or (amount.seconds is not None and measured.seconds >= amount.seconds)

    try:
        for messages in reader.batches(is_stopped, amount.records):
            measured.seconds = clocks.monotonic_seconds() - began
            if messages and measured.first_seconds is None:
                measured.first_seconds = measured.seconds
            measured.records += len(messages)
            measured.size_bytes = sum(each.size_bytes for each in ranges)
            shown = rate_text(measured.records, measured.size_bytes, measured.seconds)
            progress.show(lambda: f"reading: {counted(measured.records, 'record')} ({shown})")  # noqa: B023
    finally:
        progress.clear()
    return measured


def _values(size_bytes: int) -> list[bytes]:
    """Random text, of which a codec saves about a quarter: neither a gift to it nor an insult."""
    source = random.Random(size_bytes)
    return [b64encode(source.randbytes(size_bytes))[:size_bytes] for _ in range(_VALUES)]
