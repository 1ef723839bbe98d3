"""A log directory is taken: what its checkpoints say never goes beyond what was taken of its logs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.log.backup.copier import Copier, Step
from lamina.log.backup.directory import LOGS, DirectoryBackup, TakenPartition, checkpoint_contents
from lamina.log.checkpoints import write_offsets
from lamina.log.directory import LogDirectory
from lamina.log.files import Disk
from lamina.log.flushing import flush
from lamina.log.identity import Identity, write_meta_properties
from lamina.log.steps import run_steps
from lamina.records.batch import read_header
from lamina.settings.log_config import LogConfig
from tests.log.backup.taking import TOPIC_ID, Act, drive
from tests.log.building import NOW_MS, a_batch, batches_of
from tests.log.verify.sample import findings

CONFIG = LogConfig(segment_bytes=330, segment_index_bytes=1200, index_interval_bytes=200)
KEY = ("topic", 0)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[LogDirectory]:
    directory = LogDirectory.open(str(tmp_path / "data"), node_id=1, cluster_id="c")
    directory.create_partition(*KEY, TOPIC_ID, CONFIG, NOW_MS)
    append(directory, 20)
    flush(directory.logs[KEY])
    directory.write_recovery_points()
    directory.write_high_watermarks({KEY: 20})
    yield directory
    directory.release()


def append(directory: LogDirectory, count: int, epoch: int = 0) -> None:
    for number in range(count):
        batch = a_batch(b"k=%d" % number)
        directory.logs[KEY].append(batch, read_header(batch), epoch, NOW_MS)


def take(
    tmp_path: Path, act: Act = lambda _number, _step: None, *, is_running: bool = True
) -> tuple[TakenPartition, bool]:
    """What was taken of the one partition, and whether the directory stood still; the backup is made whole."""
    disk = Disk()
    backup = DirectoryBackup(disk, str(tmp_path / "data"), 0, lambda _path: is_running, lambda: None)
    root = tmp_path / "backup"
    root.mkdir()
    taken = drive(backup.take(Copier(disk, str(root), may_link=True), {KEY: TOPIC_ID}), act)
    logs = str(root / LOGS)
    write_meta_properties(disk, logs, Identity("c", 1, None))
    for name, offsets in checkpoint_contents(list(taken.values())).items():
        write_offsets(disk, f"{logs}/{name}", offsets)
    return taken[KEY], backup.is_still()


def opened(tmp_path: Path) -> list[tuple[int, bytes]]:
    assert [finding for finding in findings(tmp_path / "backup" / LOGS) if finding.severity == "error"] == []
    directory = LogDirectory.open(str(tmp_path / "backup" / LOGS), node_id=1)
    log = directory.open_partition(*KEY, CONFIG, NOW_MS)
    found = [(header.base_offset, data) for header, data in batches_of(log)]
    directory.release()
    return found


@pytest.mark.parametrize("step", range(12))
def test_a_cut_at_any_step_leaves_the_log_from_before_it_or_from_after_it(
    tmp_path: Path, source: LogDirectory, step: int
) -> None:
    """And never a byte of the one in a file of the other."""
    log = source.logs[KEY]
    before = [(header.base_offset, data) for header, data in batches_of(log)]

    def act(number: int, _step: Step) -> None:
        if number == step:
            run_steps(source.truncate(log, 7, NOW_MS))
            append(source, 9, epoch=1)

    taken, _ = take(tmp_path, act)
    after = [(header.base_offset, data) for header, data in batches_of(log)]
    assert opened(tmp_path) in (before, after, after[:7])
    assert taken.recovery_point <= taken.end_offset


def test_checkpoints_are_made_to_fit(tmp_path: Path, source: LogDirectory) -> None:
    log = source.logs[KEY]
    log.advance_log_start(9)
    source.write_log_starts()
    taken, is_still = take(tmp_path)
    assert not is_still
    assert (taken.log_start_offset, taken.end_offset, taken.high_watermark) == (9, 20, 20)
    assert taken.recovery_point == taken.segments[-1].base_offset < 20
    assert opened(tmp_path)[0][0] == 9


def test_a_directory_that_was_stopped_cleanly_is_still(tmp_path: Path, source: LogDirectory) -> None:
    source.close()
    taken, is_still = take(tmp_path, is_running=False)
    assert is_still
    assert taken.recovery_point == 20
    names = {path.name for path in (tmp_path / "backup/logs/topic-0").iterdir()}
    assert names == {path.name for path in (tmp_path / "data/topic-0").iterdir()}


@pytest.mark.parametrize("step", range(9))
def test_a_directory_in_which_a_broker_starts_meanwhile_is_not_still(
    tmp_path: Path, source: LogDirectory, step: int
) -> None:
    source.close()

    def act(number: int, _step: Step) -> None:
        if number == step:
            again = LogDirectory.open(str(tmp_path / "data"), node_id=1)
            again.open_partition(*KEY, CONFIG, NOW_MS)
            append(again, 20, epoch=1)
            again.close()

    taken, is_still = take(tmp_path, act, is_running=False)
    assert not is_still
    assert [base for base, _ in opened(tmp_path)] == list(range(taken.end_offset))
    assert taken.end_offset >= 20
