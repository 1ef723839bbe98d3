"""The crash proof: whatever the log room does, a power cut after any operation leaves a log that opens and is right."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from lamina.log import flushing, recovery
from lamina.log.directory import LogDirectory
from lamina.log.files import sync_file
from lamina.log.flushing import Flush
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import Segment
from lamina.log.steps import Steps, run_steps
from lamina.log.swap import Swap
from tests.log import story as story_module
from tests.log.disk import RecordingDisk
from tests.log.oracle import check_reopening, moment_at
from tests.log.story import Story

pytestmark = pytest.mark.random

STORIES = int(os.environ.get("LAMINA_STORIES", "6"))
"""Random lives of a log; `make faults` tells many more."""
STORIES_UNTIL_FOUND = 30
"""How many it may take until one shows that a rule is broken."""
STATES_PER_STORY = 30
STEPS = 14
PARTS = 4
"""Every operation of a story is too much for one test."""

SCRIPTS = {
    "cut": "append append append append flush write_checkpoints truncate append append append append",
    "cut with a log start": "append append append move_log_start write_checkpoints truncate append flush",
    "closed after its flush": "append flush write_checkpoints roll append",
    "a name used again": "append append append flush move_log_start write_checkpoints delete_and_create append append",
    "rolled before its first flush": "append append roll append roll append append",
    "epochs of a flushed segment": "append stop_and_start append append append roll append flush write_checkpoints",
    "all expired": "append append append flush expire expire append write_checkpoints append flush",
}
"""Stories in which one rule of the log room matters, too rare to wait for them."""


def tell(root: Path, seed: int, *, compact: bool, script: str = "") -> tuple[RecordingDisk, Story]:
    root.mkdir()
    disk = RecordingDisk(str(root))
    story = Story(disk, f"{root}/data", Random(seed), compact=compact, count_ops=lambda: len(disk.ops))
    return disk, story.follow(script.split()) if script else story.live(STEPS)


def crash_and_check(disk: RecordingDisk, story: Story, op: int, seed: int, root: Path) -> None:
    """One power cut after ``op`` operations, and one more while that is being recovered from."""
    rng = Random(seed)
    first, second = root / "first", root / "second"
    try:
        moment = moment_at(story.moments, op)
        disk.crash(op, rng, str(first))
        recovering = RecordingDisk(str(first))
        operations = check_reopening(f"{first}/data", recovering, moment, story.config)
        recovering.crash(rng.randint(0, operations), rng, str(second))
        check_reopening(f"{second}/data", RecordingDisk(str(second)), moment, story.config)
    except Exception as error:
        error.add_note(f"power cut after operation {op}, {moment.step}, seed {seed}")
        raise
    finally:
        shutil.rmtree(first, ignore_errors=True)
        shutil.rmtree(second, ignore_errors=True)


def cut_power(root: Path, seed: int, *, compact: bool, script: str = "") -> None:
    disk, story = tell(root / f"live-{seed}-{compact}", seed, compact=compact, script=script)
    rng = Random(seed)
    for number in range(STATES_PER_STORY):
        crash_and_check(disk, story, rng.randint(0, len(disk.ops)), seed * 1000 + number, root)


@pytest.mark.parametrize("compact", [False, True], ids=["delete", "compact"])
@pytest.mark.parametrize("seed", range(STORIES))
def test_after_a_power_cut_the_log_opens_with_all_that_was_flushed(tmp_path: Path, seed: int, compact: bool) -> None:
    cut_power(tmp_path, seed, compact=compact)


@pytest.mark.parametrize("script", SCRIPTS)
def test_after_a_power_cut_in_a_story_of_one_rule_the_log_is_right(tmp_path: Path, script: str) -> None:
    for seed in range(STORIES // 3):
        cut_power(tmp_path, seed, compact=False, script=SCRIPTS[script])


EVERYTHING = (
    "append append roll append flush write_checkpoints append append truncate append move_log_start append roll append "
    "flush append append roll append append flush {more} append roll append truncate_fully append flush "
    "write_checkpoints append stop_and_start append remove_due stop_and_start"
)


@pytest.mark.parametrize(
    ("compact", "more"),
    [(False, "expire append delete_and_create append roll append flush expire append"), (True, "clean append clean")],
)
@pytest.mark.parametrize("seed", range(max(STORIES // 15, 1)))
@pytest.mark.parametrize("part", range(PARTS))
def test_after_a_power_cut_at_any_operation_of_every_kind_the_log_is_right(
    tmp_path: Path, compact: bool, more: str, seed: int, part: int
) -> None:
    disk, story = tell(tmp_path / "live", seed, compact=compact, script=EVERYTHING.format(more=more))
    for op in range(part, len(disk.ops) + 1, PARTS):
        crash_and_check(disk, story, op, seed * 10_000 + op, tmp_path)


Break = tuple[object, str, object, str]
"""Where, what, by what it is replaced; and the script that shows it, if no random story does."""


def _no_checkpoints(*_: object) -> dict[str, object]:
    return {}


def _nothing(*_arguments: object) -> None:
    return


def _no_steps(*_: object) -> Steps:
    return iter(())


def _rename_all(log: PartitionLog, new: Sequence[Segment], old: Sequence[Segment], now_ms: int) -> None:
    """A replacement that does not wait for the disk between its steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Swap, "_sync_names", _nothing)
        run_steps(log.replace(new, old, now_ms))


def _run_without_epochs(flush: Flush) -> None:
    for path in flush.paths:
        sync_file(flush.disk, path)
    flush.disk.sync_dir(flush.directory)


def _run_without_names(flush: Flush) -> None:
    flush.epochs.save()
    for path in flush.paths:
        sync_file(flush.disk, path)


BROKEN: dict[str, Break] = {
    "the recovery point stays up when the log is cut": (
        LogDirectory,
        "_lower_checkpoints",
        _no_steps,
        SCRIPTS["cut"],
    ),
    "segments are replaced without syncing their names": (story_module, "swap_in", _rename_all, ""),
    "a flush forgets the names": (Flush, "run", _run_without_names, ""),
    "a flush forgets the leader epochs": (Flush, "run", _run_without_epochs, SCRIPTS["epochs of a flushed segment"]),
    "files are not flushed at all": (flushing, "sync_file", _nothing, ""),
    "a gap between segments is overlooked": (recovery, "_gap_before", _nothing, ""),
    "an old partition's checkpoints speak for a new one": (
        LogDirectory,
        "forget",
        _no_checkpoints,
        SCRIPTS["a name used again"],
    ),
}


def cut_power_in_all_stories(root: Path, script: str) -> None:
    for seed in range(STORIES_UNTIL_FOUND):
        for compact in (True, False) if not script else (False,):
            cut_power(root, seed, compact=compact, script=script)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, attribute, replacement, script = BROKEN[name]
    monkeypatch.setattr(owner, attribute, replacement)
    with pytest.raises(AssertionError) as found:
        cut_power_in_all_stories(tmp_path, script)
    assert found.value.__notes__[0].startswith("power cut after operation"), "the story failed, not the log after it"
