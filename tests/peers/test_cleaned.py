"""Kafka goes on with a directory that Lamina compacted, also while a pass folder is left in it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from lamina.broker.cleaner.process_engine import ProcessEngine
from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import Answer
from lamina.log.names import PASS_FOLDER_PREFIX
from lamina.offline.compact import Result, Wish, compact_directory
from lamina.records.batch import Codec
from tests.peers.driver import Record, StoredRecord
from tests.peers.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

CONFIGS = {"cleanup.policy": "compact", "internal.segment.bytes": "3000", "min.cleanable.dirty.ratio": "1.0"}
FIRST_TIMESTAMP_MS = 1_700_000_000_000


def write(kafka: Kafka) -> None:
    with kafka:
        with kafka.driver() as driver:
            driver.create_topic("cleaned", CONFIGS)
            for number, codec in enumerate((*Codec, *Codec)):
                name = f"{codec.name.lower()}-{number}"
                driver.open_producer(name, {"compression.type": codec.name.lower(), "linger.ms": "60000"})
                driver.send(
                    name,
                    "cleaned",
                    [
                        Record(f"key-{each}".encode(), f"{number}-{each}.".encode() * 20, FIRST_TIMESTAMP_MS + each)
                        for each in range(number * 3, number * 3 + 20)
                    ],
                )
        kafka.stop()


def compact(directory: Path, **wish: bool) -> list[Result]:
    engine = ProcessEngine()

    def clean(plan: Plan) -> Answer:
        return asyncio.run(engine.clean(plan, lambda *_: None))

    asked = Wish(frozenset({"cleaned"}), None, {"cleanup.policy": "compact"}, **wish)
    return list(compact_directory(str(directory), asked, clean))


def latest(records: tuple[StoredRecord, ...]) -> dict[bytes | None, bytes | None]:
    return {stored.record.key: stored.record.value for stored in records}


def test_kafka_goes_on_with_what_lamina_compacted_and_ignores_pass_folders(tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "kafka")
    write(kafka)
    with kafka:
        with kafka.driver() as driver:
            before = driver.read("cleaned", 0, "read_committed").records
        kafka.stop()
    [result] = compact(kafka.data_directory, roll=True)
    assert result.manifest is not None, result.reason
    assert result.manifest.after.records < result.manifest.before.records
    partition = kafka.data_directory / "cleaned-0"
    folder = partition / f"{PASS_FOLDER_PREFIX}left"
    folder.mkdir()
    source = next(iter(sorted(partition.glob("*.log"))))
    (folder / source.name).hardlink_to(source)
    mark = kafka.mark()
    with kafka, kafka.driver() as driver:
        after = driver.read("cleaned", 0, "read_committed").records
        assert latest(after) == latest(before)
        assert len(after) < len(before)
        opening = kafka.lines_since(mark, r"(kafka\.log|storage\.internals\.log)\..*\bcleaned-0\b")
        assert [line for line in opening if re.search(r"(?i)stray|corrupt|truncat|WARN|ERROR", line)] == []
        driver.open_producer("more", {})
        assert driver.send("more", "cleaned", [Record(b"key-0", b"newest", FIRST_TIMESTAMP_MS)]) == [
            before[-1].offset + 1
        ]
