"""Kafka reads the files that Lamina wrote: with its own tool, and as a broker that goes on after Lamina.

A broker serves only partitions that its own metadata knows (formats.md), so in the round trip Kafka makes the
topic and Lamina appends under the same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lamina.records.batch import Codec
from lamina.settings.log_config import LogConfig
from tests.peers.driver import Driver, Record, StoredRecord
from tests.peers.kafka import Kafka, LogMark, dump_segments
from tests.peers.lamina_log import Batches, append_to_partition

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

FIRST_TIMESTAMP_MS = 1_700_000_000_000
SMALL_SEGMENTS = LogConfig(segment_bytes=3000, index_interval_bytes=600, retention_ms=-1)
TOPIC_CONFIGS = {
    "internal.segment.bytes": str(SMALL_SEGMENTS.segment_bytes),
    "index.interval.bytes": str(SMALL_SEGMENTS.index_interval_bytes),
    "retention.ms": str(SMALL_SEGMENTS.retention_ms),
}
COMPLAINT = re.compile(r"(?i)mismatch|not found|non-consecutive|corrupt|isvalid: false|exception|out of order|error")


def records(tag: str, count: int) -> list[Record]:
    """Null and empty fields and headers among them; the timestamps go back now and then."""
    return [
        Record(
            key=None if number % 5 == 1 else b"" if number % 7 == 2 else f"key-{number}".encode(),
            value=None if number % 6 == 3 else f"{tag}-{number}.".encode() * (number % 4),
            timestamp_ms=FIRST_TIMESTAMP_MS + number * 1000 - number % 3 * 2500,
            headers=(("größe", b"\x00"), ("größe", None)) if number % 4 == 0 else (),
        )
        for number in range(count)
    ]


class Written:
    """A log that Lamina wrote on its own: every codec, producers with ids, transactions of both ends."""

    def __init__(self, data_directory: Path) -> None:
        batches = Batches()
        for each in range(6):
            for codec in Codec:
                batches.add(records(f"plain-{each}", 4), codec)
                batches.add(records(f"idempotent-{each}", 3), codec, producer_id=10)
            batches.add(records(f"committed-{each}", 5), producer_id=20, is_transactional=True)
            batches.add(records(f"aborted-{each}", 5), producer_id=30, is_transactional=True)
            batches.end_transaction(20, is_commit=True)
            batches.end_transaction(30, is_commit=False)
        append_to_partition(data_directory, "written", batches, SMALL_SEGMENTS)
        self.batches = batches
        self.directory = data_directory / "written-0"

    def files(self, extension: str) -> list[Path]:
        found = sorted(self.directory.glob(f"*.{extension}"))
        assert found, f"Lamina wrote no .{extension} file"
        return found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("written"))


def complaints(output: str) -> list[str]:
    return [line for line in output.splitlines() if COMPLAINT.search(line)]


def test_kafkas_tool_reads_every_batch_and_record(written: Written) -> None:
    logs = written.files("log")
    assert len(logs) > 3
    output = dump_segments(*logs, options=("--deep-iteration", "--print-data-log"))
    assert complaints(output) == []
    assert output.count("isvalid: true") == len(written.batches.encoded)
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", output, re.MULTILINE)]
    assert offsets == list(range(written.batches.next_offset))


@pytest.mark.parametrize("extension", ["index", "timeindex"])
def test_kafkas_tool_finds_every_index_entry_in_the_log(written: Written, extension: str) -> None:
    indexes = written.files(extension)
    assert max(index.stat().st_size for index in indexes) > 12
    assert complaints(dump_segments(*indexes, options=("--verify-index-only",))) == []


@pytest.mark.parametrize("extension", ["index", "timeindex"])
def test_kafkas_tool_finds_every_index_sane(written: Written, extension: str) -> None:
    # A segment smaller than the index interval has no offset entry; the tool only calls its index empty.
    indexes = [index for index in written.files(extension) if index.stat().st_size]
    output = dump_segments(*indexes, options=("--index-sanity-check",))
    assert output.count("passed sanity check.") == len(indexes)
    assert complaints(output) == []


def test_kafkas_tool_reads_the_aborted_transactions(written: Written) -> None:
    output = dump_segments(*written.files("txnindex"))
    found = re.findall(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+)", output)
    assert [tuple(map(int, entry)) for entry in found] == written.batches.aborted


def test_kafkas_tool_reads_the_producer_snapshot_at_the_log_end(written: Written) -> None:
    last = written.files("snapshot")[-1]
    assert int(last.stem) == written.batches.next_offset
    output = dump_segments(*written.files("snapshot"))
    assert complaints(output) == []
    producers = re.findall(r"^producerId: (\d+)", dump_segments(last), re.MULTILINE)
    assert sorted(producers) == ["10", "20", "30"]


@dataclass(frozen=True, slots=True)
class Passage:
    """Kafka made a topic and wrote to it, stopped; Lamina appended; Kafka runs again."""

    kafka: Kafka
    driver: Driver
    restarted: LogMark
    opening: list[str]
    """What Kafka's storage said of the partition while it started."""
    before: tuple[StoredRecord, ...]
    batches: Batches

    def read(self) -> tuple[StoredRecord, ...]:
        return self.driver.read("passage", 0, "read_committed").records


def write_with_kafka(kafka: Kafka) -> tuple[StoredRecord, ...]:
    with kafka:
        with kafka.driver() as driver:
            driver.create_topic("passage", TOPIC_CONFIGS)
            for codec in Codec:
                name = codec.name.lower()
                driver.open_producer(name, {"compression.type": name, "linger.ms": "60000"})
                driver.send(name, "passage", records(f"kafka-{name}", 20))
            before = driver.read("passage", 0, "read_committed").records
        kafka.stop()
    return before


def batches_in_every_codec(first_offset: int) -> Batches:
    batches = Batches(first_offset)
    for codec in Codec:
        for each in range(4):
            batches.add(records(f"lamina-{codec.name}-{each}", 12), codec)
        batches.add(records(f"aborted-{codec.name}", 5), codec, producer_id=900_000, is_transactional=True)
        batches.end_transaction(900_000, is_commit=False)
    return batches


@pytest.fixture(scope="module", params=[True, False], ids=["stopped", "crashed"])
def lamina_stopped(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def passage(tmp_path_factory: pytest.TempPathFactory, lamina_stopped: bool) -> Iterator[Passage]:
    kafka = Kafka(tmp_path_factory.mktemp("passage"))
    before = write_with_kafka(kafka)
    batches = batches_in_every_codec(len(before))
    append_to_partition(kafka.data_directory, "passage", batches, SMALL_SEGMENTS, clean_shutdown=lamina_stopped)
    restarted = kafka.mark()
    with kafka, kafka.driver() as driver:
        opening = kafka.lines_since(restarted, r"(kafka\.log|storage\.internals\.log)\..*\bpassage-0\b")
        yield Passage(kafka, driver, restarted, opening, before, batches)


def test_a_java_consumer_reads_kafkas_and_laminas_records_in_every_codec(passage: Passage) -> None:
    assert passage.read() == (*passage.before, *passage.batches.committed)


def test_kafka_goes_on_where_lamina_stopped(passage: Passage) -> None:
    already = passage.read()
    more = records("afterwards", 3)
    passage.driver.open_producer("afterwards", {})
    (first, *_) = passage.driver.send("afterwards", "passage", more)
    assert first == passage.batches.next_offset
    assert passage.read() == (*already, *(StoredRecord(first + at, record) for at, record in enumerate(more)))


def test_kafka_finds_no_fault_in_the_partition(passage: Passage) -> None:
    assert [line for line in passage.opening if re.search(r"(?i)stray|corrupt|truncat|WARN|ERROR", line)] == []


def test_kafka_repairs_the_partition_only_after_a_crash(passage: Passage, lamina_stopped: bool) -> None:
    # These two are said of every log that is opened.
    routine = re.compile("Reloading from producer snapshot|Producer state recovery took")
    repair = re.compile("(?i)rebuil|recover|wrote producer snapshot")
    repairs = [line for line in passage.opening if repair.search(line) and not routine.search(line)]
    assert bool(repairs) != lamina_stopped


def test_kafkas_controller_takes_laminas_stop_for_a_clean_one(passage: Passage, lamina_stopped: bool) -> None:
    # It compares the clean-shutdown file's broker epoch with the one it knows, so Lamina keeps what it found.
    unclean = passage.kafka.lines_since(passage.restarted, r"handleBrokerUncleanShutdown")
    assert bool(unclean) != lamina_stopped
