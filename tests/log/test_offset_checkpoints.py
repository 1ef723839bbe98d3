"""What a checkpoint must not say any more is off the disk before anybody relies on that, also after a full disk."""

import errno
import shutil
from pathlib import Path

import pytest

from lamina.errors import StorageError
from lamina.log.checkpoints import LOG_START, RECOVERY_POINT, read_offsets
from lamina.log.directory import LogDirectory
from lamina.log.files import Disk, File
from lamina.log.flushing import flush
from lamina.log.partition_log import PartitionLog
from lamina.log.steps import run_steps
from lamina.records.batch import read_header
from lamina.settings.log_config import LogConfig
from tests.log.building import NOW_MS, a_batch, records_of

CONFIG = LogConfig()


class FullDisk(Disk):
    """One that is full for checkpoints, when it is."""

    is_full = False

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        if self.is_full and path.endswith("checkpoint.tmp"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return super().open(path, write=write, create=create)


class Logs:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.disk = FullDisk()
        self.directory = LogDirectory.open(str(path), node_id=1, disk=self.disk)

    def create(self, topic_id: bytes, batches: int) -> PartitionLog:
        log = self.directory.create_partition("t", 0, topic_id, CONFIG, NOW_MS)
        self.write(log, batches)
        return log

    def write(self, log: PartitionLog, batches: int) -> None:
        for number in range(batches):
            batch = a_batch(b"k=v%d" % number)
            log.append(batch, read_header(batch), 0, NOW_MS)
        flush(log)
        self.directory.write_recovery_points()

    def on_disk(self, name: str) -> int | None:
        return read_offsets(self.disk, f"{self.path}/{name}").get(("t", 0))

    def after_a_crash(self) -> PartitionLog:
        shutil.copytree(self.path, f"{self.path}-crashed")
        directory = LogDirectory.open(f"{self.path}-crashed", node_id=1)
        return directory.open_partition("t", 0, CONFIG, NOW_MS)


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path / "logs")


def test_a_topic_deleted_on_a_full_disk_says_nothing_of_the_next_one(logs: Logs) -> None:
    log = logs.create(b"1" * 16, 100)
    log.advance_log_start(50)
    logs.directory.write_log_starts()
    logs.disk.is_full = True
    with pytest.raises(StorageError, match="cannot be written"):
        logs.directory.delete_partition("t", 0)
    logs.disk.is_full = False
    logs.create(b"2" * 16, 10)
    assert logs.on_disk(LOG_START) is None
    after = logs.after_a_crash()
    assert (len(records_of(after)), after.log_start_offset, after.log_end_offset) == (10, 0, 10)


def test_a_truncation_on_a_full_disk_lowers_the_recovery_point_when_it_is_done_again(logs: Logs) -> None:
    log = logs.create(b"1" * 16, 100)
    logs.disk.is_full = True
    for _ in range(2):
        with pytest.raises(StorageError, match="cannot be written"):
            run_steps(logs.directory.truncate(log, 20, NOW_MS))
    assert logs.on_disk(RECOVERY_POINT) == 100
    logs.disk.is_full = False
    run_steps(logs.directory.truncate(log, 20, NOW_MS))
    assert (log.log_end_offset, logs.on_disk(RECOVERY_POINT)) == (20, 20)


def test_what_is_written_by_the_clock_pays_what_is_owed(logs: Logs) -> None:
    log = logs.create(b"1" * 16, 100)
    logs.disk.is_full = True
    with pytest.raises(StorageError):
        run_steps(logs.directory.truncate(log, 20, NOW_MS))
    logs.disk.is_full = False
    older = logs.directory.collect_recovery_points()
    newer = logs.directory.collect_recovery_points()
    logs.directory.write_checkpoints(older)
    assert RECOVERY_POINT in logs.directory.forget([]), "what was collected before the newest is no payment"
    logs.directory.write_checkpoints(newer)
    assert logs.directory.forget([]) == {}


def test_what_is_older_never_replaces_what_is_newer(logs: Logs) -> None:
    """Two threads write: the one that began first may be the last to come to it."""
    log = logs.create(b"1" * 16, 3)
    older = logs.directory.collect_recovery_points()
    logs.write(log, 2)
    logs.directory.write_checkpoints(older)
    assert logs.on_disk(RECOVERY_POINT) == 5


def test_truncating_at_the_log_end_forgets_an_epoch_without_records(logs: Logs) -> None:
    """R28, KAFKA-10706: two elections without records; it would be compared with the leader's for ever."""
    log = logs.create(b"1" * 16, 3)
    log.epochs.assign(7, 3)
    run_steps(logs.directory.truncate(log, 3, NOW_MS))
    assert (log.log_end_offset, log.epochs.entries) == (3, [(0, 0)])
    assert logs.after_a_crash().epochs.entries == [(0, 0)]
    run_steps(logs.directory.truncate(log, 9, NOW_MS))
    assert (log.log_end_offset, log.epochs.entries) == (3, [(0, 0)])
