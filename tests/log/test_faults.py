"""Disk errors: every operation of every step fails once, with every error, and the directory goes offline in order."""

import errno
import shutil
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from random import Random

import pytest

from lamina.errors import StorageError
from lamina.log.directory import DirectoryError, LogDirectory
from lamina.log.files import File
from lamina.log.flushing import Flusher, flush
from lamina.log.lease import Lease
from lamina.log.steps import run_steps
from lamina.records.batch import check_crc, read_header, walk
from lamina.records.record import Record, build_batch
from lamina.settings.log_config import LogConfig
from tests.log.faulty import FaultyDisk
from tests.log.oracle import check_reopening
from tests.log.story import NOW_MS, TOPIC, TOPIC_ID, Moment, Story, open_directory, run_inline, told_inline

ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS)
STEPS = "append roll flush truncate truncate_fully expire clean write_checkpoints stop delete_and_create"
SEEDS = range(2)


def tell(path: Path, step: str, seed: int) -> tuple[FaultyDisk, Story, list[LogDirectory]]:
    """A log of several segments, partly flushed, beside another partition; and who was told of a failure."""
    disk, told = FaultyDisk(), list[LogDirectory]()
    story = Story(disk, str(path), Random(seed), compact=step == "clean", count_ops=lambda: 0)
    story.directory.on_failure = told.append
    story.log.on_roll = story.flusher = None
    story.follow([*["append"] * 3, "write_checkpoints", "append", "flush", *["append"] * 3])
    story.directory.create_partition("other", 0, TOPIC_ID, story.config, NOW_MS)
    return disk, story, told


def prepare(story: Story, step: str) -> Callable[[], None]:
    """The step, ready to be done. Rewriting segments is none of the log room's business, installing them is."""
    if step == "clean":
        rewritten = story.rewrite()
        return lambda: story.install(rewritten)
    return story.stop if step == "stop" else story.steps[step]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("step", STEPS.split())
def test_an_error_at_any_operation_takes_the_directory_offline(tmp_path: Path, step: str, seed: int) -> None:
    disk, story, _ = tell(tmp_path / "good", step, seed)
    before, action = story.known, prepare(story, step)
    disk.arm(-1, 0)
    story.do(step, action)
    after, operations = story.known, disk.ops
    assert operations, "the step does nothing"
    # What the error is makes no difference; every step meets each of them.
    faults = [
        (nth, error, False)
        for nth, error in zip(range(len(operations)), islice(cycle(ERRORS), seed, None), strict=False)
        if not (error == errno.ENOSPC and is_of_a_checkpoint(operations, nth))
    ]
    faults += [(nth, 0, True) for nth, name in enumerate(operations) if name.startswith("write") and ".log" in name]
    for nth, error, is_short in faults:
        path = tmp_path / "faulty"
        disk, story, told = tell(path, step, seed)
        action = prepare(story, step)
        disk.arm(nth, error, is_short=is_short)
        try:
            with pytest.raises(StorageError):
                story.do(step, action)
            check_offline(story, disk, told)
            check_acknowledged(story, Moment(step, 0, 0, before, after), path)
        except BaseException as failure:
            failure.add_note(f"operation {nth} ({operations[nth]}) of {step}: {errno.errorcode.get(error, 'short')}")
            raise
        shutil.rmtree(path)


def is_of_a_checkpoint(operations: list[str], nth: int) -> bool:
    """One of the directory's own: a full disk spoils none, for the old file stays, and what it says is still true."""
    name, before = operations[nth], operations[nth - 1] if nth else ""
    return "-offset-checkpoint" in name or (name.startswith("sync_dir") and "-offset-checkpoint" in before)


def check_offline(story: Story, disk: FaultyDisk, told: list[LogDirectory]) -> None:
    """The directory and all its logs refuse everything, without touching the disk again."""
    log = story.log
    assert told == [story.directory]
    assert all(other.failure is not None for other in story.directory.logs.values())
    disk.arm(-1, 0)
    batch = build_batch([Record(0, NOW_MS, b"k", b"v")])
    refused: list[Callable[[], object]] = [
        lambda: log.append(batch, read_header(batch), 0, NOW_MS),
        lambda: log.append_as_follower(batch, NOW_MS),
        lambda: log.read(log.log_start_offset, 1),
        lambda: flush(log),
        lambda: log.advance_log_start(log.log_end_offset),
        lambda: run_steps(story.directory.truncate(log, log.log_start_offset, NOW_MS)),
        lambda: run_steps(story.directory.truncate_fully(log, 0, NOW_MS)),
        lambda: story.directory.create_partition("new", 0, TOPIC_ID, story.config, NOW_MS),
        lambda: story.directory.open_partition(TOPIC, 0, story.config, NOW_MS),
        story.directory.write_recovery_points,
        story.directory.write_log_starts,
    ]
    for call in refused:
        with pytest.raises(StorageError):
            call()
    assert disk.ops == []


def check_acknowledged(story: Story, moment: Moment, path: Path) -> None:
    """No torn file; and on a good disk the directory opens with everything that was acknowledged."""
    for log_file in path.glob(f"{TOPIC}-0/*.log"):
        data, end = log_file.read_bytes(), 0
        for position, header in walk(data):
            check_crc(data, position, header)
            end = position + header.size_bytes
        assert end == len(data), f"{log_file.name} ends inside a batch"
    story.directory.close()
    assert moment.step == "stop" or not (path / ".kafka_cleanshutdown").exists()
    shutil.rmtree(path / "other-0")
    kept = moment
    if moment.step == "append":
        kept = Moment("append", 0, 0, story.known, moment.after)
        for producer in story.log.producers.producers.values():
            assert producer.last_data_offset < story.log.log_end_offset, "producer state runs ahead of the log"
    check_reopening(str(path), FaultyDisk(), kept, story.config)


def _start(path: str, disk: FaultyDisk, config: LogConfig) -> None:
    directory = open_directory(path, disk)
    try:
        directory.open_partitions(lambda _: config, NOW_MS)
    finally:
        directory.release()


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_at_any_operation_of_a_start_is_one_sentence(tmp_path: Path, error: int) -> None:
    _, story, _ = tell(tmp_path / "good", "roll", 0)
    config = story.config
    story.directory.release()
    shutil.rmtree(tmp_path / "good/other-0")
    disk = FaultyDisk()
    directory = open_directory(str(tmp_path / "good"), disk)
    directory.open_partitions(lambda _: config, NOW_MS)
    directory.release()
    for nth in range(len(disk.ops)):
        path = tmp_path / "faulty"
        _, story, _ = tell(path, "roll", 0)
        story.directory.release()
        shutil.rmtree(path / "other-0")
        disk.arm(nth, error)
        with pytest.raises((DirectoryError, StorageError)):
            _start(str(path), disk, config)
        check_reopening(str(path), FaultyDisk(), Moment("start", 0, 0, story.known, story.known), config)
        shutil.rmtree(path)


def test_a_failed_fsync_is_told_to_everybody_who_waits_and_never_tried_again(tmp_path: Path) -> None:
    disk, story, _ = tell(tmp_path / "log", "append", 0)
    held: list[Callable[[], None]] = []
    flusher = Flusher(story.log, lambda work, done: held.append(lambda: run_inline(work, done)), told_inline())
    answers: list[StorageError | None] = []
    flusher.flush_to(story.log.log_end_offset - 1, answers.append)
    flusher.flush_to(story.log.log_end_offset, answers.append)
    recovery_point = story.log.recovery_point
    story.log.epochs.save()
    disk.arm(1, errno.EIO)
    held.pop()()
    assert disk.ops[1].startswith("fsync")
    assert [type(answer) for answer in answers] == [StorageError, StorageError]
    flusher.flush_to(story.log.log_end_offset, answers.append)
    assert isinstance(answers[2], StorageError)
    assert (held, len(disk.ops), story.log.recovery_point) == ([], 2, recovery_point)


def test_a_flush_that_ends_after_its_log_failed_saves_nothing(tmp_path: Path) -> None:
    _, story, _ = tell(tmp_path / "log", "append", 0)
    held: list[Callable[[], None]] = []
    flusher = Flusher(story.log, lambda work, done: held.append(lambda: run_inline(work, done)), told_inline())
    answers: list[StorageError | None] = []
    flusher.flush_to(story.log.log_end_offset, answers.append)
    recovery_point = story.log.recovery_point
    story.log.fail(OSError(errno.EIO, "elsewhere"))
    held.pop()()
    assert isinstance(answers[0], StorageError)
    assert story.log.recovery_point == recovery_point


def test_a_batch_that_was_cut_off_is_not_reported_as_flushed(tmp_path: Path) -> None:
    _, story, _ = tell(tmp_path / "log", "append", 0)
    held: list[Callable[[], None]] = []
    flusher = Flusher(story.log, lambda work, done: held.append(lambda: run_inline(work, done)), told_inline())
    answers: list[StorageError | None] = []
    flusher.flush_to(story.log.log_end_offset, answers.append)
    run_steps(story.directory.truncate(story.log, story.log.log_end_offset - 1, NOW_MS))
    held.pop()()
    assert isinstance(answers[0], StorageError)
    assert story.log.recovery_point <= story.log.log_end_offset


@pytest.mark.parametrize("act", [Lease.read, Lease.load, lambda lease: lease.send_to(-1)], ids=["read", "load", "send"])
def test_an_error_under_a_reader_takes_the_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Lease], object]
) -> None:
    _, story, told = tell(tmp_path / "faulty", "append", 0)
    lease = story.log.read(story.log.log_start_offset, 1)
    assert lease is not None

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for name in ("pread", "load", "send"):
        monkeypatch.setattr(File, name, broken)
    with lease, pytest.raises(StorageError, match=r"is offline: .*Input/output error"):
        act(lease)
    assert told == [story.directory]
    assert story.log.failure is not None
    story.directory.release()
