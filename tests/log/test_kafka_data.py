"""Kafka 4.1's own files: opened, read, appended to, recovered, and made again byte for byte.

Two things that Kafka writes are not made again here. The index entries of cleaned segments depend on the size
of the cleaner's buffer (fact 47), and a snapshot lists producers in the order of a hash table. A segment that
was active over a restart of Kafka has fewer index entries than ours would: Kafka forgets how much it wrote
since the last one. The directory `clean` was written in one go, so it has none of those.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamina.log.directory import LogDirectory
from lamina.log.epochs import EpochStart
from lamina.log.flushing import close_cleanly
from lamina.log.identity import format_id, read_topic_id
from lamina.log.partition_log import PartitionLog
from lamina.log.snapshots import pack_snapshot, unpack_snapshot
from lamina.records.batch import read_header
from lamina.records.record import Record
from lamina.settings.log_config import LogConfig
from tests.fixtures.kafka_data import DirectoryTruth, KafkaData, PartitionTruth, TopicTruth, load_fixture
from tests.log.building import LogBuilder, a_batch, batches_of, records_of, truncate_log
from tests.peers.driver import StoredRecord

# A time at which no producer of the fixture has expired.
NOW_MS = 1_700_000_000_000
CLUSTER_ID = "TGFtaW5hUGVlckthZmthMQ"

PLAIN = ("codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd", "appended", "transactions")
CLEANER_CHECKPOINT = 542


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> KafkaData:
    return load_fixture(tmp_path_factory.mktemp("kafka"))


def copied(truth: DirectoryTruth, tmp_path: Path) -> DirectoryTruth:
    directory = tmp_path / "data"
    shutil.copytree(truth.directory, directory, ignore=shutil.ignore_patterns("__cluster_metadata-0"))
    return replace(truth, directory=directory)


@pytest.fixture
def clean(unpacked: KafkaData, tmp_path: Path) -> DirectoryTruth:
    return copied(unpacked.clean, tmp_path)


@pytest.fixture
def unclean(unpacked: KafkaData, tmp_path: Path) -> DirectoryTruth:
    return copied(unpacked.unclean, tmp_path)


def config_of(topic: TopicTruth) -> LogConfig:
    configs = topic.configs
    return LogConfig(
        segment_bytes=int(configs.get("internal.segment.bytes") or configs["segment.bytes"]),
        segment_index_bytes=int(configs.get("segment.index.bytes", "65536")),
        index_interval_bytes=int(configs.get("index.interval.bytes", "4096")),
        retention_ms=int(configs.get("retention.ms", "604800000")),
        compact="compact" in configs.get("cleanup.policy", "delete"),
        delete="delete" in configs.get("cleanup.policy", "delete"),
    )


def open_all(truth: DirectoryTruth) -> LogDirectory:
    directory = LogDirectory.open(str(truth.directory), node_id=1, cluster_id=CLUSTER_ID)
    directory.open_partitions(lambda topic: config_of(truth.topics[topic]), NOW_MS, threads=2)
    return directory


def open_one(truth: DirectoryTruth, topic: str) -> tuple[LogDirectory, PartitionLog, PartitionTruth]:
    directory = LogDirectory.open(str(truth.directory), node_id=1, cluster_id=CLUSTER_ID)
    log = directory.open_partition(topic, 0, config_of(truth.topics[topic]), NOW_MS)
    return directory, log, truth.partition(topic)[1]


def each(directory: LogDirectory, truth: DirectoryTruth) -> Iterator[tuple[PartitionLog, PartitionTruth]]:
    for (topic, partition), log in directory.logs.items():
        yield log, truth.partition(topic, partition)[1]


def as_stored(record: Record) -> tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
    headers = tuple((key.decode(), value) for key, value in record.headers)
    return record.offset, record.timestamp, record.key, record.value, headers


def as_truth(stored: StoredRecord) -> tuple[int, int | None, bytes | None, bytes | None, object]:
    record = stored.record
    return stored.offset, record.timestamp_ms, record.key, record.value, record.headers


def committed_records(log: PartitionLog, last_stable_offset: int) -> list[Record]:
    """What a reader of committed records sees: neither aborted transactions nor anything above the stable end."""
    aborted = log.segments.aborted_between(log.log_start_offset, last_stable_offset)
    left_out = {
        offset
        for header, _ in batches_of(log)
        if header.is_transactional
        for entry in aborted
        if entry.producer_id == header.producer_id and entry.first_offset <= header.base_offset < entry.last_offset
        for offset in range(header.base_offset, header.next_offset)
    }
    return [
        record for record in records_of(log) if record.offset < last_stable_offset and record.offset not in left_out
    ]


def assert_as_the_truth(log: PartitionLog, truth: PartitionTruth) -> None:
    assert (log.log_start_offset, log.log_end_offset) == (truth.log_start_offset, truth.high_watermark), log.name
    unstable = log.producers.first_unstable_offset()
    assert (log.log_end_offset if unstable is None else unstable) == truth.last_stable_offset, log.name
    assert list(map(as_stored, records_of(log))) == list(map(as_truth, truth.records)), log.name
    committed = committed_records(log, truth.last_stable_offset)
    assert list(map(as_stored, committed)) == list(map(as_truth, truth.committed_records)), log.name


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_everything_that_the_java_consumer_saw_is_read_after_a_clean_stop(clean: DirectoryTruth) -> None:
    directory = open_all(clean)
    assert len(directory.logs) == 15
    for log, truth in each(directory, clean):
        assert_as_the_truth(log, truth)
    directory.close()


def test_everything_acknowledged_is_read_after_a_kill(unclean: DirectoryTruth) -> None:
    directory = open_all(unclean)
    assert len(directory.logs) == 16
    for log, truth in each(directory, unclean):
        assert_as_the_truth(log, truth)
    directory.close()
    again = open_all(unclean)
    assert again.was_clean
    for log, truth in each(again, unclean):
        assert_as_the_truth(log, truth)
    again.close()


def test_opening_and_closing_changes_nothing_that_kafka_wrote(clean: DirectoryTruth) -> None:
    before = contents(clean.directory)
    directory = open_all(clean)
    for log in directory.logs.values():
        records_of(log)
    directory.close()
    after = contents(clean.directory)
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert {name for name in after if name not in before} == {".lock"}


def test_the_identity_the_checkpoints_and_the_topic_ids_are_kafkas(clean: DirectoryTruth) -> None:
    directory = open_all(clean)
    assert (directory.identity.cluster_id, directory.identity.node_id) == (CLUSTER_ID, 1)
    assert directory.offset_checkpoints.log_starts == {("trimmed", 0): 68}
    assert directory.offset_checkpoints.cleaner_offsets == {("compacted", 0): CLEANER_CHECKPOINT}
    for key, log in directory.logs.items():
        assert (
            directory.offset_checkpoints.recovery_points[key]
            == directory.offset_checkpoints.high_watermarks[key]
            == log.log_end_offset
        )
        topic_id = read_topic_id(directory.disk, log.path)
        assert topic_id is not None
        assert format_id(topic_id) == clean.topics[log.topic].topic_id
    directory.close()


def test_leader_epochs_are_kept_and_recovered(unclean: DirectoryTruth) -> None:
    directory = open_all(unclean)
    epochs = {topic: log.epochs.entries for (topic, _), log in directory.logs.items()}
    assert epochs["codec-zstd"] == [EpochStart(0, 0), EpochStart(2, 240)]
    assert epochs["trimmed"] == [EpochStart(0, 68), EpochStart(2, 120)]
    for log in directory.logs.values():
        log.epochs.entries = []
        log.epochs.save()
    directory.release()
    directory = open_all(unclean)
    epochs["empty"] = []
    epochs["compacted"][0] = EpochStart(0, 40)  # the cleaner left nothing of what lay below
    assert {topic: log.epochs.entries for (topic, _), log in directory.logs.items()} == epochs
    directory.release()


def test_every_snapshot_of_kafka_is_read_and_written_alike(unpacked: KafkaData) -> None:
    snapshots = list(unpacked.clean.directory.rglob("*.snapshot"))
    assert len(snapshots) > 40
    for path in snapshots:
        assert pack_snapshot(unpack_snapshot(path.read_bytes())) == path.read_bytes()


def replayed(path: Path, config: LogConfig, batches: Iterator[bytes] | list[bytes], start_offset: int) -> LogBuilder:
    """The same batches through our own code."""
    builder = LogBuilder(path, config)
    truncate_log(builder.log, start_offset, NOW_MS, fully=True)
    for batch in batches:
        builder.log.append_as_follower(batch, read_header(batch).max_timestamp)
    return builder


def in_any_order(snapshot: bytes) -> list[str]:
    return sorted(map(str, unpack_snapshot(snapshot)))


@pytest.mark.parametrize("topic", [*PLAIN, "trimmed", "__consumer_offsets", "__transaction_state", "compacted"])
def test_our_files_are_kafkas_byte_for_byte(unpacked: KafkaData, tmp_path: Path, topic: str) -> None:
    source, _ = unpacked.clean.partition(topic)
    config = config_of(unpacked.clean.topics[topic])
    start_offset = min(int(path.stem) for path in source.glob("*.log"))
    if topic == "compacted":
        # Below the checkpoint the cleaner rewrote; and while this was written, the policy was to delete.
        start_offset, config = CLEANER_CHECKPOINT, replace(config, compact=False, delete=True)
    logs = [path for path in sorted(source.glob("*.log")) if int(path.stem) >= start_offset]
    batches = [
        bytes(path.read_bytes()[position : position + size_bytes])
        for path in logs
        for position, size_bytes in places(path.read_bytes())
    ]
    builder = replayed(tmp_path / "ours", config, batches, start_offset)
    close_cleanly(builder.log)
    made = [name for name in builder.names() if name.endswith((".log", ".index", ".timeindex", ".txnindex"))]
    written = [path.name for path in source.iterdir() if path.suffix in (".log", ".index", ".timeindex", ".txnindex")]
    assert made == sorted(name for name in written if int(name[:20]) >= start_offset)
    for name in made:
        assert (builder.path / name).read_bytes() == (source / name).read_bytes(), name
    if topic != "compacted":
        for path in source.glob("*.snapshot"):
            if int(path.stem) > start_offset:
                assert in_any_order((builder.path / path.name).read_bytes()) == in_any_order(path.read_bytes())


def places(data: bytes) -> list[tuple[int, int]]:
    found, position = [], 0
    while position < len(data):
        size_bytes = read_header(data, position).size_bytes
        found.append((position, size_bytes))
        position += size_bytes
    return found


@pytest.mark.parametrize("topic", PLAIN)
def test_recovery_makes_kafkas_indexes_again(clean: DirectoryTruth, topic: str) -> None:
    source, truth = clean.partition(topic)
    before = contents(source)
    for path in source.iterdir():
        if path.suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
            path.unlink()
    (clean.directory / ".kafka_cleanshutdown").unlink()
    (clean.directory / "recovery-point-offset-checkpoint").unlink()
    directory, log, _ = open_one(clean, topic)
    assert_as_the_truth(log, truth)
    directory.close()
    after = contents(source)
    assert sorted(before) == sorted(after)
    for name, data in before.items():
        same = in_any_order(data) == in_any_order(after[name]) if name.endswith(".snapshot") else data == after[name]
        assert same, name


@pytest.mark.parametrize("topic", ["codec-none", "transactions", "compacted", "trimmed"])
def test_records_appended_under_the_same_id_are_there_after_every_kind_of_stop(
    clean: DirectoryTruth, topic: str
) -> None:
    directory, log, truth = open_one(clean, topic)
    epoch = log.epochs.latest
    for number in range(40):
        batch = a_batch(b"mine=%d" % number, b"yours=%d" % number, timestamp=NOW_MS)
        log.append(batch, read_header(batch), epoch, NOW_MS)
    mine = [(truth.high_watermark + number, NOW_MS) for number in range(80)]
    for clean_stop in (True, False):
        if clean_stop:
            directory.close()
        else:
            log.close()
            directory.release()
        directory, log, _ = open_one(clean, topic)
        found = list(map(as_stored, records_of(log)))
        assert found[:-80] == list(map(as_truth, truth.records))
        assert [record[:2] for record in found[-80:]] == mine
        assert log.epochs.latest == epoch
    directory.release()


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbled", "zeroed"])
@pytest.mark.parametrize("extension", [".index", ".timeindex"])
def test_whatever_happens_to_an_index_the_same_records_are_read(
    clean: DirectoryTruth, extension: str, damage: str
) -> None:
    for path in clean.directory.glob(f"*/*{extension}"):
        data = path.read_bytes()
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(
                {"empty": b"", "cut": data[:-5], "garbled": data[::-1], "zeroed": bytes(len(data))}[damage]
            )
    directory = open_all(clean)
    for log, truth in each(directory, clean):
        assert_as_the_truth(log, truth)
        for stored in truth.records[::7]:
            lease = log.read(stored.offset, 1)
            assert lease is not None
            with lease:
                header = read_header(lease.read())
            assert header.last_offset >= stored.offset >= header.base_offset
    directory.close()


@pytest.mark.parametrize("damage", ["empty", "cut", "garbled"])
def test_a_damaged_transaction_index_is_made_again(clean: DirectoryTruth, damage: str) -> None:
    source, _ = clean.partition("transactions")
    before = contents(source)
    for path in source.glob("*.txnindex"):
        data = path.read_bytes()
        path.write_bytes({"empty": b"", "cut": data[:-5], "garbled": data[::-1]}[damage])
    directory, log, truth = open_one(clean, "transactions")
    assert_as_the_truth(log, truth)
    directory.close()
    assert {name: data for name, data in contents(source).items() if name.endswith(".txnindex")} == {
        name: data for name, data in before.items() if name.endswith(".txnindex")
    }
