"""What runs the state machines of an internal topic, with a machine of the test's own on a real partition's log."""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.broker.coordination.reload_backoff import ReloadBackoff
from lamina.broker.coordination.shard import DecisionTooLarge
from lamina.broker.partitions.partition import Partition
from lamina.coordinators.decision import Decision, Now, Producer, TimerName, Waiter
from lamina.coordinators.replaying import History
from lamina.coordinators.replaying import replay as replay_steps
from lamina.errors import (
    CoordinatorLoadInProgress,
    InvalidRequest,
    KafkaError,
    NotCoordinator,
    StorageError,
    UnknownServerError,
)
from lamina.log.files import File
from lamina.records.batch import read_header
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch
from tests.broker.coordination.notebook import TOPIC, Note, Notebook, World, decode, encode


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    opened = World(tmp_path / "data")
    yield opened
    opened.runtime.close()
    opened.broker.close()


def test_a_decision_is_written_replayed_and_answered_in_one_turn(world: World) -> None:
    told = world.write(("a", "1"), ("b", "2")).then(lambda count: f"{count} before")
    assert told == "0 before", "the answer was decided before the records were replayed"
    assert world.notes == {"a": "1", "b": "2"}
    assert world.partition.log.log_end_offset == 2
    header = read_header(world.partition.log.read(0, 1000).read())
    assert header.record_count == 2, "one batch for one decision"


def test_a_refusal_changes_nothing(world: World) -> None:
    def refuse(machine: Notebook, waiter: Waiter, now: Now) -> Decision[Note]:
        raise InvalidRequest("no")

    machine = world.shard.machine
    with pytest.raises(InvalidRequest):
        world.shard.ask(refuse)
    assert world.shard.machine is machine
    assert not world.shard._pending


def test_whoever_waits_is_answered_by_a_later_decision(world: World) -> None:
    waiting = world.wait("a")
    told = waiting.then(lambda text: f"it is {text}")
    assert not waiting.is_ready
    world.write(("a", "here"))
    assert isinstance(told, Awaitable)
    assert world.done(told) == "it is here"
    assert not world.shard._timers, "the timer went with it"


def test_a_timer_decides_too_and_an_error_is_an_answer(world: World) -> None:
    with pytest.raises(InvalidRequest, match="did not come"):
        world.done(world.wait("a", for_ms=1))
    assert world.notes == {"a": "timed out"}


def test_a_timer_that_was_put_off_comes_at_its_new_time_and_one_drawn_nearer_earlier(world: World) -> None:
    world.wait("late", for_ms=1)
    later = world.wait("late", for_ms=60_000)
    with pytest.raises(InvalidRequest):
        world.done(world.wait("early", for_ms=20))
    assert not later.is_ready
    world.wait("late", for_ms=1)
    with pytest.raises(InvalidRequest):
        world.done(later)


def test_whoever_stops_waiting_is_not_answered(world: World) -> None:
    waiting = asyncio.ensure_future(world.wait("a"), loop=world.loop)
    world.loop.run_until_complete(asyncio.sleep(0))
    waiting.cancel()
    world.loop.run_until_complete(asyncio.sleep(0))
    world.write(("a", "1"))
    assert waiting.cancelled()
    assert not world.shard._pending


def test_an_append_that_fails_answers_everybody_and_nobody_is_coordinated_here_any_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = world.wait("b")

    def broken(*_: Any) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(File, "pwrite", broken)
    with pytest.raises(NotCoordinator, match="cannot be written"):
        world.write(("a", "1"))
    with pytest.raises(NotCoordinator):
        world.done(waiting)
    with pytest.raises(NotCoordinator):
        world.write(("a", "1"))


def test_a_partition_that_is_led_elsewhere_is_not_written_and_not_loaded_again(world: World) -> None:
    waiting = world.wait("b")
    world.partition.leader = None
    with pytest.raises(NotCoordinator, match="does not lead"):
        world.write(("a", "1"))
    with pytest.raises(NotCoordinator):
        world.done(waiting)
    assert world.shard.is_given_up


def test_records_that_are_too_large_together_are_refused_and_the_shard_is_loaded_again(world: World) -> None:
    world.write(("a", "1"))
    waiting = world.wait("b")
    with pytest.raises(UnknownServerError):
        world.write(*((f"k{number}", "x" * 100_000) for number in range(20)))
    with pytest.raises(CoordinatorLoadInProgress):
        world.write(("c", "1"))
    with pytest.raises(CoordinatorLoadInProgress):
        world.done(waiting)
    world.settle()
    assert world.notes == {"a": "1"}
    world.write(("c", "1"))


def test_a_decision_that_has_changed_nothing_yet_is_refused_without_harm(world: World) -> None:
    machine, waiting = world.shard.machine, world.wait("b")
    with pytest.raises(DecisionTooLarge):
        world.write(("a", "x" * 2_000_000), is_refusable=True)
    assert world.shard.machine is machine
    assert not waiting.is_ready
    world.write(("a", "1"))


def test_what_a_refused_decision_would_have_changed_stays_as_it_was(world: World) -> None:
    changed: list[str] = []
    with pytest.raises(DecisionTooLarge):
        world.write(("a", "x" * 2_000_000), is_refusable=True, soft_changes=[lambda: changed.append("refused")])
    assert not changed
    world.write(("a", "1"), soft_changes=[lambda: changed.append("taken")])
    assert changed == ["taken"]


def test_what_is_decided_instead_of_something_too_large_may_fail_too(world: World) -> None:
    def fault() -> Decision[Note]:
        raise RuntimeError("a fault")

    world.write(("a", "1"))
    with pytest.raises(RuntimeError):
        world.write(("a", "x" * 2_000_000), if_too_large=fault)
    with pytest.raises(CoordinatorLoadInProgress):
        world.write(("a", "2"))
    world.settle()
    assert world.notes == {"a": "1"}


def test_one_record_that_is_too_large_refuses_all_of_a_divided_decision(world: World) -> None:
    with pytest.raises(DecisionTooLarge):
        world.write(("a", "1"), ("b", "1"), ("c", "x" * 2_000_000), is_atomic=False, is_refusable=True)
    assert world.partition.log.log_end_offset == 0, "nothing is in the log that the machine does not know"


def test_a_machine_that_fails_whenever_it_is_loaded_gets_ever_more_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notebook, "loaded", lambda *_: Decision([("a", "x" * 2_000_000)]))
    delays: list[float] = []
    sleep = asyncio.sleep

    async def recorded(seconds: float) -> None:
        delays.append(seconds)
        await sleep(0)

    world.shard.load()
    monkeypatch.setattr(asyncio, "sleep", recorded)
    for _ in range(5):
        world.settle()
    waited = [seconds for seconds in delays if seconds]
    assert waited[:3] == [0.1, 0.2, 0.4]


def test_reloads_wait_longer_the_more_follow_each_other() -> None:
    backoff = ReloadBackoff()
    assert [backoff.next_delay_ms(number) for number in range(12)][:4] == [0, 100, 200, 400]
    assert backoff.next_delay_ms(20) == 30_000
    assert backoff.next_delay_ms(100_000) == 0, "it has worked for a while"


def test_records_that_need_not_be_together_are_divided(world: World) -> None:
    world.write(*((f"k{number}", "x" * 100_000) for number in range(20)), is_atomic=False)
    assert len(world.notes) == 20
    assert world.partition.log.log_end_offset == 20


def test_a_fault_in_a_decision_throws_the_machine_away(world: World) -> None:
    world.write(("a", "1"))

    def fault(machine: Notebook, waiter: Waiter, now: Now) -> Decision[Note]:
        machine.notes["a"] = "half done"
        raise RuntimeError("a fault")

    with pytest.raises(RuntimeError):
        world.shard.ask(fault)
    world.settle()
    assert world.notes == {"a": "1"}


def test_a_fault_in_replay_throws_the_machine_away_and_what_cannot_be_replayed_takes_the_partition_offline(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = world.wait("b")
    with pytest.raises(RuntimeError):
        world.write(("breaks", "everything"))
    with pytest.raises(CoordinatorLoadInProgress):
        world.done(waiting)
    world.settle()
    with pytest.raises(NotCoordinator):
        world.write(("a", "1"))
    assert "goes offline" in caplog.text
    with pytest.raises(StorageError):
        world.partition.check_online()


def test_a_fault_of_a_timer_is_counted_and_the_shard_loaded_again(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(machine: Notebook, name: TimerName, now: Now) -> Decision[Note]:
        raise RuntimeError("a fault")

    monkeypatch.setattr(Notebook, "on_timer", fault)
    with pytest.raises(CoordinatorLoadInProgress):
        world.done(world.wait("a", for_ms=1))
    assert world.parts.counters.unexpected.total() == 1
    assert "failed and is loaded again" in caplog.text
    world.settle()
    world.write(("a", "1"))


def test_a_machine_that_cannot_begin_to_work_is_not_tried_for_ever(world: World) -> None:
    world.write(("loading", "fails"))
    world.shard.load()
    world.settle()
    with pytest.raises(NotCoordinator):
        world.write(("a", "1"))


def test_while_it_loads_whoever_asks_is_told(world: World) -> None:
    world.write(("a", "1"))
    world.shard.load()
    with pytest.raises(CoordinatorLoadInProgress):
        world.write(("b", "1"))
    with pytest.raises(CoordinatorLoadInProgress):
        world.shard.look(lambda machine: machine.notes)
    world.settle()
    assert world.notes == {"a": "1"}
    assert world.shard.machine.is_loaded


def test_what_must_not_be_left_out_is_done_once_it_is_loaded(world: World) -> None:
    world.write(("a", "1"), ("b", "1"))
    world.shard.load()
    world.shard.run_once_loaded(lambda machine, now: Decision([("a", None)]))
    world.settle()
    assert world.notes == {"b": "1"}
    world.shard.run_once_loaded(lambda machine, now: Decision([("b", None)]))
    assert world.notes == {}
    world.shard.load()
    world.settle()
    assert world.notes == {}, "once"
    world.runtime.resign(0)


def test_a_partition_that_is_not_led_here_says_so(world: World) -> None:
    with pytest.raises(NotCoordinator):
        world.runtime.shard(1)
    waiting = world.wait("a")
    world.runtime.resign(0)
    with pytest.raises(NotCoordinator):
        world.done(waiting)
    with pytest.raises(NotCoordinator):
        world.runtime.shard(0)


def test_what_cannot_be_read_takes_only_its_partition_offline(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.broker.create("other")
    append(world, batch((b"unreadable", b"x")))
    caplog.set_level(logging.ERROR)
    world.shard.load()
    world.settle()
    with pytest.raises(NotCoordinator):
        world.write(("a", "1"))
    with pytest.raises(StorageError):
        world.partition.check_online()
    assert world.broker.produce("other", 1) == 0


def test_a_flush_of_every_message_is_waited_for(world: World) -> None:
    world.partition.configure(replace(world.parts.metadata.config_of(TOPIC), flush_messages=1), 1 << 20)
    written = world.write(("a", "1"))
    assert not written.is_ready, "not answered in its turn"
    assert world.notes == {"a": "1"}, "but decided"
    looked = world.shard.ask(lambda machine, waiter, now: machine.write(waiter))
    assert not looked.is_ready, "nor is anybody told of what may be lost"
    assert world.done(written) == 0
    assert world.done(looked) == 1
    assert world.partition.log.recovery_point == 1


def test_a_flush_that_fails_answers_everybody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.partition.configure(replace(world.parts.metadata.config_of(TOPIC), flush_messages=1), 1 << 20)

    def broken(*_: Any) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(File, "fsync", broken)
    waiting = world.wait("b")
    with pytest.raises(NotCoordinator):
        world.done(world.write(("a", "1")))
    with pytest.raises(NotCoordinator):
        world.done(waiting)


def test_a_flush_that_fails_for_a_while_loads_the_machine_again_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiters: list[Any] = []
    loads: list[int] = []
    monkeypatch.setattr(Partition, "when_committed", lambda _, waiter: waiters.append(waiter))
    responses = [world.write((f"n{number}", "1")) for number in range(20)]
    load = world.shard.load

    def counted(delay_ms: int = 0) -> None:
        loads.append(delay_ms)
        load(delay_ms)

    monkeypatch.setattr(world.shard, "load", counted)
    for waiter in waiters:
        waiter(StorageError("no descriptor for now"))
    assert loads == [0]
    for response in responses:
        with pytest.raises(CoordinatorLoadInProgress):
            world.done(response)


# Loading


def batch(*notes: tuple[bytes, bytes | None], producer: Producer | None = None) -> bytearray:
    records = [Record(number, 1, key, value) for number, (key, value) in enumerate(notes)]
    if producer is None:
        return build_batch(records)
    return build_batch(
        records, producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=-1, is_transactional=True
    )


def marker(producer_id: int, *, is_committed: bool) -> bytearray:
    control = ControlType.COMMIT if is_committed else ControlType.ABORT
    return build_marker(
        control, offset=0, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1
    )


def append(world: World, data: bytearray) -> None:
    header = read_header(data)
    verification = None
    if header.is_transactional and not header.is_control:
        verification = world.partition.log.producers.begin_verification(
            header.producer_id, header.producer_epoch, header.base_sequence, 1, begins_at_zero=False
        )
    world.partition.append_own(data, 1, verification)


def test_records_of_a_transaction_count_when_its_marker_is_there(world: World) -> None:
    producer = Producer(40, 0)
    append(world, batch((b"a", b"before")))
    append(world, batch((b"a", b"inside"), (b"b", b"inside"), producer=producer))
    append(world, batch((b"b", b"outside")))
    world.shard.load()
    world.settle()
    assert world.notes == {"a": "before", "b": "outside"}
    append(world, marker(40, is_committed=True))
    append(world, batch((b"a", b"after")))
    world.shard.load()
    world.settle()
    assert world.notes == {"a": "after", "b": "inside"}, "in the order of the log"
    assert not world.shard.machine.pending


names = st.sampled_from(["a", "b", "c"])
notes = st.lists(st.tuples(names, st.none() | st.sampled_from(["1", "2", "3"])), min_size=1, max_size=3)
written = st.lists(
    st.one_of(
        st.tuples(st.just("put"), notes, st.none()),
        st.tuples(st.just("put"), notes, st.integers(1, 2)),
        st.tuples(st.just("end"), st.booleans(), st.integers(1, 2)),
    ),
    max_size=12,
)


@given(written, st.integers(1, 4))
def test_at_any_prefix_a_loaded_machine_is_the_live_one(steps: list[Any], at_a_time: int) -> None:
    live = Notebook()
    log: list[bytes] = []
    for kind, what, producer_id in steps:
        if kind == "put":
            producer = None if producer_id is None else Producer(producer_id, 0)
            for note in what:
                live.replay(note, producer)
            log.append(bytes(batch(*(encode(note) for note in what), producer=producer)))
        else:
            live.end_transaction(producer_id, is_committed=what)
            log.append(bytes(marker(producer_id, is_committed=what)))
        history = History()
        history.feed(b"".join(log))
        loaded, todo = Notebook(), history.steps()
        while replay_steps(loaded, todo, decode, at_a_time):
            pass
        assert (loaded.notes, loaded.pending) == (live.notes, live.pending)


def test_a_batch_that_was_cut_off_is_left_for_the_next_time() -> None:
    data = bytes(batch((b"a", b"1"))) + bytes(batch((b"b", b"1")))
    history = History()
    history.feed(data[:-1])
    assert history.next_offset == 1
    assert len(list(history.steps())) == 1


def test_errors_of_machines_are_kafkas(world: World) -> None:
    def answer_error(machine: Notebook, waiter: Waiter, now: Now) -> Decision[Note]:
        decision = Decision[Note]()
        decision.reply(waiter, InvalidRequest("as an answer"))
        return decision

    response = world.shard.ask(answer_error)
    with pytest.raises(KafkaError, match="as an answer"):
        response.then(lambda _: None)
    with pytest.raises(KafkaError, match="as an answer"):
        world.done(response)
