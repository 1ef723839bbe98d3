"""Transactions that run out of time, ids that expire, and what is taken up again after a crash."""

from dataclasses import replace

import pytest

from lamina.coordinators import transactions
from lamina.coordinators.decision import Producer
from lamina.coordinators.records.transaction_codec import decode_record, encode_record
from lamina.coordinators.records.transaction_records import (
    Status,
    TransactionKey,
    TransactionRecord,
    TransactionValue,
)
from lamina.coordinators.replaying import End, Machine, Put, replay
from lamina.coordinators.transaction_requests import BUMPING, CLASSIC, ProducerIdNeeded, TransactionSettings
from lamina.coordinators.transaction_transitions import ENDING, LAST_CLIENT_EPOCH
from lamina.coordinators.transactions import ABORT_TIMED_OUT, REMOVE_EXPIRED, TransactionShard
from lamina.errors import ProducerFenced, TransactionalIdNotFound
from tests.coordinators.test_transaction_init import world_at
from tests.coordinators.transaction_world import ID, TIMEOUT_MS, World

PARTITION = ("t", 0)
SCAN_MS = 10_000
HOUR_MS = 60 * 60 * 1000
WEEK_MS = 7 * 24 * HOUR_MS
LEVELS = pytest.mark.parametrize("level", [1, 2])


def at_level(level: int) -> World:
    return World(TransactionSettings(transaction_version=level))


# Timeouts


@LEVELS
def test_a_transaction_that_ran_out_of_time_is_aborted_and_its_producer_fenced(level: int) -> None:
    world = at_level(level)
    producer = world.init()
    world.add(producer, PARTITION, version=CLASSIC)
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    assert world.status == "PrepareAbort"
    (sent,) = world.write_markers()
    assert (sent.is_commit, sent.producer) == (False, Producer(producer.id, producer.epoch + 1))
    with pytest.raises(ProducerFenced):
        world.add(producer, PARTITION, version=CLASSIC)
    with pytest.raises(ProducerFenced):
        world.commit(producer, CLASSIC)


def test_a_transaction_has_its_whole_timeout() -> None:
    world = World()
    producer = world.init()
    world.add(producer, PARTITION)
    world.pass_time(TIMEOUT_MS)
    world.carry_out(world.shard.on_timer(ABORT_TIMED_OUT, world.now))
    assert world.status == "Ongoing"
    world.pass_time(1)
    world.carry_out(world.shard.on_timer(ABORT_TIMED_OUT, world.now))
    assert world.status == "PrepareAbort"


def test_more_partitions_do_not_prolong_a_transaction() -> None:
    world = World()
    producer = world.init()
    world.add(producer, PARTITION)
    world.pass_time(TIMEOUT_MS - 1)
    world.add(producer, ("u", 1))
    world.pass_time(SCAN_MS + 1)
    assert world.status == "PrepareAbort"


def test_only_open_transactions_time_out() -> None:
    world = World()
    producer = world.init()
    world.pass_time(HOUR_MS)
    world.add(producer, PARTITION)
    producer = world.commit(producer)
    world.pass_time(HOUR_MS)
    assert world.status == "PrepareCommit"
    world.write_markers()
    before = len(world.log)
    world.pass_time(HOUR_MS)
    assert len(world.log) == before
    world.add(producer, PARTITION)


def test_a_wall_clock_that_jumps_aborts_nothing() -> None:
    world = World()
    world.add(world.init(), PARTITION)
    world.wall_ms += WEEK_MS
    world.pass_time(SCAN_MS)
    assert world.status == "Ongoing"


def test_time_runs_while_the_broker_is_down() -> None:
    world = World()
    world.add(world.init(), PARTITION)
    world.wall_ms += TIMEOUT_MS + 1
    world.monotonic_ms = 17
    world.start()
    world.pass_time(SCAN_MS)
    assert world.status == "PrepareAbort"


def test_a_wall_clock_that_was_set_back_while_the_broker_was_down_starts_the_time_anew() -> None:
    world = World()
    world.add(world.init(), PARTITION)
    world.wall_ms -= WEEK_MS
    world.start()
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    assert world.status == "PrepareAbort"


def test_many_transactions_that_time_out_together_are_aborted_in_several_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "_PARTITIONS_AT_A_TIME", 4)
    world = World()
    for number in range(7):
        name = f"tx-{number}"
        world.add(world.init(transactional_id=name), PARTITION, transactional_id=name)
    world.monotonic_ms += TIMEOUT_MS + SCAN_MS
    first = world.shard.on_timer(ABORT_TIMED_OUT, world.now)
    assert len(first.records) == 2
    world.carry_out(first)
    world.pass_time(0)
    assert len(world.to_send) == 7


# Expiry


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_an_idle_id_is_forgotten_after_its_time(state: str) -> None:
    world = World()
    producer = world.init()
    if state != "Empty":
        world.add(producer, PARTITION)
        world.end(producer, is_commit=state == "CompleteCommit")
        world.write_markers()
    world.pass_time(WEEK_MS - 1)
    assert world.status == state
    world.pass_time(HOUR_MS + 1)
    assert world.log[-1] == TransactionRecord(TransactionKey(ID), None)
    with pytest.raises(TransactionalIdNotFound):
        world.shard.describe(ID)
    assert world.init().id != producer.id


def test_an_id_that_is_used_is_kept() -> None:
    world = World()
    producer = world.init(timeout_ms=900_000)
    world.pass_time(WEEK_MS - HOUR_MS)
    world.add(producer, PARTITION)
    world.wall_ms += WEEK_MS
    world.carry_out(world.shard.on_timer(REMOVE_EXPIRED, world.now))
    assert world.status == "Ongoing"
    world.commit(producer)
    world.wall_ms += 2 * WEEK_MS
    world.carry_out(world.shard.on_timer(REMOVE_EXPIRED, world.now))
    assert world.status == "PrepareCommit"


def test_many_ids_that_expire_together_are_forgotten_in_several_batches() -> None:
    world = World()
    for number in range(5):
        world.init(transactional_id=str(number) * 30_000)
    world.wall_ms += WEEK_MS
    first = world.shard.on_timer(REMOVE_EXPIRED, world.now)
    assert len(first.records) == 3
    world.carry_out(first)
    world.pass_time(0)
    assert world.listed_ids() == ()


def test_both_scans_go_on_at_their_intervals() -> None:
    world = World(TransactionSettings(abort_timed_out_interval_ms=50, remove_expired_interval_ms=70))
    began_ms = world.monotonic_ms
    assert world.timers == {ABORT_TIMED_OUT: began_ms + 50, REMOVE_EXPIRED: began_ms + 70}
    world.settings = replace(world.settings, abort_timed_out_interval_ms=10)
    world.pass_time(70)
    assert world.timers == {ABORT_TIMED_OUT: began_ms + 80, REMOVE_EXPIRED: began_ms + 140}


# Loading


def test_it_is_a_machine_that_a_log_can_be_replayed_into() -> None:
    world = World()
    producer = world.init()
    world.add(producer, PARTITION)
    machine: Machine[TransactionRecord] = TransactionShard(lambda: world.settings)
    steps: list[Put | End] = [Put(*encode_record(record)) for record in world.log]
    steps += [Put(b"\x00\x09", b"of another kind"), End(5, is_committed=True)]
    assert not replay(machine, iter(steps), decode_record, 10)
    assert isinstance(machine, TransactionShard)
    assert machine.describe(ID).state == "Ongoing"


@LEVELS
@pytest.mark.parametrize("is_commit", [True, False])
def test_what_was_being_ended_is_taken_up_again(level: int, is_commit: bool) -> None:
    world = at_level(level)
    producer = world.init()
    world.add(producer, PARTITION, version=level)
    world.end(producer, is_commit=is_commit, version=level)
    (before,) = world.to_send
    world.start()
    (again,) = world.to_send
    assert again == before._replace(coordinator_epoch=1)
    world.start()
    world.write_markers()
    assert world.status == ("CompleteCommit" if is_commit else "CompleteAbort")
    world.start()
    assert world.to_send == []


def test_a_fence_that_a_log_speaks_of_becomes_an_abort() -> None:
    world = World()
    value = TransactionValue(
        5, 3, TIMEOUT_MS, Status.PREPARE_EPOCH_FENCE, frozenset({PARTITION}), world.wall_ms, world.wall_ms
    )
    world.log = [TransactionRecord(TransactionKey(ID), value)]
    world.start()
    assert world.status == "PrepareAbort"
    (sent,) = world.write_markers()
    assert sent.producer == Producer(5, 3)
    assert world.status == "CompleteAbort"


def test_a_dead_id_is_not_there() -> None:
    world = World()
    world.init()
    record = world.log[-1]
    assert record.value is not None
    world.log.append(record._replace(value=record.value._replace(status=Status.DEAD)))
    world.start()
    with pytest.raises(TransactionalIdNotFound):
        world.shard.describe(ID)


def test_markers_at_the_last_epoch_want_a_fresh_producer_id() -> None:
    world, producer = world_at(LAST_CLIENT_EPOCH)
    world.add(producer, PARTITION)
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    (sent,) = world.to_send
    with pytest.raises(ProducerIdNeeded):
        world.shard.markers_written(ID, sent.producer, world.now)


def test_from_every_prefix_of_the_log_every_prepared_transaction_completes() -> None:
    world = World()
    first = world.init()
    world.add(first, PARTITION)
    second = world.commit(first)
    world.write_markers()
    world.abort(second)
    world.write_markers()
    classic = world.init()
    world.add(classic, PARTITION, ("u", 1), version=CLASSIC)
    world.commit(classic, CLASSIC)
    world.write_markers()
    world.add(classic, PARTITION, version=CLASSIC)
    world.pass_time(TIMEOUT_MS + SCAN_MS)
    world.write_markers()
    log = world.log
    assert {record.value.status for record in log if record.value is not None} >= {
        Status.PREPARE_COMMIT,
        Status.PREPARE_ABORT,
        Status.COMPLETE_COMMIT,
        Status.COMPLETE_ABORT,
    }
    for length in range(1, len(log) + 1):
        again = World()
        again.next_producer_id = world.next_producer_id
        again.wall_ms, again.log = world.wall_ms, log[:length]
        again.start()
        cut = again.value()
        assert cut is not None
        again.write_markers()
        after = again.value()
        assert after is not None
        assert after.status not in ENDING
        if cut.status in ENDING:
            is_commit = cut.status is Status.PREPARE_COMMIT
            assert after.status is (Status.COMPLETE_COMMIT if is_commit else Status.COMPLETE_ABORT)
        else:
            assert after == cut
        again.pass_time(TIMEOUT_MS + SCAN_MS)
        again.write_markers()
        assert again.init().epoch >= cut.producer_epoch


def test_a_level_that_is_raised_while_a_transaction_is_open_applies_to_its_end() -> None:
    world = at_level(1)
    producer = world.init()
    world.add(producer, PARTITION, version=CLASSIC)
    world.set_level(BUMPING)
    after = world.commit(producer)
    world.write_markers()
    assert after == Producer(producer.id, 1)
    assert world.commit(producer) == after
