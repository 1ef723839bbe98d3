"""A log directory: its lock, its identity, its checkpoints, online or offline."""

import errno
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import cast

import pytest

from lamina.errors import StorageError
from lamina.log import offset_checkpoints
from lamina.log.directory import DirectoryError, LogDirectory
from lamina.log.epochs import LeaderEpochs
from lamina.log.files import Disk, File
from lamina.log.flushing import begin_flush
from lamina.log.leftovers import CLEANED
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import Segment
from lamina.log.steps import run_steps
from lamina.records.batch import read_header
from tests.log.building import NOW_MS, SMALL, a_batch, records_of

TOPIC_ID = bytes(range(16))

HOLD_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "a")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("refused", flush=True)
else:
    print("held", flush=True)
    sys.stdin.read()
"""


def opened(path: Path, node_id: int = 1, cluster_id: str | None = None, disk: Disk | None = None) -> LogDirectory:
    return LogDirectory.open(str(path), node_id=node_id, cluster_id=cluster_id, disk=disk)


def with_partition(path: Path, disk: Disk | None = None, batches: int = 3) -> tuple[LogDirectory, PartitionLog]:
    directory = opened(path, disk=disk)
    log = directory.create_partition("topic", 0, TOPIC_ID, SMALL, NOW_MS)
    append(log, batches)
    return directory, log


def append(log: PartitionLog, batches: int) -> None:
    for number in range(batches):
        batch = a_batch(b"k=%d" % number)
        log.append(batch, read_header(batch), 0, NOW_MS)


def a_process(path: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLD_LOCK, str(path / ".lock")]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_process_that_holds_the_lock_keeps_us_out(tmp_path: Path) -> None:
    with a_process(tmp_path) as process:
        assert first_line(process) == "held"
        with pytest.raises(DirectoryError, match="in use by another broker"):
            opened(tmp_path)
        process.communicate()
    opened(tmp_path).release()


def test_our_lock_keeps_another_process_out_until_we_close(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for expected in ("refused", "held"):
        with a_process(tmp_path) as process:
            assert first_line(process) == expected
            process.communicate()
        directory.release()


def test_the_same_process_is_kept_out_too_and_does_not_lose_its_lock(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    with pytest.raises(DirectoryError, match="in use"):
        opened(tmp_path)
    with a_process(tmp_path) as process:
        assert first_line(process) == "refused"
        process.communicate()
    directory.release()


def test_a_new_directory_gets_an_identity_and_keeps_it(tmp_path: Path) -> None:
    first = opened(tmp_path / "new", cluster_id="the-cluster")
    first.release()
    second = opened(tmp_path / "new", cluster_id="the-cluster")
    assert second.identity == first.identity
    assert (first.identity.cluster_id, first.identity.node_id) == ("the-cluster", 1)
    second.release()


def test_somebody_elses_directory_is_refused_with_a_sentence(tmp_path: Path) -> None:
    opened(tmp_path, cluster_id="ours").release()
    with pytest.raises(DirectoryError, match="belongs to node 1, this is node 2"):
        opened(tmp_path, node_id=2)
    with pytest.raises(DirectoryError, match="belongs to cluster ours, this one is theirs"):
        opened(tmp_path, cluster_id="theirs")
    (tmp_path / "meta.properties").write_text("version=9\n")
    with pytest.raises(DirectoryError, match="version 9"):
        opened(tmp_path)


def test_a_path_that_cannot_be_a_directory_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DirectoryError, match="cannot be used"):
        opened(tmp_path / "file" / "below")


def test_a_checkpoint_that_is_a_directory_is_refused_and_the_lock_given_back(tmp_path: Path) -> None:
    (tmp_path / "recovery-point-offset-checkpoint").mkdir()
    with pytest.raises(DirectoryError, match="Is a directory"):
        opened(tmp_path)
    (tmp_path / "recovery-point-offset-checkpoint").rmdir()
    opened(tmp_path).release()


@pytest.mark.parametrize("text", ["nonsense\n", "0\n1\n", "0\n1\ntopic 0 --1\n"])
def test_a_bad_checkpoint_is_taken_for_empty_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "log-start-offset-checkpoint").write_text(text)
    with caplog.at_level(logging.WARNING):
        directory = opened(tmp_path)
    assert directory.offset_checkpoints.log_starts == {}
    assert "taken for empty" in caplog.text
    directory.release()


def test_a_clean_stop_leaves_a_mark_that_the_next_start_takes_away(tmp_path: Path) -> None:
    directory, _ = with_partition(tmp_path)
    assert not directory.was_clean
    directory.close()
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    again = opened(tmp_path)
    assert again.was_clean
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert again.offset_checkpoints.recovery_points == {("topic", 0): 3}
    again.release()


def test_the_mark_tells_the_epoch_of_the_run_that_ends(tmp_path: Path) -> None:
    """KIP-966. Who opens the directory without being registered, as offline commands do, leaves what was told."""
    opened(tmp_path).close(broker_epoch=7)
    for _ in range(2):
        again = opened(tmp_path)
        assert again.broker_epoch == 7
        again.close()


def test_a_stop_that_is_not_to_count_as_clean_leaves_no_mark_and_nothing_to_recover(tmp_path: Path) -> None:
    directory, _ = with_partition(tmp_path)
    directory.close(is_marked=False)
    again = opened(tmp_path)
    assert not again.was_clean
    assert again.offset_checkpoints.recovery_points == {("topic", 0): 3}
    again.release()


def test_an_empty_mark_counts_too(tmp_path: Path) -> None:
    (tmp_path / ".kafka_cleanshutdown").touch()
    directory = opened(tmp_path)
    assert directory.was_clean
    directory.release()


def test_no_mark_is_left_while_a_log_still_has_to_be_recovered(tmp_path: Path) -> None:
    directory, log = with_partition(tmp_path)
    log.close()
    directory.release()
    opened(tmp_path).close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    directory = opened(tmp_path)
    directory.open_partitions(lambda topic: SMALL, NOW_MS)
    directory.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_many_partitions_are_recovered_on_threads(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for partition in range(12):
        append(directory.create_partition("topic", partition, TOPIC_ID, SMALL, NOW_MS), partition)
    for log in directory.logs.values():
        log.close()
    directory.release()
    directory = opened(tmp_path)
    progress: list[tuple[int, int]] = []
    logs = directory.open_partitions(
        lambda topic: SMALL, NOW_MS, threads=4, opened=lambda done, total: progress.append((done, total))
    )
    assert sorted((log.partition, len(records_of(log))) for log in logs) == [(each, each) for each in range(12)]
    assert progress == [(number, 12) for number in range(1, 13)]
    directory.close()


def test_a_controllers_log_and_directories_set_aside_are_no_partitions(tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "topic-0.0123456789abcdef0123456789abcdef-delete", "topic-1", "other"):
        (tmp_path / name).mkdir()
    directory = opened(tmp_path)
    assert directory.partitions() == [("topic", 1)]
    assert [Path(path).name for path in directory.deleted_directories()] == [
        "topic-0.0123456789abcdef0123456789abcdef-delete"
    ]
    directory.release()


class CreatingDisk(Disk):
    """Notes each file that is made, by its name."""

    def __init__(self) -> None:
        self.created: list[str] = []

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        if create and not Path(path).exists():
            self.created.append(Path(path).name)
        return super().open(path, write=write, create=create)


def test_the_files_of_a_new_partition_are_made_once(tmp_path: Path) -> None:
    disk = CreatingDisk()
    directory = opened(tmp_path / "logs", disk=disk)
    disk.created.clear()
    directory.make_partitions([("topic", 0, TOPIC_ID)])
    (log,) = directory.open_made([("topic", 0, SMALL)], NOW_MS)
    assert sorted(disk.created) == sorted(set(disk.created))
    assert {path.name for path in Path(log.path).iterdir()} == {
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    }
    append(log, 3)
    assert len(records_of(log)) == 3
    directory.close()


def test_the_newest_epoch_of_a_log_that_stays_closed_is_that_of_its_last_batch(tmp_path: Path) -> None:
    directory, log = with_partition(tmp_path, batches=0)
    for epoch in (2, 4):
        batch = a_batch(b"k=v")
        log.append(batch, read_header(batch), epoch, NOW_MS)
        log.roll(NOW_MS)
    directory.release()
    directory = opened(tmp_path)
    assert LeaderEpochs.load(Disk(), log.path).latest == -1, "nothing was flushed"
    assert directory.latest_epoch_of("topic", 0) == 4
    log = directory.open_partition("topic", 0, SMALL, NOW_MS)
    log.begin_epoch(6)
    directory.close()
    directory = opened(tmp_path)
    assert directory.latest_epoch_of("topic", 0) == 6
    directory.release()


def test_a_partition_without_a_directory_is_never_made_anew(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    with pytest.raises(StorageError):
        directory.open_partition("missing", 0, SMALL, NOW_MS)
    assert not (tmp_path / "missing-0").exists()
    directory.release()


def test_a_deleted_partition_leaves_the_checkpoints_and_waits_under_another_name(tmp_path: Path) -> None:
    directory, log = with_partition(tmp_path)
    directory.write_recovery_points()
    gone = directory.delete_partition("topic", 0)
    assert gone is not None
    assert directory.deleted_directories() == [gone]
    assert (directory.partitions(), directory.logs, directory.offset_checkpoints.recovery_points) == ([], {}, {})
    with pytest.raises(StorageError, match="was deleted"):
        append(log, 1)
    assert directory.delete_partition("topic", 0) is None
    directory.close()


def test_a_flush_of_a_deleted_partition_writes_no_epochs_into_the_one_that_was_made_again(tmp_path: Path) -> None:
    directory, log = with_partition(tmp_path)
    begun = begin_flush(log, log.log_end_offset)
    assert begun is not None
    directory.delete_partition("topic", 0)
    again = directory.create_partition("topic", 0, TOPIC_ID, SMALL, NOW_MS)
    begun.run()
    assert Path(again.epochs.path).read_bytes() == b"0\n0\n"
    directory.close()


def test_only_a_start_inside_the_first_segment_is_remembered(tmp_path: Path) -> None:
    directory, log = with_partition(tmp_path)
    directory.write_log_starts()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"
    log.advance_log_start(2)
    directory.write_log_starts()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\ntopic 0 2\n"
    log.close()
    directory.release()
    directory = opened(tmp_path)
    assert directory.open_partition("topic", 0, SMALL, NOW_MS).log_start_offset == 2
    directory.release()


def test_the_recovery_point_is_lowered_on_disk_before_the_end_is_cut(tmp_path: Path) -> None:
    directory, log = with_partition(tmp_path, batches=5)
    log.flushed_to(5)
    directory.write_recovery_points()
    run_steps(directory.truncate(log, 2, NOW_MS))
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\ntopic 0 2\n"
    run_steps(directory.truncate_fully(log, 7, NOW_MS))
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\ntopic 0 2\n"
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)
    directory.close()


def test_a_log_that_was_to_start_anew_when_the_disk_was_full_still_has_its_start_written_down_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, log = with_partition(tmp_path, batches=5)
    log.flushed_to(5)
    directory.write_recovery_points()
    with monkeypatch.context() as patch:
        patch.setattr(offset_checkpoints, "write_offsets", raise_no_space)
        with pytest.raises(StorageError, match="No space left"):
            run_steps(directory.truncate_fully(log, 3, NOW_MS))
    run_steps(directory.truncate(log, log.log_end_offset, NOW_MS))
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\ntopic 0 3\n"
    assert (log.log_start_offset, log.log_end_offset, log.is_truncating) == (3, 3, False)
    directory.close()


def test_a_partition_that_is_made_again_takes_no_log_start_over_from_a_truncation_of_the_one_before(
    tmp_path: Path,
) -> None:
    """A log that ends below its start counts as empty at the next start: its records would be removed."""
    directory, log = with_partition(tmp_path, batches=9)
    log.flushed_to(9)
    directory.write_recovery_points()
    steps = directory.truncate_fully(log, 5, NOW_MS)
    next(steps)()
    directory.delete_partition("topic", 0)
    append(directory.create_partition("topic", 0, bytes(16), SMALL, NOW_MS), batches=3)
    with pytest.raises(StorageError, match="was deleted"):
        run_steps(steps)
    directory.release()
    directory = opened(tmp_path)
    again = directory.open_partition("topic", 0, SMALL, NOW_MS)
    assert (again.log_start_offset, again.log_end_offset) == (0, 3)
    directory.close()


def raise_no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("writes_recovery_point", [True, False], ids=["lamina's", "adopted"])
def test_gaps_that_a_cleaner_left_are_no_damage_though_the_topic_is_not_compacted_any_more(
    tmp_path: Path, writes_recovery_point: bool
) -> None:
    """A cleaner's checkpoint tells, whoever wrote it; what was cleaned may lie above the recovery point."""
    directory = opened(tmp_path)
    compacted = replace(SMALL, segment_bytes=300, compact=True, delete=False)
    log = directory.create_partition("topic", 0, TOPIC_ID, compacted, NOW_MS)
    append(log, 20)
    old = list(log.segments)[1:3]
    new = Segment.create(directory.disk, log.path, old[0].base_offset, log.shape, NOW_MS, suffix=CLEANED)
    new.seal()
    run_steps(log.replace([new], old, NOW_MS))
    left = [record.offset for record in records_of(log)]
    assert left == [0, 1, 2, 3, *range(12, 20)]
    directory.write_cleaner_offsets({("topic", 0): log.segments.active.base_offset})
    if not writes_recovery_point:
        (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\ntopic 0 1\n")
    log.close()
    directory.release()
    directory = opened(tmp_path)
    log = directory.open_partition("topic", 0, replace(compacted, compact=False, delete=True), NOW_MS)
    assert [record.offset for record in records_of(log)] == left
    directory.release()


def test_the_cleaners_checkpoint_keeps_only_partitions_that_are_here(tmp_path: Path) -> None:
    """Fact 89."""
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n2\ngone 0 5\ntopic 0 1\n")
    directory, _ = with_partition(tmp_path)
    directory.write_cleaner_offsets({("topic", 0): 2})
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\ntopic 0 2\n"
    directory.close()


class BrokenDisk(Disk):
    """A disk on which every write fails once it is broken."""

    is_broken = False

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        return BrokenFile(self, path, super().open(path, write=write, create=create).fd)


class BrokenFile(File):
    def __init__(self, disk: BrokenDisk, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self.disk = disk

    def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> int:
        if self.disk.is_broken:
            raise OSError(5, "Input/output error")
        return super().pwrite(data, position)


def test_one_disk_error_takes_every_partition_of_the_directory_offline(tmp_path: Path) -> None:
    disk = BrokenDisk()
    directory, log = with_partition(tmp_path, disk)
    other = directory.create_partition("other", 0, TOPIC_ID, SMALL, NOW_MS)
    told: list[LogDirectory] = []
    directory.on_failure = told.append
    disk.is_broken = True
    with pytest.raises(StorageError, match="offline"):
        append(log, 1)
    disk.is_broken = False
    for each in (log, other):
        with pytest.raises(StorageError, match="offline"):
            append(each, 1)
    with pytest.raises(StorageError):
        directory.write_recovery_points()
    with pytest.raises(StorageError):
        directory.create_partition("third", 0, TOPIC_ID, SMALL, NOW_MS)
    assert told == [directory]
    directory.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


class SlowError(OSError):
    """An error that takes as long to explain as it takes the other thread to have one too."""

    both = Barrier(2, timeout=10)

    def __str__(self) -> str:
        self.both.wait()
        return "Input/output error"


def test_two_threads_that_find_the_disk_broken_tell_it_once(tmp_path: Path) -> None:
    directory, log = with_partition(tmp_path)
    told: list[LogDirectory] = []
    directory.on_failure = told.append
    with ThreadPoolExecutor(2) as pool:
        errors = list(pool.map(directory.fail, [SlowError(), SlowError()]))
    assert told == [directory]
    assert {str(error) for error in errors} == {directory.failure} == {log.failure}
    directory.close()


class LogOfAnotherThread:
    """Stands for a loop that opens a partition while the others are told."""

    def __init__(self, directory: LogDirectory, log: PartitionLog) -> None:
        self.directory, self.log = directory, log

    def take_offline(self, _: str) -> None:
        self.directory.logs.setdefault(("opened", 0), self.log)


def test_partitions_may_come_and_go_while_the_directory_fails(tmp_path: Path) -> None:
    directory, log = with_partition(tmp_path)
    directory.logs = {("first", 0): cast(PartitionLog, LogOfAnotherThread(directory, log)), ("topic", 0): log}
    assert "offline" in str(directory.fail(OSError(5, "Input/output error")))
    assert log.failure == directory.failure
    del directory.logs["first", 0]
    directory.close()


@pytest.mark.parametrize("fully", [False, True])
def test_cutting_a_log_lowers_the_cleaners_checkpoint_to_its_active_segment(tmp_path: Path, fully: bool) -> None:
    """Fact 28."""
    directory, log = with_partition(tmp_path)
    log.roll(NOW_MS)
    append(log, 3)
    directory.write_cleaner_offsets({("topic", 0): 5})
    run_steps(directory.truncate_fully(log, 1, NOW_MS)) if fully else run_steps(directory.truncate(log, 4, NOW_MS))
    assert log.segments.active.base_offset == (1 if fully else 3)
    assert directory.offset_checkpoints.cleaner_offsets == {("topic", 0): 1 if fully else 3}
    directory.close()
    again = opened(tmp_path)
    assert again.offset_checkpoints.cleaner_offsets == {("topic", 0): 1 if fully else 3}
    again.close()
