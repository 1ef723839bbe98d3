"""The two brokers that are measured, and what can be asked of either from outside.

Owns how each is started for a measurement. Kafka gets the flags of its own start script, both the same settings
of groups, and else their defaults.
"""

from __future__ import annotations

import resource
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.broker.process import COMMAND
from tests.peers.kafka import Kafka
from tests.peers.lamina import Lamina

KAFKA_SCRIPT_FLAGS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
GROUP_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}
"""Groups wait for nobody at first, and members heartbeat ten times a second: of no account where there are none."""
START_SECONDS = 60

_API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)


class Subject(Protocol):
    """A broker under measurement."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def process_id(self) -> int: ...
    def format(self) -> None: ...
    def launch(self) -> None: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


def new_kafka(root: Path) -> Kafka:
    return Kafka(root / "kafka", GROUP_SETTINGS, KAFKA_SCRIPT_FLAGS)


def new_lamina(root: Path, command: Sequence[str] = COMMAND, settings: Mapping[str, str] | None = None) -> Lamina:
    return Lamina(root / "lamina", {**GROUP_SETTINGS, **(settings or {})}, command)


def address(subject: Subject) -> tuple[str, int]:
    host, port = subject.bootstrap.rsplit(":", 1)
    return host, int(port)


def wait_for_answer(subject: Subject) -> None:
    """Return as soon as an ApiVersions request is answered."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.create_connection(address(subject), timeout=START_SECONDS) as connection:
                connection.sendall(_API_VERSIONS_V0)
                if connection.recv(4):
                    return
        except ConnectionError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"{subject.bootstrap} did not answer within {START_SECONDS} s of its start")
        time.sleep(0.002)


def resident_megabytes(subject: Subject) -> float:
    with open(f"/proc/{subject.process_id}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6
