"""Deleting many partitions: others on the loop and on the threads go on meanwhile."""

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.broker.server import raise_descriptor_limit
from lamina.log.directory import LogDirectory
from lamina.log.files import Disk
from tests.broker.in_process import InProcessBroker, counted_turns

COUNT = 1000


class Held:
    """Removal that waits until it may go on, and counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_go_on = threading.Event()
        self.began = threading.Event()
        self.removed: list[str] = []
        self.threads: set[str] = set()
        remove_tree = Disk.remove_tree

        def remove(disk: Disk, path: str) -> None:
            self.began.set()
            assert self.may_go_on.wait(30)
            remove_tree(disk, path)
            self.threads.add(threading.current_thread().name)
            self.removed.append(path)

        monkeypatch.setattr(Disk, "remove_tree", remove)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    raise_descriptor_limit()
    broker = InProcessBroker(tmp_path / "data", {})
    broker.create("many", COUNT, file_delete_delay_ms="0")
    yield broker
    broker.close()


def deleted_directories(tmp_path: Path) -> int:
    return len(list((tmp_path / "data").glob("logs/*-delete")))


def test_partitions_are_closed_in_turns_of_the_loop(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """To close one takes as long as a turn may last."""
    shown_ms = itertools.count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    closed_in_turn: list[int] = []
    close_partition = LogDirectory.close_partition

    def close(directory: LogDirectory, topic: str, partition: int) -> None:
        closed_in_turn.append(len(turns))
        close_partition(directory, topic, partition)

    monkeypatch.setattr(LogDirectory, "close_partition", close)
    broker.delete("many")
    assert len(closed_in_turn) == COUNT
    assert len(set(closed_in_turn)) == COUNT, "no two of them in one turn"
    assert closed_in_turn[0] >= COUNT, "each was looked at before, in a turn of its own"


def test_directories_are_removed_on_a_thread_of_their_own(
    broker: InProcessBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    broker.delete("many")
    broker.run_until(held.began.is_set)
    assert broker.parts.threads.waiting == 0
    assert broker.parts.threads.busy == 0, "no removal keeps fsyncs and reads waiting"
    held.may_go_on.set()
    broker.run_until(lambda: len(held.removed) == COUNT)
    assert held.threads == {"lamina-removal_0"}
    assert deleted_directories(tmp_path) == 0


def test_the_thread_is_handed_one_directory_in_a_turn(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    broker.delete("many")
    broker.run_until(held.began.is_set)
    assert broker.parts.removal._thread.waiting == 0, "thousands at once would hold up the loop"
    held.may_go_on.set()
    broker.run_until(lambda: len(held.removed) == COUNT)


def test_what_is_not_removed_at_a_stop_is_removed_at_the_next_start(
    broker: InProcessBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    broker.delete("many")
    broker.run_until(held.began.is_set)
    removal = broker.parts.removal
    stopping = threading.Thread(target=removal.stop)
    stopping.start()
    broker.run_until(lambda: removal._thread.waiting <= 1)
    held.may_go_on.set()
    stopping.join(30)
    assert len(held.removed) == 1, "the one that had begun"
    assert deleted_directories(tmp_path) == COUNT - 1
    broker.restart()
    broker.run_until(lambda: deleted_directories(tmp_path) == 0)


def test_a_removal_that_is_due_after_the_stop_is_left_to_the_next_start(
    broker: InProcessBroker, tmp_path: Path
) -> None:
    broker.parts.removal.stop()
    broker.delete("many")
    broker.turn()
    broker.turn()
    assert deleted_directories(tmp_path) == COUNT
    broker.restart()
    broker.run_until(lambda: deleted_directories(tmp_path) == 0)
