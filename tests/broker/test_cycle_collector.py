"""What Python's cycle collector walks, and what it is kept off."""

import gc
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from lamina.broker.cycle_collector import loading, short_collections
from tests.broker.in_process import InProcessBroker
from tests.driven_clock import DrivenClock

PARTITIONS = 3


@pytest.fixture(autouse=True)
def _quiet_collector() -> Iterator[None]:
    """Collections come when a test asks for them, and what it froze is walked again after it."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def freezes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    made: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: made.append(True))
    return made


def clock_of(collection_ms: int) -> DrivenClock:
    """A clock that is read once before and once after each collection."""
    clock, times = DrivenClock(), count(0, collection_ms)
    clock.monotonic_ms = lambda: next(times)
    return clock


def test_nothing_is_walked_while_modules_are_loaded_nor_are_they_afterwards(freezes: list[bool]) -> None:
    gc.enable()
    with loading():
        assert (gc.isenabled(), freezes) == (False, [])
    assert (gc.isenabled(), freezes) == (True, [True])


def test_what_survives_a_long_collection_is_not_walked_again(freezes: list[bool]) -> None:
    with short_collections(clock_of(2).clocks):
        freezes.clear()
        gc.collect()
        assert freezes == [True]
        gc.collect(1)
        assert freezes == [True], "what is young may be garbage soon"
    gc.collect()
    assert freezes == [True], "nobody asked for it any more"


def test_what_survives_a_short_collection_is_walked_again(freezes: list[bool]) -> None:
    with short_collections(clock_of(1).clocks):
        freezes.clear()
        gc.collect()
    assert freezes == []


def test_what_is_there_at_first_is_not_walked_at_all(freezes: list[bool]) -> None:
    with short_collections(DrivenClock().clocks):
        assert freezes == [True]


def test_the_oldest_are_walked_before_they_are_many() -> None:
    before = gc.get_threshold()
    with short_collections(DrivenClock().clocks):
        youngest, middle, oldest = gc.get_threshold()
        assert youngest * middle * oldest < 20_000
    assert gc.get_threshold() == before


def test_a_partition_that_is_removed_leaves_the_collector_nothing(tmp_path: Path) -> None:
    """Frozen by then it would stay for good, with all that it refers to."""
    broker = InProcessBroker(tmp_path, {})
    broker.create("t", PARTITIONS)
    for index in range(PARTITIONS):
        broker.produce("t", 1, index)
    gc.collect()
    broker.delete("t")
    assert gc.collect() == 0
    broker.close()
