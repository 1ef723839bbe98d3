"""The brokers that are measured, and what can be asked of any of them from outside.

Owns how each is started for a measurement: Kafka with the flags of its own start script where nothing else is said,
all with the same few settings, and else their defaults.
"""

from __future__ import annotations

import signal
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import kill
from pathlib import Path
from typing import Protocol

from bench.family import await_end, families_of
from tests.broker.process import COMMAND
from tests.peers.kafka import Kafka
from tests.peers.lamina import Lamina

KAFKA, LAMINA = "kafka", "lamina"
KAFKA_SMALL_HEAP, KAFKA_APPEND_LINGER_0 = "kafka-small-heap", "kafka-append-linger-0"
SMALL_HEAP_MEGABYTES = 256
"""About the least that holds the loads: its cleaner's map alone takes 128 of it."""
_JVM_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
KAFKA_SCRIPT_FLAGS = ("-Xmx1G", "-Xms1G", *_JVM_FLAGS)
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
    # The topics of earlier rounds are gone soon, not a minute later: their pages would fill the memory.
    "log.segment.delete.delay.ms": "1000",
}
"""Groups wait for nobody at first, and members heartbeat ten times a second: of no account where there are none."""
END_SECONDS = 30
START_SECONDS = 60

API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)
API_VERSIONS_V0_ERROR_AT = 8
"""Behind length and correlation id."""


class Subject(Protocol):
    """What is measured: a broker, or several that are one cluster."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def process_ids(self) -> Sequence[int]: ...
    @property
    def is_running(self) -> bool: ...
    def format(self) -> None: ...
    def launch(self) -> None: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


def heap_flags(megabytes: int) -> tuple[str, ...]:
    """Those of the script, with another heap, which is taken only as it is needed."""
    return (f"-Xmx{megabytes}M", *_JVM_FLAGS)


def all_subjects(root: Path) -> dict[str, Subject]:
    linger_0 = {**SETTINGS, "group.coordinator.append.linger.ms": "0"}
    return {
        KAFKA: Kafka(root / KAFKA, SETTINGS, KAFKA_SCRIPT_FLAGS),
        KAFKA_SMALL_HEAP: Kafka(root / KAFKA_SMALL_HEAP, SETTINGS, heap_flags(SMALL_HEAP_MEGABYTES)),
        KAFKA_APPEND_LINGER_0: Kafka(root / KAFKA_APPEND_LINGER_0, linger_0, KAFKA_SCRIPT_FLAGS),
        LAMINA: new_lamina(root),
    }


def new_lamina(root: Path, command: Sequence[str] = COMMAND, settings: Mapping[str, str] | None = None) -> Lamina:
    return Lamina(root / "lamina", {**SETTINGS, **(settings or {})}, command)


def address(subject: Subject) -> tuple[str, int]:
    host, port = subject.bootstrap.rsplit(":", 1)
    return host, int(port)


def logs_of(subject: Subject) -> Path:
    """Where the partitions of a broker lie."""
    assert isinstance(subject, Kafka | Lamina)
    return subject.data_directory / "logs" if isinstance(subject, Lamina) else subject.data_directory


def wait_for_answer(subject: Subject) -> None:
    """Return as soon as an ApiVersions request is answered."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.create_connection(address(subject), timeout=START_SECONDS) as connection:
                connection.sendall(API_VERSIONS_V0)
                if connection.recv(4):
                    return
        except ConnectionError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"{subject.bootstrap} did not answer within {START_SECONDS} s of its start")
        time.sleep(0.002)


def kill_all(subjects: Sequence[Subject]) -> None:
    """Kill every broker and all below it, and return when none of them is left."""
    family = families_of(one for subject in subjects if subject.is_running for one in subject.process_ids)
    for subject in subjects:
        subject.kill()
    for one in family:
        with suppress(ProcessLookupError):
            kill(one, signal.SIGKILL)
    await_end(family, END_SECONDS)
