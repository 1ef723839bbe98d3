"""A shard whose partition has other replicas: nothing is told before the high watermark has passed it, and a new leader
serves once it has passed all that it found (R74, R99). The in-sync set is what the metadata says."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.broker.counters import Place
from lamina.broker.partitions.partition import Partition
from lamina.coordinators.decision import Decision, Effect, Now, Reply, ResolveRegexes, Waiter
from lamina.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    NotCoordinator,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
)
from tests.broker.coordination.notebook import TOPIC, Note, Notebook, World

ALONE, BOTH = (1,), (1, 2)


class Replicated(World):
    """The shard follows the metadata as a coordinator's does."""

    def __init__(self, directory: Path, **settings: str) -> None:
        super().__init__(directory, **settings)
        self.set(replicas=BOTH)

    def set(self, **state: Any) -> None:
        self.broker.set_partition(TOPIC, 0, **state)

    def elect(self, leader: int, isr: tuple[int, ...] = ALONE) -> None:
        """An election after which another broker may have led, and what a coordinator makes of it."""
        epoch = self.parts.metadata.image.partition(TOPIC, 0).leader_epoch + 2
        self.set(leader=leader, leader_epoch=epoch, isr=isr)
        if leader == 1:
            self.runtime.lead(self.partition)
        else:
            self.runtime.resign(0)

    def turns(self, count: int = 10) -> None:
        for _ in range(count):
            self.loop.run_until_complete(asyncio.sleep(0))

    def read(self) -> Any:
        return self.shard.read(lambda machine: dict(machine.notes))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Replicated]:
    opened = Replicated(tmp_path / "data")
    yield opened
    opened.runtime.close()
    opened.broker.close()


def test_an_answer_waits_until_every_in_sync_replica_has_what_it_tells(world: Replicated) -> None:
    world.set(isr=BOTH)
    written, read = world.write(("a", "1")), world.read()
    assert world.notes == {"a": "1"}, "decided"
    assert [written.is_ready, read.is_ready] == [False, False], "but nobody is told of what may be lost"
    world.set(isr=ALONE)
    assert (world.done(written), world.done(read)) == (0, {"a": "1"})


def test_what_is_committed_is_told_at_once(world: Replicated) -> None:
    world.write(("a", "1"))
    world.set(isr=BOTH)
    assert world.read().is_ready, "all that it saw is committed"


def test_a_new_leader_serves_once_the_high_watermark_is_past_what_it_found(world: Replicated) -> None:
    world.set(isr=BOTH)
    world.write(("a", "1"))
    world.elect(1, isr=BOTH)
    world.turns()
    with pytest.raises(CoordinatorLoadInProgress):
        world.write(("b", "1"))
    assert not world.shard.is_given_up
    world.set(isr=ALONE)
    world.settle()
    assert world.notes == {"a": "1"}


def test_what_comes_while_the_high_watermark_is_waited_for_is_not_lost(world: Replicated) -> None:
    world.set(isr=BOTH)
    world.write(("a", "1"))
    world.elect(1, isr=BOTH)
    world.turns()
    world.shard.log.append([("b", "1")], None, 1)
    world.set(isr=ALONE)
    world.settle()
    assert world.notes == {"a": "1", "b": "1"}


def test_a_leader_of_an_empty_or_committed_log_serves_without_waiting(world: Replicated) -> None:
    world.write(("a", "1"))
    world.elect(1, isr=BOTH)
    world.settle()
    assert world.read().is_ready


def test_a_leader_that_resigns_answers_all_who_wait_at_once(world: Replicated) -> None:
    world.set(isr=BOTH)
    waiting = [world.write(("a", "1")), world.read(), world.wait("b")]
    world.elect(2)
    for response in waiting:
        assert response.is_ready
        with pytest.raises(NotCoordinator):
            world.done(response)
    with pytest.raises(NotCoordinator):
        world.runtime.shard(0)


def test_a_load_that_waits_for_the_high_watermark_ends_with_the_office(world: Replicated) -> None:
    world.set(isr=BOTH)
    world.write(("a", "1"))
    world.elect(1, isr=BOTH)
    world.turns()
    loading = world.shard._loading
    world.elect(2)
    world.turns()
    assert loading.done()


def test_r99_a_commit_under_another_epoch_acknowledges_nothing(
    world: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiters: list[Any] = []
    monkeypatch.setattr(Partition, "when_committed", lambda _, waiter: waiters.append(waiter))
    written = world.write(("a", "1"))
    epoch = world.parts.metadata.image.partition(TOPIC, 0).leader_epoch
    world.set(leader_epoch=epoch + 2)
    waiters[0](None)
    with pytest.raises(NotCoordinator):
        world.done(written)
    assert world.shard.is_given_up, "nothing is decided by a shard of an older epoch"


def test_r99_a_shard_of_an_older_epoch_writes_nothing(world: Replicated) -> None:
    epoch = world.parts.metadata.image.partition(TOPIC, 0).leader_epoch
    world.set(leader_epoch=epoch + 2)
    with pytest.raises(NotCoordinator):
        world.write(("a", "1"))
    assert world.partition.log.log_end_offset == 0


def test_a_leader_that_is_elected_again_before_anybody_else_goes_on(world: Replicated) -> None:
    """A follower's end costs an epoch (R47): nothing has to be loaded again, and who waits is answered."""
    world.set(isr=BOTH)
    machine, waiting, written = world.shard.machine, world.wait("b"), world.write(("a", "1"))
    for _ in range(3):
        epoch = world.parts.metadata.image.partition(TOPIC, 0).leader_epoch
        world.set(leader_epoch=epoch + 1, isr=ALONE)
        assert world.runtime.goes_on(world.partition)
    assert world.shard.machine is machine
    assert world.done(written) == 0
    world.write(("b", "here"))
    assert world.done(waiting) == "here"
    world.set(leader_epoch=epoch + 3)
    assert not world.runtime.goes_on(world.partition), "another broker may have led"


def test_what_is_not_committed_in_time_is_not_available_and_stands(
    world: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.shard._deadlines, "_timeout_ms", 1)
    world.set(isr=BOTH)
    machine, written, read = world.shard.machine, world.write(("a", "1")), world.read()
    for response in (written, read):
        with pytest.raises(CoordinatorNotAvailable):
            world.done(response)
    assert world.shard.machine is machine
    world.set(isr=ALONE)
    assert world.read().is_ready
    assert world.notes == {"a": "1"}
    assert not world.shard._deadlines


def test_r14_an_answer_that_is_overdue_leaves_nobody_behind_that_waits_for_the_commit(
    world: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every request of a long outage would be remembered until its end."""
    monkeypatch.setattr(world.shard._deadlines, "_timeout_ms", 1)
    world.set(isr=BOTH)
    overdue = [world.write(("a", "1")), *(world.read() for _ in range(5))]
    assert len(world.partition._commit_waiters) == 6
    for response in overdue:
        with pytest.raises(CoordinatorNotAvailable):
            world.done(response)
    assert not world.partition._commit_waiters


def test_a_machine_that_goes_leaves_nobody_behind_that_waits_for_the_commit(world: Replicated) -> None:
    world.set(isr=BOTH)
    world.write(("a", "1"))
    world.shard.load()
    assert not world.partition._commit_waiters
    world.elect(1, isr=BOTH)
    waiters = world.partition._commit_waiters
    world.broker.run_until(lambda: len(waiters) == 1)  # The load waits too.
    world.shard.close()
    world.turns(1)
    assert not waiters


def test_what_is_to_be_done_after_a_commit_is_done_however_late_it_comes(
    world: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.shard._deadlines, "_timeout_ms", 1)
    world.set(isr=BOTH)
    wanted = ResolveRegexes("g", ("t.*",))
    written = world.shard.ask(lambda _, waiter, __: Decision([("a", "1")], effects=[Reply(waiter, 0), wanted]))
    with pytest.raises(CoordinatorNotAvailable):
        world.done(written)
    assert world.performed == []
    world.set(isr=ALONE)
    assert world.performed == [wanted]


@pytest.mark.parametrize("isr", [ALONE, BOTH])
def test_a_machine_whose_effect_fails_after_the_commit_is_loaded_again(world: Replicated, isr: tuple[int, ...]) -> None:
    def fail(effect: Effect) -> None:
        raise ValueError("a bug")

    world.perform = fail
    world.set(isr=isr)
    machine, wanted = world.shard.machine, ResolveRegexes("g", ("t.*",))
    written = world.shard.ask(lambda _, waiter, __: Decision([("a", "1")], effects=[Reply(waiter, 5), wanted]))
    world.set(isr=ALONE)
    assert world.done(written) == 5, "it is committed"
    assert world.shard.machine is not machine
    assert world.parts.counters.unexpected == {Place.COORDINATOR: 1}
    world.settle()
    assert world.notes == {"a": "1"}


def test_too_few_replicas_refuse_what_would_be_written_and_keep_the_machine(world: Replicated) -> None:
    world.partition.configure(_needing_two(world), 1 << 20)
    machine, waiting = world.shard.machine, world.wait("b")
    with pytest.raises(CoordinatorNotAvailable):
        world.write(("a", "1"), is_refusable=True)
    assert world.shard.machine is machine
    assert not waiting.is_ready
    assert world.partition.log.log_end_offset == 0
    assert world.read().is_ready, "what is committed may be read"


def test_too_few_replicas_for_what_cannot_be_taken_back_load_the_machine_again(world: Replicated) -> None:
    world.write(("a", "1"))
    world.partition.configure(_needing_two(world), 1 << 20)
    with pytest.raises(CoordinatorNotAvailable):
        world.write(("b", "1"))
    with pytest.raises(CoordinatorLoadInProgress):
        world.write(("b", "1"))
    world.settle()
    assert world.notes == {"a": "1"}


def test_too_few_replicas_for_what_nobody_asked_for_are_a_warning(
    world: Replicated, caplog: pytest.LogCaptureFixture
) -> None:
    world.partition.configure(_needing_two(world), 1 << 20)
    assert not world.shard.run(lambda _: Decision([("a", "1")]))
    (told,) = (one for one in caplog.records if one.levelname in ("WARNING", "ERROR"))
    assert told.levelname == "WARNING"
    assert "has 1 in-sync replicas, min.insync.replicas asks for 2" in told.getMessage()


def _needing_two(world: Replicated) -> Any:
    return replace(world.parts.metadata.config_of(TOPIC), min_insync_replicas=2)


@pytest.mark.parametrize(
    ("error", "told", "is_kept"),
    [
        (NotEnoughReplicasAfterAppend("too few"), CoordinatorNotAvailable, True),
        (NotLeaderOrFollower("moved"), NotCoordinator, False),
    ],
)
def test_errors_of_a_commit_are_told_as_kafka_tells_them(
    world: Replicated,
    monkeypatch: pytest.MonkeyPatch,
    error: KafkaError,
    told: type[KafkaError],
    is_kept: bool,
) -> None:
    waiters: list[Any] = []
    monkeypatch.setattr(Partition, "when_committed", lambda _, waiter: waiters.append(waiter))
    machine, written = world.shard.machine, world.write(("a", "1"))
    waiters[0](error)
    with pytest.raises(told):
        world.done(written)
    assert (world.shard.machine is machine) == is_kept


def test_many_elections_leave_no_timer_no_task_and_no_waiting_request(world: Replicated) -> None:
    forgotten: list[weakref.ref[Any]] = []
    answers: list[Any] = []
    tasks_before, cycles = len(asyncio.all_tasks(world.loop)), 50
    for number in range(cycles):
        world.elect(1, isr=ALONE)
        if number % 3:
            world.settle()
            world.set(isr=BOTH)
            answers += [world.wait("never"), world.write((f"n{number}", "1")), world.read()]
        forgotten += [weakref.ref(world.shard), weakref.ref(world.shard.machine or world.shard)]
        world.elect(2)
    world.turns()
    for response in answers:
        with pytest.raises(NotCoordinator):
            world.done(response)
    del response
    answers.clear()
    gc.collect()
    assert not [one for one in forgotten if one() is not None]
    assert len(asyncio.all_tasks(world.loop)) == tasks_before
    world.elect(1)
    world.settle()
    assert len(world.notes) == sum(1 for number in range(cycles) if number % 3), "all of it was in the log"


# Any order of events

steps = st.lists(
    st.sampled_from(["write", "read", "wait for the in-sync set", "shrink", "elect", "resign", "turn"]), max_size=30
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_whatever_happens_an_answer_tells_only_what_is_committed(
    tmp_path_factory: pytest.TempPathFactory, events: list[str]
) -> None:
    """What a read told, and every write that was acknowledged, is below the high watermark of that instant."""
    world = Replicated(tmp_path_factory.mktemp("shard"))
    numbers = iter(range(1000))
    told: list[int] = []

    def told_by(response: Any, seen: int) -> None:
        async def wait() -> None:
            try:
                await response
            except KafkaError:
                return
            assert world.partition.high_watermark >= seen
            told.append(seen)

        tasks.append(world.loop.create_task(wait()))

    def write(machine: Notebook, waiter: Waiter, now: Now) -> Decision[Note]:
        return machine.write(waiter, (str(next(numbers)), "1"))

    tasks: list[asyncio.Task[None]] = []
    try:
        for event in events:
            try:
                if event == "write":
                    told_by(world.shard.ask(write), world.partition.log.log_end_offset)
                elif event == "read":
                    told_by(world.read(), world.partition.log.log_end_offset)
                elif event == "turn":
                    world.turns(3)
            except KafkaError:
                pass
            if event == "elect":
                world.elect(1, isr=BOTH)
            elif event == "resign":
                world.elect(2)
            elif event == "wait for the in-sync set":
                world.set(isr=BOTH)
            elif event == "shrink":
                world.set(isr=ALONE)
        world.elect(1, isr=ALONE)
        world.settle()
        world.turns(3)
        assert all(task.done() for task in tasks), "everybody was answered"
        for task in tasks:
            task.result()
        assert len(world.notes) == world.partition.log.log_end_offset
    finally:
        world.runtime.close()
        world.broker.close()
