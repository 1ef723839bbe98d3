"""The time that a broker takes to clean a topic, seen from outside, the same way for every broker.

A topic is written with compaction held off, then let go by one change of a setting; what is measured is from the answer
to that change until the checkpoint says that everything up to the active segment is clean. Must not know what is
compared.
"""

from __future__ import annotations

import mmap
import re
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.librdkafka import CALL_SECONDS, new_admin
from bench.small_requests import WrongAnswer
from bench.subjects import Subject
from bench.usage import Usage
from tests.peers.kafka import Kafka
from tests.peers.lamina import Lamina

PASS_SECONDS = 900
LET_GO = "0.01"
_LOOK_SECONDS = 0.005
_TOUCHED_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Cleaned:
    records: int
    """Below the active segments, which no cleaner touches."""
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    """Of all the broker's processes together."""


def touch_memory() -> None:
    """Have memory that is free be real: on a virtual machine the host may have taken it back, and then the first use of
    each page costs as much as cleaning what is written there. Real machines know no such cost."""
    memory = mmap.mmap(-1, _TOUCHED_BYTES)
    for at in range(0, _TOUCHED_BYTES, mmap.PAGESIZE):
        memory[at] = 1
    memory.close()


def clean(subject: Subject, topic: str, partitions: int) -> Cleaned:
    """Let the cleaner go, and wait until it has cleaned all that it may."""
    logs = _logs_of(subject)
    due = {partition: _active_base(logs / f"{topic}-{partition}") for partition in range(partitions)}
    if not all(due.values()):
        raise WrongAnswer(f"{topic} has a partition of one segment, of which nothing can be cleaned")
    change = ConfigEntry("min.cleanable.dirty.ratio", LET_GO, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin = new_admin(subject.bootstrap)
    with Usage(subject.process_id) as usage:
        (answer,) = admin.incremental_alter_configs([resource]).values()
        answer.result(CALL_SECONDS)
        began = time.perf_counter()
        while not _is_clean(logs / "cleaner-offset-checkpoint", topic, due):
            if time.perf_counter() - began > PASS_SECONDS:
                raise TimeoutError(f"{topic} was not clean after {PASS_SECONDS} s")
            time.sleep(_LOOK_SECONDS)
        seconds = time.perf_counter() - began
    return Cleaned(sum(due.values()), seconds, usage.cpu_seconds, usage.peak_bytes)


def _logs_of(subject: Subject) -> Path:
    assert isinstance(subject, Kafka | Lamina)
    return subject.data_directory / "logs" if isinstance(subject, Lamina) else subject.data_directory


def _active_base(partition: Path) -> int:
    return max(int(path.stem) for path in partition.glob("*.log"))


def _is_clean(checkpoint: Path, topic: str, due: dict[int, int]) -> bool:
    try:
        text = checkpoint.read_text()
    except FileNotFoundError:
        return False
    found = {int(line[1]): int(line[2]) for line in re.findall(rf"^({re.escape(topic)}) (\d+) (\d+)$", text, re.M)}
    return all(found.get(partition, -1) >= offset for partition, offset in due.items())
