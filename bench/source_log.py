"""Logs to be cleaned: written once by librdkafka, then given to every broker in the same batches.

The batches are those that librdkafka made: a Lamina broker of its own took them, and what lies in its segments is sent
to the brokers under measurement, byte for byte, as Produce requests. So every broker gets the same log, and at the
speed of its disk instead of the client's. Owns the logs' shapes. Must not know what is compared.
"""

from __future__ import annotations

import mmap
import shutil
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from bench.librdkafka import BATCH_MESSAGES, CALL_SECONDS, PRODUCER, new_admin
from bench.small_requests import WrongAnswer, produce_error_at, produce_head, receive_answer
from bench.subjects import Subject, address, kill_all
from tests.peers.lamina import Lamina

MEBIBYTE = 1 << 20
DEFAULT_SEGMENT_BYTES = 128 * MEBIBYTE
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""By their numbers in a batch's attributes."""
IN_FLIGHT = 8
NOT_YET = (3, 5, 6)
"""Unknown topic, no leader, not the leader: what a broker answers until it leads a new partition."""
RETRY_SECONDS = 0.01
TOPIC = "source"
DIRTY_RATIO, HELD = "min.cleanable.dirty.ratio", "1.0"
"""With which no log is ever cleaned."""
_FEWEST_RECORDS = 100_000
_NOISE_BYTES = 16 * MEBIBYTE
_LENGTH_AT, _EPOCH_AT, _MAGIC_AT, _ATTRIBUTES_AT = 8, 12, 16, 21
_NO_OFFSET, _NO_EPOCH = bytes(8), b"\xff" * 4


@dataclass(frozen=True, slots=True)
class Log:
    """A topic to be cleaned: keys drawn evenly from so many, by a generator that always draws the same."""

    records: int
    """In all its partitions."""
    keys: int
    value_bytes: int
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    partitions: int = 1
    codec: str = "none"

    def scaled(self, share: float) -> Log:
        """Fewer records, in smaller segments or, of a topic with many partitions, in fewer of them."""
        if share == 1:
            return self
        if self.partitions > 1:
            partitions = max(round(self.partitions * share), 2)
            each = partitions / self.partitions
            return replace(
                self, records=int(self.records * each), keys=max(int(self.keys * each), 1), partitions=partitions
            )
        return replace(
            self,
            records=max(int(self.records * share), _FEWEST_RECORDS),
            keys=max(int(self.keys * share), 1000),
            segment_bytes=max(int(self.segment_bytes * share), MEBIBYTE),
        )


class SourceLogs:
    """The log that was last asked for, on disk; the one before it is removed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._written: Log | None = None

    def send(self, log: Log, subject: Subject, topic: str) -> None:
        """Make the topic, not to be cleaned yet, and fill it."""
        configs = {
            "cleanup.policy": "compact",
            "segment.bytes": str(log.segment_bytes),
            DIRTY_RATIO: HELD,
            "compression.type": "producer",
        }
        admin = new_admin(subject.bootstrap)
        admin.create_topics([NewTopic(topic, log.partitions, 1, config=configs)])[topic].result(CALL_SECONDS)
        self.append(log, subject, topic)

    def append(self, log: Log, subject: Subject, topic: str) -> None:
        """Fill a topic that is there."""
        if log != self._written:
            self._write(log)
        with socket.create_connection(address(subject), timeout=CALL_SECONDS) as connection:
            for partition in range(log.partitions):
                _send_partition(connection, topic, partition, self._logs / f"{TOPIC}-{partition}")

    @property
    def _logs(self) -> Path:
        return self._directory / "data" / "logs"

    def _write(self, log: Log) -> None:
        self._written = None
        shutil.rmtree(self._directory, ignore_errors=True)
        scribe = Lamina(self._directory, {"lamina.spark.master": "none"})
        try:
            scribe.start()
            _produce(scribe, log)
        finally:
            kill_all([scribe])
        codec = _codec(self._logs / f"{TOPIC}-0")
        if codec != log.codec:  # A client that finds a codec unsupported sends records plain and says nothing.
            raise WrongAnswer(f"a log was to be written with {log.codec} and was written with {codec}")
        self._written = log


def _produce(scribe: Lamina, log: Log) -> None:
    admin = new_admin(scribe.bootstrap)
    admin.create_topics([NewTopic(TOPIC, log.partitions, 1)])[TOPIC].result(CALL_SECONDS)
    settings = {**PRODUCER, "compression.type": log.codec, "log_level": 0}
    producer = Producer({"bootstrap.servers": scribe.bootstrap, **settings})
    for number, messages in enumerate(messages_of(log)):
        while (taken := producer.produce_batch(TOPIC, messages, partition=number % log.partitions)) != len(messages):
            messages = messages[taken:]
            producer.poll(0.1)
        producer.poll(0)
    if producer.flush(CALL_SECONDS * 10):
        raise TimeoutError(f"{TOPIC}: messages were not acknowledged")


def messages_of(log: Log) -> Iterator[list[dict[str, bytes]]]:
    """Lists of one partition's messages, the partitions in turn."""
    random = np.random.default_rng(7)
    noise = random.bytes(_NOISE_BYTES)
    half = log.value_bytes // 2  # The other half compresses away, as values do.
    filling = b"." * (log.value_bytes - half)
    size = min(BATCH_MESSAGES, log.records // log.partitions)
    for _ in range(log.records // size):
        keys = random.integers(log.keys, size=size).tolist()
        starts = random.integers(_NOISE_BYTES - half, size=size).tolist()
        yield [
            {"key": b"key-%013d" % key, "value": noise[start : start + half] + filling}
            for key, start in zip(keys, starts, strict=True)
        ]


def _codec(partition: Path) -> str:
    with min(partition.glob("*.log")).open("rb") as file:
        header = file.read(_ATTRIBUTES_AT + 2)
    return CODECS[struct.unpack_from(">h", header, _ATTRIBUTES_AT)[0] & 7]


# Sending


def _send_partition(connection: socket.socket, topic: str, partition: int, source: Path) -> None:
    error_at = produce_error_at(topic)
    unanswered = 0
    for number, batch in enumerate(_batches(source)):
        _send(connection, topic, partition, batch)
        if number == 0:
            while (error := _error(receive_answer(connection), error_at)) in NOT_YET:
                time.sleep(RETRY_SECONDS)
                _send(connection, topic, partition, batch)
            _check(error)
            continue
        unanswered += 1
        if unanswered == IN_FLIGHT:
            _check(_error(receive_answer(connection), error_at))
            unanswered -= 1
    for _ in range(unanswered):
        _check(_error(receive_answer(connection), error_at))


def _send(connection: socket.socket, topic: str, partition: int, batch: memoryview) -> None:
    """As the client made it: what the broker wrote over, the base offset and the leader epoch, is outside the CRC."""
    length = batch[_LENGTH_AT:_EPOCH_AT]
    connection.sendall(produce_head(topic, partition, len(batch)) + _NO_OFFSET + length + _NO_EPOCH)
    connection.sendall(batch[_MAGIC_AT:])


def _error(answer: bytes, error_at: int) -> int:
    return int(struct.unpack_from(">h", answer, error_at)[0])


def _check(error: int) -> None:
    if error:
        raise WrongAnswer(f"a batch of a log to be cleaned was answered with error {error}")


def _batches(partition: Path) -> Iterator[memoryview]:
    for path in sorted(partition.glob("*.log")):
        if not path.stat().st_size:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = 0
            while at < len(data):
                size = _EPOCH_AT + struct.unpack_from(">i", data, at + _LENGTH_AT)[0]
                with memoryview(data)[at : at + size] as batch:
                    yield batch
                at += size
