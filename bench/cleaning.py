"""The time that a broker takes to clean a topic, seen from outside, the same way for every broker.

A topic is written with compaction held off, then let go by one change of a setting; what is measured is from the answer
to that change until the checkpoint says that everything up to the active segment is clean. Must not know what is
compared.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.family import families_of
from bench.librdkafka import CALL_SECONDS, new_admin
from bench.small_requests import WrongAnswer
from bench.source_log import DIRTY_RATIO, HELD
from bench.subjects import Subject, logs_of
from bench.usage import Usage

PASS_SECONDS = 900
LET_GO = "0.01"
QUIET_SECONDS, QUIET_AFTER_SECONDS = 2.0, 180
_LOOK_SECONDS, _QUIET_LOOK_SECONDS = 0.005, 0.1


@dataclass(frozen=True, slots=True)
class Cleaned:
    records: int
    """Below the active segments, which no cleaner touches."""
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    """Of all the broker's processes together."""


def clean(subject: Subject, topic: str, partitions: int) -> Cleaned:
    """Let the cleaner go, and wait until it has cleaned all that it may."""
    logs = logs_of(subject)
    due = {partition: _active_base(logs / f"{topic}-{partition}") for partition in range(partitions)}
    if not all(due.values()):
        raise WrongAnswer(f"{topic} has a partition of one segment, of which nothing can be cleaned")
    admin = new_admin(subject.bootstrap)
    with Usage(subject.process_ids) as usage:
        _set_dirty_ratio(admin, topic, LET_GO)
        began = time.perf_counter()
        while not _is_clean(logs / "cleaner-offset-checkpoint", topic, due):
            if time.perf_counter() - began > PASS_SECONDS:
                raise TimeoutError(f"{topic} was not clean after {PASS_SECONDS} s")
            time.sleep(_LOOK_SECONDS)
        seconds = time.perf_counter() - began
    return Cleaned(sum(due.values()), seconds, usage.cpu_seconds, usage.peak_bytes)


def hold(subject: Subject, topic: str) -> None:
    """Let nothing more be cleaned, until the next :func:`clean`."""
    _set_dirty_ratio(new_admin(subject.bootstrap), topic, HELD)


def wait_until_quiet(subject: Subject) -> None:
    """Until nothing runs below the broker, for a while: neither Spark, nor what it leaves to be done when it stops."""
    deadline = time.monotonic() + QUIET_AFTER_SECONDS
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < QUIET_SECONDS:
        if len(families_of(subject.process_ids)) > len(subject.process_ids):
            quiet_since = time.monotonic()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{subject.bootstrap} was not quiet after {QUIET_AFTER_SECONDS} s")
        time.sleep(_QUIET_LOOK_SECONDS)


def _set_dirty_ratio(admin: AdminClient, topic: str, ratio: str) -> None:
    change = ConfigEntry(DIRTY_RATIO, ratio, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    (answer,) = admin.incremental_alter_configs([resource]).values()
    answer.result(CALL_SECONDS)


def _active_base(partition: Path) -> int:
    return max(int(path.stem) for path in partition.glob("*.log"))


def _is_clean(checkpoint: Path, topic: str, due: dict[int, int]) -> bool:
    try:
        text = checkpoint.read_text()
    except FileNotFoundError:
        return False
    found = {int(line[1]): int(line[2]) for line in re.findall(rf"^({re.escape(topic)}) (\d+) (\d+)$", text, re.M)}
    return all(found.get(partition, -1) >= offset for partition, offset in due.items())
