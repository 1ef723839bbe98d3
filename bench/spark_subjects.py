"""Who reads and writes topics in Spark: one of the Sparks, by one of its sources, from one of the two brokers.

Several of them share a Spark or a broker; who is started first starts both. Owns their names and their options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.empty_source import EmptySource
from bench.spark_session import Session, newer_session, official_session, our_session
from bench.subjects import KAFKA, KAFKA_SCRIPT_FLAGS, LAMINA, SETTINGS, Subject
from tests.peers.kafka import Kafka
from tests.peers.lamina import Lamina

OFFICIAL, NEWER, TUNED = "official", "newer", "tuned"
CEILING, OURS, FILES = "ceiling", "ours", "files"
BROKERS = (LAMINA, KAFKA)
TUNED_SOURCE = {
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.max.poll.records": "65536",
    "kafka.fetch.max.wait.ms": "10",
}
"""The first is what Lamina's source has by default, and the second as many records as that may hold here."""
TUNED_SINK = {"kafka.batch.size": "524288", "kafka.linger.ms": "100"}
"""Lamina's sink has batches of that size by default, and sends one when it is full or the task has no more rows."""


@dataclass(frozen=True, slots=True)
class SparkSubject:
    session: Session
    broker: Subject
    source: str
    """What Spark calls it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the source."""
    sink_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The driver, below which are its JVM and its workers, and the broker."""
        return (*self.session.process_ids, *self.broker.process_ids)

    @property
    def is_running(self) -> bool:
        return bool(self.process_ids)

    def format(self) -> None:
        """Nothing: both are ready when they are started."""

    def launch(self) -> None:
        self.start()

    def start(self) -> None:
        if not self.broker.is_running:
            self.broker.start()
        self.session.start()

    def stop(self) -> None:
        self.session.stop()
        if self.broker.is_running:
            self.broker.stop()

    def kill(self) -> None:
        self.session.kill()
        self.broker.kill()


def name_of(who: str, broker: str) -> str:
    return f"{who}-{broker}"


def new_subjects(root: Path) -> dict[str, Subject]:
    ours, official, newer = our_session(root / "ours"), official_session(root / "official"), newer_session(root / NEWER)
    brokers: dict[str, Subject] = {
        LAMINA: Lamina(root / LAMINA, {**SETTINGS, "lamina.spark.master": "none"}),
        KAFKA: Kafka(root / KAFKA, SETTINGS, KAFKA_SCRIPT_FLAGS),
    }
    found: dict[str, Subject] = {}
    for name, broker in brokers.items():
        found[name_of(OFFICIAL, name)] = SparkSubject(official, broker, "kafka")
        found[name_of(NEWER, name)] = SparkSubject(newer, broker, "kafka")
        found[name_of(OURS, name)] = SparkSubject(ours, broker, "lamina", {"readFiles": "never"})
    lamina = brokers[LAMINA]
    found[name_of(TUNED, LAMINA)] = SparkSubject(newer, lamina, "kafka", TUNED_SOURCE, TUNED_SINK)
    found[name_of(FILES, LAMINA)] = SparkSubject(ours, lamina, "lamina", {"readFiles": "require"})
    found[name_of(CEILING, LAMINA)] = SparkSubject(ours, lamina, EmptySource.name())
    return found
