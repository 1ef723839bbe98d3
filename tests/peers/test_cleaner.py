"""Real Kafka and Lamina clean copies of the same logs, and the same is left.

Every log is laid into Kafka's directory as after a crash, so that Kafka reads its producers and aborted transactions
from the log itself, as Lamina does with its copy. Kafka then cleans every topic that is dirty by itself.
``LAMINA_CLEANED_LOGS`` says how many random logs there are.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from lamina.cleaning.clean_log import clean_log
from lamina.cleaning.contract import AbortedEntry, ActiveProducer, Plan, SourceSegment
from lamina.compaction.eligibility import Lags, LogSummary, SegmentSummary, find_cleanable
from lamina.log.checkpoints import CLEANER, format_offsets, parse_offsets
from lamina.log.entries import OpenMaps
from lamina.log.files import Disk
from lamina.log.index_pair import IndexRebuilds, IndexShape
from lamina.log.partition_log import PartitionLog
from lamina.log.recovery import Opening, open_log
from lamina.records.batch import DELETE_HORIZON_BIT, Codec, read_header, walk
from lamina.records.record import read_records
from lamina.settings.log_config import DAY_MS, LogConfig
from tests.compaction.model import LIMIT_BYTES
from tests.compaction.story import Story
from tests.peers.kafka import Kafka
from tests.peers.random_lives import a_life

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

LOGS = int(os.environ.get("LAMINA_CLEANED_LOGS", "20"))
LOGS_AT_ONCE = 100
CLEAN_SECONDS = 300
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.index.size.max.bytes": "65536",
    "log.retention.ms": "-1",
    "producer.id.expiration.ms": "2147483647",
    "num.recovery.threads.per.data.dir": "2",
}
CHECKPOINTS = (
    ".kafka_cleanshutdown",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    CLEANER,
)


@dataclass(frozen=True)
class Case:
    """One log to be cleaned by both."""

    topic: str
    story: Story
    segment_bytes: int
    delete_retention_ms: int
    first_dirty_offset: int | None

    @property
    def configs(self) -> dict[str, str]:
        return {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.0",
            "internal.segment.bytes": str(self.segment_bytes),
            "delete.retention.ms": str(self.delete_retention_ms),
            "index.interval.bytes": "100",
            "segment.ms": str(2**62),
        }


def random_cases(first: int, count: int, directory: Path) -> list[Case]:
    start_ms = int(time.time() * 1000) - 12 * DAY_MS
    cases = []
    for number in range(first, first + count):
        story = a_life(number, start_ms, directory / f"life-{number}")
        dirty = story.first_uncleanable_offset // 3 if number % 3 == 0 else None
        retention = (0, 5000, DAY_MS)[number % 3 if number % 2 else 1]
        cases.append(Case(f"random-{number}", story, (300, 1000, 1 << 30)[number % 3], retention, dirty))
    return cases


def lay(partition: Path, story: Story) -> None:
    """The segments of a story in place of what is in the directory of a partition."""
    for file in partition.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for segment in story.segments:
        (partition / f"{segment.base_offset:020d}.log").write_bytes(segment.data)


def logs_of(partition: Path) -> dict[int, bytes]:
    return {int(file.stem): file.read_bytes() for file in sorted(partition.glob("*.log"))}


def clean_by_kafka(kafka: Kafka, cases: list[Case], ends: dict[str, int]) -> tuple[int, int]:
    """Kafka makes the topics, gets their logs and cleans them; between which times."""
    with kafka.driver() as driver:
        for case in cases:
            driver.create_topic(case.topic, case.configs)
    kafka.stop()
    data = kafka.data_directory
    for name in CHECKPOINTS:
        (data / name).unlink(missing_ok=True)
    dirty = {(case.topic, 0): case.first_dirty_offset for case in cases if case.first_dirty_offset is not None}
    (data / CLEANER).write_bytes(format_offsets({name: offset for name, offset in dirty.items() if offset is not None}))
    for case in cases:
        lay(data / f"{case.topic}-0", case.story)
    began_ms = int(time.time() * 1000)
    kafka.start()
    wait_until_cleaned(data, ends)
    kafka.stop()
    return began_ms, int(time.time() * 1000)


def wait_until_cleaned(data: Path, ends: dict[str, int]) -> None:
    deadline = time.monotonic() + CLEAN_SECONDS
    missing = dict(ends)
    while missing:
        try:
            checkpoint = parse_offsets((data / CLEANER).read_bytes())
        except (FileNotFoundError, ValueError):
            checkpoint = {}
        missing = {topic: end for topic, end in ends.items() if checkpoint.get((topic, 0)) != end}
        if time.monotonic() > deadline:
            pytest.fail(f"Kafka has not cleaned {missing}; its checkpoint says {checkpoint}")
        if missing:
            time.sleep(0.1)


def open_as_crashed(partition: Path, case: Case) -> PartitionLog:
    """Lamina's view of the same log, read from the log itself."""
    config = LogConfig(segment_bytes=case.segment_bytes, segment_index_bytes=65536, index_interval_bytes=100)
    shape = IndexShape(65536, 100, OpenMaps(), IndexRebuilds())
    opening = Opening(
        clean=False,
        recovery_point=0,
        log_start_offset=0,
        high_watermark=2**63 - 1,
        may_have_gaps=True,
        now_ms=int(time.time() * 1000),
        producer_expiration_ms=2**31 - 1,
    )
    state, _ = open_log(Disk(), str(partition), shape, opening)
    return PartitionLog(Disk(), case.topic, 0, str(partition), config, shape, state)


def plan_by_lamina(partition: Path, case: Case, now_ms: int) -> Plan | None:
    """What Lamina would clean of it; None where nothing is dirty."""
    log = open_as_crashed(partition, case)
    segments = list(log.segments)
    stable = log.producers.first_unstable_offset()
    summaries = [
        SegmentSummary(s.base_offset, s.size_bytes, s.largest_timestamp().timestamp, s.modified_ms, s.first_timestamp())
        for s in segments
    ]
    end = log.log_end_offset
    summary = LogSummary(case.first_dirty_offset, 0, end, end if stable is None else stable, summaries)
    found = find_cleanable(summary, Lags(0, 2**63 - 1), now_ms)
    sources = [s for s in segments if s.base_offset < found.first_uncleanable_offset]
    aborted = tuple(AbortedEntry(*entry) for s in segments for entry in s.aborted.entries())
    producers = tuple(
        ActiveProducer(p.producer_id, p.epoch, p.last_data_offset if p.batches else None)
        for p in log.producers.producers.values()
    )
    log.close()
    if not found.is_eligible(0.0):
        return None
    bases = [*(s.base_offset for s in sources[1:]), found.first_uncleanable_offset]
    plan = Plan(
        plan_id="compared",
        topic=case.topic,
        topic_id=bytes(16),
        partition=0,
        directory=str(partition),
        pass_time_ms=now_ms,
        delete_retention_ms=case.delete_retention_ms,
        segment_bytes=case.segment_bytes,
        segment_index_bytes=65536,
        index_interval_bytes=100,
        max_message_bytes=1 << 20,
        first_dirty_offset=found.first_dirty_offset,
        first_uncleanable_offset=found.first_uncleanable_offset,
        segments=tuple(
            SourceSegment(s.base_offset, base, s.size_bytes, 0, 0, s.modified_ms, f"{s.base_offset:020d}.log")
            for s, base in zip(sources, bases, strict=True)
        ),
        producers=producers,
        aborted=aborted,
        memory_limit_bytes=1 << 24,
        throttle_bytes_per_second=None,
        hash_key=bytes(16),
    )
    Path(plan.pass_folder).mkdir()
    for s in sources:
        shutil.copyfile(s.path(), f"{plan.pass_folder}/{s.base_offset:020d}.log")
    return plan


def clean_by_lamina(plan: Plan) -> dict[int, dict[str, bytes]]:
    """The new segments, by base offset and extension."""
    manifest = clean_log(plan, "0")
    return {
        group.base_offset: {file.extension: Path(plan.pass_folder, file.name).read_bytes() for file in group.files}
        for group in manifest.groups
    }


def describe(data: bytes, began_ms: int, ended_ms: int, retention_ms: int) -> list[tuple[object, ...]]:
    """What must be alike of a segment's batches. A horizon that was set in this pass is only told as such."""
    found: list[tuple[object, ...]] = []
    for position, header in walk(data):
        records = read_records(data, position, header, LIMIT_BYTES)
        base_timestamp: object = header.base_timestamp
        is_new = False
        if header.attributes & DELETE_HORIZON_BIT:
            is_new = began_ms <= header.base_timestamp - retention_ms <= ended_ms
            base_timestamp = "set now" if is_new else header.base_timestamp
        kept = header._replace(base_timestamp=0, length=0, crc=0)
        exact = b"" if is_new or header.codec_id else data[position : position + header.size_bytes]
        found.append((kept, base_timestamp, tuple(records), exact))
    return found


def compare(kafka: Kafka, cases: list[Case], root: Path) -> int:
    """Clean all cases by both; how many were cleaned at all."""
    plans = {}
    for case in cases:
        partition = root / "lamina" / f"{case.topic}-0"
        partition.mkdir(parents=True)
        lay(partition, case.story)
        plan = plan_by_lamina(partition, case, int(time.time() * 1000))
        if plan is not None:
            plans[case.topic] = plan
    ends = {topic: plan.first_uncleanable_offset for topic, plan in plans.items()}
    began_ms, ended_ms = clean_by_kafka(kafka, cases, ends)
    began_ms = min([began_ms, *(plan.pass_time_ms for plan in plans.values())])
    for case in cases:
        partition = kafka.data_directory / f"{case.topic}-0"
        expected = logs_of(partition)
        if case.topic not in plans:
            assert expected == {s.base_offset: s.data for s in case.story.segments}, case.topic
            continue
        plan = plans[case.topic]
        cleaned = clean_by_lamina(plan)
        untouched = {
            s.base_offset: s.data for s in case.story.segments if s.base_offset >= plan.first_uncleanable_offset
        }
        ours = {base: files[".log"] for base, files in cleaned.items()} | untouched
        assert ours.keys() == expected.keys(), case.topic
        for base, data in expected.items():
            times = (began_ms, ended_ms, case.delete_retention_ms)
            assert describe(ours[base], *times) == describe(data, *times), f"{case.topic} from {base}"
        for base, files in cleaned.items():
            index = partition / f"{base:020d}.txnindex"
            theirs = index.read_bytes() if index.exists() else b""
            assert files.get(".txnindex", b"") == theirs, f"{case.topic} from {base}"
    return len(plans)


@pytest.mark.parametrize("first", range(0, LOGS, LOGS_AT_ONCE))
def test_kafka_and_lamina_leave_the_same_of_random_logs(tmp_path: Path, first: int) -> None:
    count = min(LOGS_AT_ONCE, LOGS - first)
    cases = random_cases(first, count, tmp_path / "lives")
    with Kafka(tmp_path / "kafka", SETTINGS) as kafka:
        cleaned = compare(kafka, cases, tmp_path)
    assert cleaned > count // 2


def hand_made() -> list[Case]:
    """Logs that each hold one thing, in every codec where that matters."""
    now_ms = int(time.time() * 1000)
    cases = []

    def case(name: str, *, retention: int = DAY_MS, dirty: int | None = None) -> Story:
        story = Story(now_ms=now_ms - DAY_MS, leader_epoch=0)
        cases.append(Case(name, story, 1 << 30, retention, dirty))
        return story

    for codec in Codec:
        story = case(f"codec-{codec.name.lower()}")
        for number in range(20):
            story.write([(b"%d" % (number * 7 % 5), b"%d" % number * 20), (b"t%d" % number, None)], codec=codec)
    story = case("abort-marker-in-the-active-segment")
    story.write([(b"k", b"committed")])
    story.write([(b"k", b"aborted")], producer=11, transactional=True)
    story.write([(b"other", b"1")])
    story = case("epoch-bumped-by-a-marker")
    story.write([(b"k", b"1")], producer=11, transactional=True)
    story.end(11, commit=True, bumps_epoch=True)
    story.write([(b"k", b"2")])
    story = case("clean-keys-twice", dirty=2)
    for value in (b"1", b"2"):
        story.write([(b"clean", value)])
    story.write([(b"dirty", b"3")])
    story = case("everything-superseded-by-one-batch")
    for number in range(10):
        story.write([(b"k", b"%d" % number)], producer=11)
    for each in cases:
        each.story.roll()
    aborted = next(each.story for each in cases if each.topic.startswith("abort"))
    aborted.end(11, commit=False)
    for each in cases:
        if not each.topic.startswith("abort"):
            each.story.write([(b"active", b"segment")])
    return cases


def test_kafka_and_lamina_leave_the_same_of_logs_made_by_hand(tmp_path: Path) -> None:
    cases = hand_made()
    with Kafka(tmp_path / "kafka", SETTINGS) as kafka:
        assert compare(kafka, cases, tmp_path) == len(cases)


def test_java_reads_every_codec_as_lamina_recompressed_it(tmp_path: Path) -> None:
    cases = [case for case in hand_made() if case.topic.startswith("codec")]
    expected = {}
    with Kafka(tmp_path / "kafka", SETTINGS | {"log.cleaner.enable": "false"}) as kafka:
        with kafka.driver() as driver:
            for case in cases:
                driver.create_topic(case.topic, case.configs)
        kafka.stop()
        for name in CHECKPOINTS:
            (kafka.data_directory / name).unlink(missing_ok=True)
        for case in cases:
            partition = tmp_path / "lamina" / f"{case.topic}-0"
            partition.mkdir(parents=True)
            lay(partition, case.story)
            plan = plan_by_lamina(partition, case, int(time.time() * 1000))
            assert plan is not None
            (cleaned,) = clean_by_lamina(plan).values()
            target = kafka.data_directory / f"{case.topic}-0"
            lay(target, case.story)
            (target / f"{0:020d}.log").write_bytes(cleaned[".log"])
            batches = [(header, position) for position, header in walk(cleaned[".log"])]
            assert {header.codec_id for header, _ in batches if header.record_count} == {
                read_header(case.story.segments[0].batches[0]).codec_id
            }
            expected[case.topic] = [
                (r.offset, r.key, r.value, r.timestamp)
                for header, position in batches
                for r in read_records(cleaned[".log"], position, header, LIMIT_BYTES)
            ]
        kafka.start()
        with kafka.driver() as driver:
            for topic, records in expected.items():
                seen = driver.read(topic, 0, "read_committed").records
                found = [(s.offset, s.record.key, s.record.value, s.record.timestamp_ms) for s in seen]
                assert found[: len(records)] == records, topic
                assert len(found) == len(records) + 1  # and the one in the active segment
