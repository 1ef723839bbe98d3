"""A power cut after every operation of a pass, from its folder to its checkpoint (facts 82-85, reliability.md F8)."""

import shutil
from pathlib import Path
from random import Random

import pytest

from lamina.cleaning.contract import Manifest
from lamina.cleaning.gather import Taken, discard
from lamina.errors import CorruptMessage
from lamina.log.directory import LogDirectory
from lamina.log.files import Disk
from lamina.log.flushing import flush
from lamina.log.names import PASS_FOLDER_PREFIX
from lamina.log.partition_log import PartitionLog
from lamina.records.batch import read_header
from lamina.settings.log_config import LogConfig
from tests.cleaning.small_passes import TOPIC_ID, install, planned
from tests.log.building import NOW_MS, SMALL, a_batch, records_of
from tests.log.disk import RecordingDisk
from tests.log.story import open_directory

CONFIG = LogConfig(
    segment_bytes=SMALL.segment_bytes,
    segment_index_bytes=SMALL.segment_index_bytes,
    index_interval_bytes=SMALL.index_interval_bytes,
    compact=True,
    delete=False,
)
KEYS = (b"a", b"b", b"c")
SEGMENTS = 6
STATES = 3
"""Of the disk, after each operation."""

Offsets = list[int]


def a_directory(root: Path) -> tuple[RecordingDisk, LogDirectory, PartitionLog]:
    """Six closed segments of three records and an active one, all flushed."""
    root.mkdir()
    disk = RecordingDisk(str(root))
    directory = open_directory(f"{root}/data", disk)
    log = directory.create_partition("t", 0, TOPIC_ID, CONFIG, NOW_MS)
    for number in range(SEGMENTS * 3 + 1):
        if number and number % 3 == 0:
            log.roll(NOW_MS)
        batch = a_batch(KEYS[number % 3] + b"=%d" % number)
        log.append(batch, read_header(batch), 0, NOW_MS)
    flush(log)
    directory.write_recovery_points()
    return disk, directory, log


def clean(directory: LogDirectory, log: PartitionLog, plan_id: str) -> tuple[Taken, Manifest]:
    """One pass, as the broker makes it."""
    taken, manifest = planned(log, plan_id)
    install(log, taken, manifest)
    directory.write_cleaner_offsets({("t", 0): manifest.end_offset})
    discard(taken.plan, log.disk)
    for path in log.take_due_paths(NOW_MS + CONFIG.file_delete_delay_ms):
        log.disk.unlink(path)
    return taken, manifest


def offsets_of(log: PartitionLog) -> Offsets:
    return [record.offset for record in records_of(log)]


def latest_of(log: PartitionLog) -> dict[bytes, bytes | None]:
    return {record.key or b"": record.value for record in records_of(log)}


def check(root: str, before: Offsets, after: Offsets, latest: dict[bytes, bytes | None]) -> Offsets:
    """Open what the power cut left. Returns the offsets that are there."""
    directory = open_directory(f"{root}/data", Disk())
    (log,) = directory.open_partitions(lambda _: CONFIG, NOW_MS)
    found = offsets_of(log)
    assert set(after) <= set(found) <= set(before)
    # Groups are swapped one after another, the oldest first: what is cleaned lies before what is not.
    assert latest_of(log) == latest
    left = [path.name for path in Path(log.path).iterdir()]
    assert not [name for name in left if name.endswith((".cleaned", ".swap", ".deleted", ".tmp"))], left
    assert not [name for name in left if name.startswith(PASS_FOLDER_PREFIX)], left
    if ("t", 0) in directory.offset_checkpoints.cleaner_offsets:
        assert directory.offset_checkpoints.cleaner_offsets["t", 0] == SEGMENTS * 3
        assert found == after, "the checkpoint came before what it speaks of"
    assert log.log_end_offset == SEGMENTS * 3 + 1
    clean(directory, log, "p2")
    assert offsets_of(log) == after, "a later pass does not lead to the same log"
    directory.close()
    return found


def cut_power_everywhere(root: Path) -> tuple[list[Offsets], Offsets, Offsets]:
    disk, directory, log = a_directory(root / "live")
    before, latest, first = offsets_of(log), latest_of(log), len(disk.ops)
    clean(directory, log, "p1")
    after, target = offsets_of(log), root / "crashed"
    assert len(after) < len(before)
    outcomes = []
    for op in range(first, len(disk.ops) + 1):
        for state in range(STATES):
            disk.crash(op, Random(op * STATES + state), str(target))
            try:
                outcomes.append(check(str(target), before, after, latest))
            except Exception as error:
                error.add_note(f"power cut after operation {op}: {disk.ops[op - 1]}, state {state}")
                raise
            finally:
                shutil.rmtree(target, ignore_errors=True)
    directory.release()
    return outcomes, before, after


def test_a_power_cut_at_any_operation_of_a_pass_leaves_a_sound_log_and_nothing_else(tmp_path: Path) -> None:
    """Facts 44, 78, 79 and 82-85: groups are put in place one after another, so some may be cleaned and others not."""
    outcomes, before, after = cut_power_everywhere(tmp_path)
    assert before in outcomes
    assert after in outcomes
    assert any(outcome not in (before, after) for outcome in outcomes)
    assert outcomes[-1] == after


def test_without_any_sync_of_the_new_files_a_power_cut_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.log.swap.sync_file", lambda *_: True)
    with pytest.raises(CorruptMessage) as found:
        cut_power_everywhere(tmp_path)
    assert found.value.__notes__[0].startswith("power cut after operation"), "the pass failed, not the log after it"
