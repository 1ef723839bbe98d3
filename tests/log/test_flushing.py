"""Flushing: what is synced in which order, who is told when, and that it works with real threads."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from threading import Event
from unittest.mock import Mock

import pytest

from lamina.errors import StorageError
from lamina.log.due_waiters import AT_A_TIME, DueWaiters
from lamina.log.files import Disk, File
from lamina.log.flushing import Flusher, close_cleanly, flush
from tests.log.building import LogBuilder, a_batch, a_log, truncate_log
from tests.log.story import told_inline

Work = Callable[[], None]
Done = Callable[[OSError | None], None]


class SyncedDisk(Disk):
    """Remembers what was synced, and fails or waits when told to."""

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.error: OSError | None = None
        self.gate: Event | None = None

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        return SyncedFile(self, path, super().open(path, write=write, create=create).fd)

    def sync_dir(self, path: str) -> None:
        self.synced.append(".")
        super().sync_dir(path)


class SyncedFile(File):
    def __init__(self, disk: SyncedDisk, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self.disk = disk

    def fsync(self) -> None:
        if self.disk.gate is not None:
            self.disk.gate.wait(10)
        if self.disk.error is not None:
            raise self.disk.error
        self.disk.synced.append(self.path.rpartition("/")[2])
        super().fsync()


class ByHand:
    """Runs what it is given when the test says so."""

    def __init__(self) -> None:
        self.given: list[tuple[Work, Done]] = []

    def run(self, work: Work, done: Done) -> None:
        self.given.append((work, done))

    def step(self) -> None:
        work, done = self.given.pop(0)
        try:
            work()
        except OSError as error:
            done(error)
        else:
            done(None)


def flushed_by_hand(tmp_path: Path, faults: list[None] | None = None) -> tuple[LogBuilder, SyncedDisk, Flusher, ByHand]:
    """``faults`` counts the waiters that fail; without it none may."""
    disk, hand = SyncedDisk(), ByHand()
    builder = a_log(tmp_path, disk)
    builder.log.names_are_durable()
    due = told_inline() if faults is None else DueWaiters(lambda go_on: go_on(), lambda: faults.append(None))
    return builder, disk, Flusher(builder.log, hand.run, due), hand


def test_the_names_of_a_new_log_are_synced_on_a_thread_long_before_it_rolls(tmp_path: Path) -> None:
    disk, hand = SyncedDisk(), ByHand()
    builder = a_log(tmp_path, disk)
    Flusher(builder.log, hand.run, told_inline())
    builder.append_batches(2)
    assert (len(hand.given), disk.synced) == (1, [])
    hand.step()
    assert disk.synced == ["."]
    builder.log.roll(builder.now_ms)
    assert disk.synced == ["."]


def test_a_log_that_rolls_before_its_names_are_synced_waits_for_the_disk(tmp_path: Path) -> None:
    disk, hand = SyncedDisk(), ByHand()
    builder = a_log(tmp_path, disk)
    Flusher(builder.log, hand.run, told_inline())
    builder.append_batches(2)
    builder.log.roll(builder.now_ms)
    assert disk.synced == ["."]


def test_after_a_roll_the_closed_segment_its_indexes_and_the_next_snapshot_are_synced(tmp_path: Path) -> None:
    builder, disk, _, hand = flushed_by_hand(tmp_path)
    builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=0)
    disk.synced.clear()
    builder.log.roll(builder.now_ms)
    assert builder.log.recovery_point == 0
    disk.synced.clear()
    hand.step()
    assert builder.log.recovery_point == 1
    assert disk.synced[-1] == "."
    assert sorted(disk.synced[:-1]) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        f"{1:020d}.snapshot",
        "leader-epoch-checkpoint",
        "leader-epoch-checkpoint.tmp",
    ]


def test_the_first_batch_of_an_epoch_leaves_the_checkpoint_of_epochs_to_the_flush(tmp_path: Path) -> None:
    builder, disk, flusher, hand = flushed_by_hand(tmp_path)
    builder.append(b"k=v", epoch=3)
    builder.log.append_as_follower(bytes(a_batch(b"k=v", base_offset=1, leader_epoch=5)), builder.now_ms)
    builder.log.advance_log_start(1)
    checkpoint = builder.path / "leader-epoch-checkpoint"
    assert not checkpoint.exists()
    flusher.flush_to(2)
    hand.step()
    assert (checkpoint.read_bytes(), builder.log.recovery_point) == (b"0\n1\n5 1\n", 2)
    disk.synced.clear()
    builder.append(b"k=v", epoch=5)
    flusher.flush_to(3)
    hand.step()
    assert "leader-epoch-checkpoint.tmp" not in disk.synced, "it has all of them"


def test_the_recovery_point_stays_where_the_checkpoint_of_epochs_cannot_be_written(tmp_path: Path) -> None:
    builder, _, flusher, hand = flushed_by_hand(tmp_path)
    builder.append(b"k=v", epoch=3)
    (builder.path / "leader-epoch-checkpoint.tmp").mkdir()
    flusher.flush_to(1)
    hand.step()
    assert (builder.log.recovery_point, builder.log.failure is None) == (0, False)


def test_a_transaction_index_is_synced_with_its_segment(tmp_path: Path) -> None:
    builder, disk, flusher, hand = flushed_by_hand(tmp_path)
    builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.abort(1)
    flusher.flush_to(builder.log.log_end_offset)
    hand.step()
    assert f"{0:020d}.txnindex" in disk.synced


def test_nothing_is_flushed_twice(tmp_path: Path) -> None:
    builder, _, flusher, hand = flushed_by_hand(tmp_path)
    builder.append(b"k=v")
    flusher.flush_to(1)
    hand.step()
    told: list[StorageError | None] = []
    flusher.flush_to(1, told.append)
    assert (told, hand.given) == ([None], [])


def test_whoever_comes_during_a_flush_shares_the_next_one(tmp_path: Path) -> None:
    builder, disk, flusher, hand = flushed_by_hand(tmp_path)
    told: list[int] = []
    for number in range(5):
        builder.append(b"k=v")
        flusher.flush_to(number + 1, lambda error, number=number: told.append(number))  # type: ignore[misc]
    assert len(hand.given) == 1
    hand.step()
    assert told == [0]
    disk.synced.clear()
    hand.step()
    assert told == [0, 1, 2, 3, 4]
    assert disk.synced.count(f"{0:020d}.log") == 1
    assert hand.given == []


def test_one_who_waits_and_fails_costs_the_others_nothing_and_the_next_flush_begins(tmp_path: Path) -> None:
    faults: list[None] = []
    builder, _, flusher, hand = flushed_by_hand(tmp_path, faults)
    told: list[StorageError | None] = []

    def fail(_: StorageError | None) -> None:
        raise ValueError("a bug")

    for _ in range(2):
        builder.append(b"k=v")
        flusher.flush_to(builder.log.log_end_offset, fail)
        flusher.flush_to(builder.log.log_end_offset, told.append)
    hand.step()
    assert (told, len(hand.given)) == ([None], 1)
    builder.append(b"k=v")
    flusher.flush_to(3, fail)
    flusher.flush_to(3, told.append)
    truncate_log(builder.log, 2, builder.now_ms)
    assert [type(error) for error in told] == [type(None), StorageError]
    hand.step()
    assert [type(error) for error in told] == [type(None), StorageError, type(None)]
    builder.append(b"k=v")
    flusher.flush_to(3, fail)
    flusher.flush_to(3, told.append)
    builder.log.take_offline("the directory is offline")
    hand.step()
    assert isinstance(told[3], StorageError)
    assert len(faults) == 4


def test_one_sync_tells_very_many_in_turns_and_the_next_flush_waits_for_none_of_them(tmp_path: Path) -> None:
    disk, hand, turns = SyncedDisk(), ByHand(), deque[Work]()
    builder, told = a_log(tmp_path, disk), list[int]()
    builder.log.names_are_durable()
    flusher = Flusher(builder.log, hand.run, DueWaiters(turns.append, Mock()))
    builder.append(b"k=v")
    for number in range(2 * AT_A_TIME):
        flusher.flush_to(1, lambda _, number=number: told.append(number))  # type: ignore[misc]
    builder.append(b"k=v")
    flusher.flush_to(2, lambda _: told.append(-1))
    hand.step()
    assert (len(told), len(hand.given)) == (AT_A_TIME, 1)
    hand.step()
    flusher.flush_to(2, lambda _: told.append(-2))
    turns.popleft()()
    turns.popleft()()
    assert told == [*range(2 * AT_A_TIME), -1, -2]


def test_a_failed_sync_fails_the_log_and_everybody_who_waits(tmp_path: Path) -> None:
    builder, disk, flusher, hand = flushed_by_hand(tmp_path)
    builder.append(b"k=v")
    told: list[StorageError | None] = []
    flusher.flush_to(1, told.append)
    builder.append(b"k=v")
    flusher.flush_to(2, told.append)
    disk.error = OSError(5, "Input/output error")
    hand.step()
    assert [type(error) for error in told] == [StorageError, StorageError]
    assert builder.log.recovery_point == 0
    flusher.flush_to(2, told.append)
    assert isinstance(told[2], StorageError)
    with pytest.raises(StorageError):
        builder.append(b"k=v")


def test_a_log_that_failed_while_a_flush_ran_tells_every_waiter(tmp_path: Path) -> None:
    builder, _, flusher, hand = flushed_by_hand(tmp_path)
    told: list[bool] = []
    for end_offset in (1, 2):
        builder.append(b"k=v")
        flusher.flush_to(end_offset, lambda error: told.append(error is None))
    builder.log.take_offline("the directory is offline")
    hand.step()
    assert told == [False, False]


def test_a_flush_says_nothing_of_what_was_written_again_meanwhile(tmp_path: Path) -> None:
    builder, _, flusher, hand = flushed_by_hand(tmp_path)
    builder.append_batches(4)
    flusher.flush_to(4)
    truncate_log(builder.log, 2, builder.now_ms)
    builder.append_batches(4)
    hand.step()
    assert builder.log.recovery_point == 2


def test_with_real_threads_appends_go_on_while_a_flush_runs(tmp_path: Path) -> None:
    disk = SyncedDisk()
    builder = a_log(tmp_path, disk)
    answers: Queue[Callable[[], None]] = Queue()
    told: list[int] = []

    with ThreadPoolExecutor(1) as pool:

        def run(work: Work, done: Done) -> None:
            def on_thread() -> None:
                error: OSError | None = None
                try:
                    work()
                except OSError as raised:
                    error = raised
                answers.put(lambda: done(error))

            pool.submit(on_thread)

        flusher = Flusher(builder.log, run, told_inline())
        disk.gate = Event()
        for number in range(20):
            appended = builder.append(b"k=" + b"v" * 100)
            flusher.flush_to(appended.last_offset + 1, lambda error, number=number: told.append(number))  # type: ignore[misc]
        assert (told, len(builder.bases()) > 2) == ([], True)
        disk.gate.set()
        while builder.log.recovery_point < builder.log.log_end_offset:
            answers.get(timeout=10)()
    assert told == list(range(20))
    assert len(builder.records()) == 20


def test_a_clean_close_syncs_everything_and_writes_the_state_at_the_end(tmp_path: Path) -> None:
    disk = SyncedDisk()
    builder = a_log(tmp_path, disk)
    builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=0)
    flush(builder.log)
    builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=1)
    disk.synced.clear()
    close_cleanly(builder.log)
    assert builder.log.recovery_point == 2
    assert {f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex"} <= set(disk.synced)
    assert f"{2:020d}.snapshot.tmp" in disk.synced
    assert builder.file(0, ".index").stat().st_size == 0
    assert builder.file(0, ".timeindex").stat().st_size == 12


def test_an_empty_active_segment_needs_no_snapshot_at_its_end(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    close_cleanly(builder.log)
    assert not builder.file(0, ".snapshot").exists()
