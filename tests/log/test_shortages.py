"""Running out of descriptors, or of room for a checkpoint, fails what was asked for, takes nothing offline, and is over
when there is enough again."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from lamina.errors import StorageError
from lamina.log.descriptors import DescriptorReserve
from lamina.log.steps import run_steps
from tests.log.building import a_log, batches_of
from tests.log.faulty import FaultyDisk
from tests.log.oracle import check_reopening
from tests.log.story import NOW_MS, Known, Moment, Story
from tests.log.test_faults import is_of_a_checkpoint, prepare, tell

STEPS = "append roll flush expire clean write_checkpoints"
NEEDS_A_DESCRIPTOR = ("open", "open_dir", "sync_dir")


def each_shortage(disk: FaultyDisk) -> list[int]:
    """The operations of what was just done that could have found no descriptor."""
    return [nth for nth, name in enumerate(disk.ops) if name.split()[0] in NEEDS_A_DESCRIPTOR]


def check_online(story: Story, told: list[object]) -> None:
    assert told == []
    assert story.directory.failure is None
    assert story.log.failure is None


@pytest.mark.parametrize("step", STEPS.split())
def test_what_fails_for_want_of_a_descriptor_can_be_done_again(tmp_path: Path, step: str) -> None:
    seed, shortages = 0, list[int]()
    while not shortages:  # Not every append rolls.
        seed += 1
        assert seed < 10, "the step opens nothing"
        disk, story, _ = tell(tmp_path / f"good-{seed}", step, seed)
        action = prepare(story, step)
        disk.arm(-1, 0)
        story.do(step, action)
        shortages = each_shortage(disk)
    for nth in shortages:
        path = tmp_path / "short"
        disk, story, told = tell(path, step, seed)
        action = prepare(story, step)
        disk.arm(nth, errno.EMFILE)
        with pytest.raises(StorageError, match="cannot open files for now"):
            story.do(step, action)
        check_online(story, list(told))
        disk.arm(-1, 0)
        story.do(step, action)
        held = [batch.data for batch in story.known.present if batch.last_offset >= story.log.log_start_offset]
        assert [data for _, data in batches_of(story.log)] == held
        story.log.close()
        story.directory.release()
        shutil.rmtree(path / "other-0")
        check_reopening(str(path), FaultyDisk(), Moment(step, 0, 0, story.known, story.known), story.config)
        shutil.rmtree(path)


def each_checkpoint(disk: FaultyDisk) -> list[int]:
    return [nth for nth in range(len(disk.ops)) if is_of_a_checkpoint(disk.ops, nth)]


SHORTAGES = {
    "descriptors": (errno.ENFILE, each_shortage, "cannot open files for now"),
    "room for a checkpoint": (errno.ENOSPC, each_checkpoint, "a checkpoint of .* cannot be written"),
}


@pytest.mark.parametrize("of", SHORTAGES)
@pytest.mark.parametrize("fully", [False, True])
def test_a_truncation_that_fails_for_want_of_something_can_be_done_again(tmp_path: Path, fully: bool, of: str) -> None:
    error, moments, said = SHORTAGES[of]
    disk, story, _ = tell(tmp_path / "good", "truncate", 1)
    offset = story.log.log_start_offset + 5
    cut = story.directory.truncate_fully if fully else story.directory.truncate
    disk.arm(-1, 0)
    run_steps(cut(story.log, offset, NOW_MS))
    assert moments(disk)
    for nth in moments(disk):
        path = tmp_path / "short"
        disk, story, told = tell(path, "truncate", 1)
        cut = story.directory.truncate_fully if fully else story.directory.truncate
        left = [] if fully else [batch for batch in story.known.present if batch.last_offset < offset]
        disk.arm(nth, error)
        with pytest.raises(StorageError, match=said):
            run_steps(cut(story.log, offset, NOW_MS))
        check_online(story, list(told))
        disk.arm(-1, 0)
        run_steps(cut(story.log, offset, NOW_MS))
        assert [data for _, data in batches_of(story.log)] == [batch.data for batch in left]
        story.known = Known(tuple(left), tuple(left))
        story.do("append", story.append)
        story.log.close()
        story.directory.release()
        shutil.rmtree(path / "other-0")
        check_reopening(str(path), FaultyDisk(), Moment("append", 0, 0, story.known, story.known), story.config)
        shutil.rmtree(path)


def test_a_checkpoint_that_finds_no_room_is_written_later(tmp_path: Path) -> None:
    disk, story, _ = tell(tmp_path / "good", "write_checkpoints", 1)
    disk.arm(-1, 0)
    story.do("write_checkpoints", story.write_checkpoints)
    for nth in each_checkpoint(disk):
        disk, story, told = tell(tmp_path / "full", "write_checkpoints", 1)
        disk.arm(nth, errno.ENOSPC)
        with pytest.raises(StorageError, match=r"a checkpoint of .* cannot be written"):
            story.do("write_checkpoints", story.write_checkpoints)
        check_online(story, list(told))
        disk.arm(-1, 0)
        story.do("write_checkpoints", story.write_checkpoints)
        story.directory.close()
        shutil.rmtree(tmp_path / "full")


def test_an_abort_marker_for_which_no_index_can_be_opened_is_not_written(tmp_path: Path) -> None:
    disk = FaultyDisk()
    builder = a_log(tmp_path, disk)
    builder.append(b"a=1", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    disk.arm(0, errno.EMFILE)
    with pytest.raises(StorageError):
        builder.abort(1)
    assert (builder.log.log_end_offset, builder.log.producers.first_unstable_offset()) == (1, 0)
    assert builder.abort(1).first_offset == 1
    assert [entry.first_offset for entry in builder.log.segments.aborted_between(0, 2)] == [0]


def test_a_reader_that_finds_no_descriptor_may_come_again(tmp_path: Path) -> None:
    disk = FaultyDisk()
    builder = a_log(tmp_path, disk, segment_bytes=300)
    builder.append_batches(20)
    builder.reopen()
    disk.arm(-1, 0)
    expected = builder.read(0)
    for nth in range(len(disk.ops)):
        builder.reopen()
        disk.arm(nth, errno.EMFILE)
        with pytest.raises(StorageError):
            builder.read(0)
        assert builder.read(0) == expected


def test_the_reserve_is_spent_when_nothing_else_is_left_and_filled_again() -> None:
    reserve = DescriptorReserve()
    reserve.hold(2)
    shortage = [OSError(errno.EMFILE, "Too many open files")] * 2

    def operation() -> str:
        if shortage:
            raise shortage.pop()
        return "done"

    assert reserve.spend(operation) == "done"
    assert len(reserve) == 0
    assert reserve.spend(operation) == "done"
    assert len(reserve) == 2
    shortage += [OSError(errno.EMFILE, "Too many open files")] * 3
    with pytest.raises(OSError, match="Too many open files"):
        reserve.spend(operation)
    reserve.hold(0)
    assert len(reserve) == 0


def test_another_error_costs_no_reserve() -> None:
    reserve = DescriptorReserve()
    reserve.hold(1)
    with pytest.raises(FileNotFoundError):
        reserve.spend(lambda: os.open("/nowhere/at/all", os.O_RDONLY))
    assert len(reserve) == 1
    reserve.hold(0)


def test_partitions_that_nobody_writes_to_hold_no_descriptors(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    builder = a_log(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
    builder.append(b"k=v")
    assert len(os.listdir("/proc/self/fd")) > before
    builder.log.close()
