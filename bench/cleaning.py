"""Logs for the cleaners to clean, and the time that a broker takes for it.

A log is written with compaction held off, then let go by one change of a setting; what is measured is from the answer
to that change until the checkpoint says that everything up to the active segment is clean. Everything is done from
outside, the same way for every broker. Must not know what is compared.
"""

from __future__ import annotations

import mmap
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from bench.librdkafka import BATCH_MESSAGES, CALL_SECONDS, PRODUCER
from bench.subjects import Subject
from lamina.records.batch import CODEC_MASK, HEADER_BYTES, Codec, read_header

MEBIBYTE = 1 << 20
PASS_SECONDS = 900
_TOUCHED_BYTES = 2048 * MEBIBYTE
LOOK_SECONDS = 0.005
HELD_OFF = "1.0"
LET_GO = "0.01"
_FEWEST_RECORDS = 100_000


@dataclass(frozen=True, slots=True)
class Log:
    """A topic to be cleaned: keys drawn evenly from so many, by a generator that always draws the same."""

    name: str
    records: int
    """In all its partitions."""
    keys: int
    """In all its partitions."""
    value_bytes: int
    segment_bytes: int = 128 * MEBIBYTE
    partitions: int = 1
    codec: str = "none"

    def scaled(self, scale: float) -> Log:
        """Fewer records, in smaller segments or, of a topic with many partitions, in fewer of them."""
        if self.partitions > 1:
            partitions = max(round(self.partitions * scale), 1)
            each = partitions / self.partitions
            return replace(
                self, records=int(self.records * each), keys=max(int(self.keys * each), 1), partitions=partitions
            )
        return replace(
            self,
            records=max(int(self.records * scale), _FEWEST_RECORDS),
            keys=max(int(self.keys * scale), 1000),
            segment_bytes=max(int(self.segment_bytes * scale), MEBIBYTE),
        )


def write_log(subject: Subject, topic: str, log: Log) -> None:
    """Make the topic and fill it."""
    admin = AdminClient({"bootstrap.servers": subject.bootstrap})
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": str(log.segment_bytes),
        "min.cleanable.dirty.ratio": HELD_OFF,
        "compression.type": "producer",
    }
    made = admin.create_topics([NewTopic(topic, log.partitions, 1, config=configs)])
    made[topic].result(CALL_SECONDS)
    producer = Producer({"bootstrap.servers": subject.bootstrap, **PRODUCER, "compression.type": log.codec})
    for number, messages in enumerate(_messages(log)):
        partition = number % log.partitions
        while (taken := producer.produce_batch(topic, messages, partition=partition)) != len(messages):
            messages = messages[taken:]
            producer.poll(0.1)
        producer.poll(0)
    if producer.flush(CALL_SECONDS * 10):
        raise TimeoutError(f"{topic}: messages were not acknowledged")


def _messages(log: Log) -> Iterator[list[dict[str, bytes]]]:
    chosen = random.Random(7)
    half = log.value_bytes // 2  # The other half compresses away, as values do.
    size = min(BATCH_MESSAGES, log.records // log.partitions)
    for _ in range(log.records // size):
        yield [
            {
                "key": b"key-%013d" % chosen.randrange(log.keys),
                "value": chosen.randbytes(half).ljust(log.value_bytes, b"."),
            }
            for _ in range(size)
        ]


class WrongLog(Exception):
    """What lies on disk is not the log that was to be measured; one sentence."""


def check_codec(logs: Path, topic: str, log: Log) -> None:
    """A client that finds a codec unsupported sends records plain and says nothing: look at what was stored."""
    first = min((logs / f"{topic}-0").glob("*.log"))
    with first.open("rb") as file:
        codec = Codec(read_header(file.read(HEADER_BYTES)).attributes & CODEC_MASK)
    if codec.name.lower() != log.codec:
        raise WrongLog(f"{topic} was to be written with {log.codec} and is stored with {codec.name.lower()}")


def touch_memory() -> None:
    """Have memory that is free be real: on a virtual machine the host may have taken it back, and then the first use of
    each page costs as much as cleaning what is written there. Real machines know no such cost."""
    memory = mmap.mmap(-1, _TOUCHED_BYTES)
    for at in range(0, _TOUCHED_BYTES, mmap.PAGESIZE):
        memory[at] = 1
    memory.close()


def clean_seconds(subject: Subject, logs: Path, topic: str, log: Log) -> float:
    """Let the cleaner go, and wait until it has cleaned all that it may; ``logs`` is the broker's log directory."""
    due = {partition: _active_base(logs / f"{topic}-{partition}") for partition in range(log.partitions)}
    if not all(due.values()):
        raise WrongLog(f"{topic} has a partition of one segment, of which nothing can be cleaned")
    admin = AdminClient({"bootstrap.servers": subject.bootstrap})
    change = ConfigEntry("min.cleanable.dirty.ratio", LET_GO, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    (answer,) = admin.incremental_alter_configs([resource]).values()
    answer.result(CALL_SECONDS)
    began = time.perf_counter()
    while not _is_clean(logs / "cleaner-offset-checkpoint", topic, due):
        if time.perf_counter() - began > PASS_SECONDS:
            raise TimeoutError(f"{topic} was not clean after {PASS_SECONDS} s")
        time.sleep(LOOK_SECONDS)
    return time.perf_counter() - began


def _active_base(partition: Path) -> int:
    return max(int(path.stem) for path in partition.glob("*.log"))


def _is_clean(checkpoint: Path, topic: str, due: dict[int, int]) -> bool:
    try:
        text = checkpoint.read_text()
    except FileNotFoundError:
        return False
    found = {int(line[1]): int(line[2]) for line in re.findall(rf"^({re.escape(topic)}) (\d+) (\d+)$", text, re.M)}
    return all(found.get(partition, -1) >= offset for partition, offset in due.items())
