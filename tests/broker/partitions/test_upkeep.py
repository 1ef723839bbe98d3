import asyncio
import errno
import os
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lamina.log.files import Disk
from tests.broker.in_process import InProcessBroker, counted_turns

PARTITIONS = 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", {})
    opened.create("t", PARTITIONS, retention_ms="1000")
    for partition in range(PARTITIONS):
        opened.produce("t", 5, partition)
    yield opened
    opened.close()


def retain(broker: InProcessBroker) -> Coroutine[Any, Any, None]:
    return broker.parts.cleaner.retention.expire_others(broker.parts.upkeep.in_turns())


def turns_of(work: Coroutine[Any, Any, None]) -> int:
    """How often ``work`` leaves the loop to others before it is done."""
    for turns in count():
        try:
            work.send(None)
        except StopIteration:
            return turns
    raise AssertionError


def test_slow_visits_leave_the_loop_to_others_after_each(broker: InProcessBroker) -> None:
    clock_ms = count()
    broker.clock.monotonic_ms = lambda: next(clock_ms)
    assert turns_of(broker.parts.upkeep.expire_producers(1)) == PARTITIONS


def test_everything_that_is_old_enough_expires(broker: InProcessBroker) -> None:
    broker.clock.wall_ms = 2**42
    broker.parts.loop.run_until_complete(retain(broker))
    assert {partition.log.log_start_offset for partition in broker.parts.partitions} == {5}


def test_quick_visits_go_on(broker: InProcessBroker) -> None:
    broker.clock.monotonic_ms = 7
    assert turns_of(retain(broker)) == 0
    assert {partition.log.log_start_offset for partition in broker.parts.partitions} == {0}


def test_flush_messages_puts_a_batch_on_disk_before_it_is_acknowledged(broker: InProcessBroker) -> None:
    broker.create("f", flush_messages="2")
    log = broker.parts.partitions.get("f", 0).log
    broker.produce("f", 1)
    assert log.recovery_point == 0
    broker.produce("f", 1)
    assert log.recovery_point == 2


def test_flush_ms_flushes_what_has_waited_that_long(broker: InProcessBroker) -> None:
    broker.create("f", flush_ms="100")
    log, loop, upkeep = broker.parts.partitions.get("f", 0).log, broker.parts.loop, broker.parts.upkeep
    broker.produce("f", 1)
    for now_ms, is_due in ((1000, False), (1099, False), (1100, True)):
        broker.clock.monotonic_ms = now_ms
        loop.run_until_complete(upkeep.flush_due())
        loop.run_until_complete(broker.parts.threads.run(lambda: None))
        if is_due:
            loop.run_until_complete(asyncio.wait_for(until(lambda: log.recovery_point == 1), 10))
        assert log.recovery_point == is_due


def test_what_is_known_of_flushes_goes_with_a_topic(broker: InProcessBroker) -> None:
    upkeep = broker.parts.upkeep
    broker.parts.loop.run_until_complete(upkeep.flush_due())
    assert len(upkeep._flushed_ms) == PARTITIONS
    broker.delete("t")
    broker.parts.loop.run_until_complete(upkeep.flush_due())
    assert not upkeep._flushed_ms


def test_a_disk_that_cannot_remove_files_goes_offline(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Disk, path: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    upkeep, run = broker.parts.upkeep, broker.parts.loop.run_until_complete
    broker.clock.wall_ms = 2**42
    run(retain(broker))
    broker.clock.wall_ms = 2**42 + 1_000_000
    monkeypatch.setattr(Disk, "unlink", broken)
    run(upkeep.remove_due())
    assert broker.parts.directories[0].failure is not None


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_a_full_disk_keeps_no_other_directory_from_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = InProcessBroker(tmp_path / "data", {"log.dirs": f"{tmp_path}/full,{tmp_path}/good"})
    broker.create("t", 4)
    for partition in range(4):
        broker.produce("t", 5, partition)
    open_file = Disk.open

    def open_unless_full(disk: Disk, path: str, *, write: bool = False, create: bool = False) -> Any:
        if path.startswith(f"{tmp_path}/full/") and path.endswith("checkpoint.tmp"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return open_file(disk, path, write=write, create=create)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "open", open_unless_full)
        broker.parts.loop.run_until_complete(broker.parts.upkeep.write_high_watermarks())
    written = (tmp_path / "good" / "replication-offset-checkpoint").read_text().splitlines()
    assert written[2:]
    assert all(line.endswith(" 5") for line in written[2:])
    assert all(directory.failure is None for directory in broker.parts.directories)
    broker.close()


def test_high_watermarks_are_looked_at_in_turns_of_the_loop(
    broker: InProcessBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look at one takes as long as a turn may last."""
    shown_ms = count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    broker.parts.loop.run_until_complete(broker.parts.upkeep.write_high_watermarks())
    assert len(turns) >= PARTITIONS
    written = (tmp_path / "data" / "logs" / "replication-offset-checkpoint").read_text().splitlines()
    assert {line for line in written if line.startswith("t ")} == {f"t {index} 5" for index in range(PARTITIONS)}


def test_a_start_looks_at_every_partition_in_turns(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at one takes as long as a turn may last."""
    shown_ms = count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    broker.restart()
    given_up, looked_at, led = [PARTITIONS] * 3
    assert len(turns) >= given_up + looked_at + led


def test_a_stop_looks_at_every_partition_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.new_event_loop()
    broker = InProcessBroker(tmp_path, {}, loop=loop)
    broker.create("t", PARTITIONS)
    broker.produce("t", 5, PARTITIONS - 1)
    shown_ms = count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    loop.run_until_complete(broker.parts.stop())
    released = len(turns)
    assert loop.run_until_complete(broker.parts.close()) == []
    assert min(released, len(turns) - released) >= PARTITIONS
    written = (tmp_path / "logs" / "replication-offset-checkpoint").read_text().splitlines()
    assert f"t {PARTITIONS - 1} 5" in written
    loop.close()
