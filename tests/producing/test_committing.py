"""A batch is seen once, whatever crashed at whichever step, and whoever comes late."""

import asyncio
import json
import random
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import uuid4

import pytest

from lamina.errors import InvalidProducerEpoch
from lamina.peer.transacting import Producer
from lamina.producing.committing import abort_batch, commit_batch
from lamina.producing.decisions import (
    BYTES_PER_TASK,
    BatchName,
    OpenTransaction,
    QueryState,
    Slot,
    Status,
    decode_state,
    encode_state,
    new_attempt_id,
)
from lamina.producing.errors import TransactionLost, WriteError
from lamina.records.batch import Codec
from lamina.records.codecs import compress
from tests.producing.model import QUERY, TIMEOUT_MS, Attempt, Brokers, Crash, ModelLedger

PARTITIONS = 3
BUMPS = pytest.mark.parametrize("bumps", [False, True], ids=["classic", "bumping"])


def write(brokers: Brokers, name: BatchName, partitions: int = PARTITIONS) -> list[OpenTransaction]:
    """What the tasks of a batch leave open."""
    attempts = [brokers.attempt(name, partition) for partition in range(partitions)]
    return [attempt.write() for attempt in attempts if attempt is not None]


def commit(ledger: ModelLedger, name: BatchName, written: list[OpenTransaction], *, bumps: bool) -> None:
    asyncio.run(commit_batch(ledger, name, written, bumps=bumps))


def run_batch(brokers: Brokers, name: BatchName, partitions: int = PARTITIONS) -> None:
    commit(ModelLedger(brokers), name, write(brokers, name, partitions), bumps=brokers.bumps)


def rows(batches: int, partitions: int = PARTITIONS) -> list[tuple[int, int]]:
    return [(batch, partition) for batch in range(batches) for partition in range(partitions)]


def steps_of_a_batch(*, bumps: bool) -> int:
    brokers = Brokers(bumps)
    run_batch(brokers, BatchName(QUERY, 0))
    ledger = ModelLedger(brokers)
    name = BatchName(QUERY, 1)
    commit(ledger, name, write(brokers, name), bumps=bumps)
    return ledger.steps


@BUMPS
@pytest.mark.parametrize("batches", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_batches_are_seen_once_and_in_few_transactional_ids(bumps: bool, batches: int) -> None:
    brokers = Brokers(bumps)

    async def run_batches() -> None:
        for batch in range(batches):
            name = BatchName(QUERY, batch)
            await commit_batch(ModelLedger(brokers), name, write(brokers, name), bumps=bumps)
            del brokers.states[:-1]
            brokers.claims.clear()  # All are of epochs that are over.

    asyncio.run(run_batches())
    assert sorted(brokers.visible) == rows(batches)
    assert len(brokers.ids) == PARTITIONS
    assert brokers.producers == PARTITIONS
    assert len(brokers.states[-1]) < 1_000


@BUMPS
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_driver_that_crashes_at_any_step_leaves_what_the_next_one_finishes(bumps: bool, is_done: bool) -> None:
    for step in range(steps_of_a_batch(bumps=bumps)):
        brokers = Brokers(bumps)
        run_batch(brokers, BatchName(QUERY, 0))
        name = BatchName(QUERY, 1)
        with pytest.raises(Crash):
            commit(ModelLedger(brokers, step, is_done=is_done), name, write(brokers, name), bumps=bumps)
        seen = set(brokers.visible) & {(1, partition) for partition in range(PARTITIONS)}
        state = brokers.state()
        assert state is not None
        assert not seen or state.batch == 1, "nothing is seen before the decision"
        for batch in (1, 2, 3):
            run_batch(brokers, BatchName(QUERY, batch))
        assert sorted(brokers.visible) == rows(4), f"step {step}"
        assert not brokers.unended


@BUMPS
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_what_a_batch_decided_is_finished_before_the_next_one(bumps: bool, is_done: bool) -> None:
    for step in range(steps_of_a_batch(bumps=bumps)):
        brokers = Brokers(bumps)
        run_batch(brokers, BatchName(QUERY, 0))
        name = BatchName(QUERY, 1)
        with pytest.raises(Crash):
            commit(ModelLedger(brokers, step, is_done=is_done), name, write(brokers, name), bumps=bumps)
        is_decided = newest_batch(brokers) == 1
        run_batch(brokers, BatchName(QUERY, 2))
        expected = [row for row in rows(3) if is_decided or row[0] != 1]
        assert sorted(brokers.visible) == expected, f"step {step}"
        assert not brokers.unended


@BUMPS
def test_a_batch_that_fails_does_not_abort_what_the_one_before_it_decided(bumps: bool) -> None:
    for step in range(steps_of_a_batch(bumps=bumps)):
        brokers = Brokers(bumps)
        name, later = BatchName(QUERY, 0), BatchName(QUERY, 1)
        with pytest.raises(Crash):
            commit(ModelLedger(brokers, step, is_done=True), name, write(brokers, name), bumps=bumps)
        abort(brokers, later, write(brokers, later)[:1])
        run_batch(brokers, name)
        assert sorted(brokers.visible) == rows(1), f"step {step}"


@BUMPS
def test_a_batch_of_which_a_part_is_lost_is_told_once_before_the_next_one_goes_on(bumps: bool) -> None:
    brokers = Brokers(bumps)
    name = BatchName(QUERY, 0)
    written = write(brokers, name)
    decided = QueryState(0, Status.DECIDED, tuple(written), bumps, TIMEOUT_MS)
    brokers.states.append(encode_state(decided))
    brokers.time_out(written[1])
    with pytest.raises(TransactionLost, match="batch 0 of query query was decided, but a part of it is lost"):
        run_batch(brokers, BatchName(QUERY, 1))
    run_batch(brokers, BatchName(QUERY, 1))
    assert sorted(brokers.visible) == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]


def newest_batch(brokers: Brokers) -> int:
    state = brokers.state()
    return -1 if state is None else state.batch


@BUMPS
@pytest.mark.parametrize("seed", range(300))
def test_crashes_retries_and_late_attempts_leave_every_batch_once(bumps: bool, seed: int) -> None:
    chance = random.Random(seed)
    brokers = Brokers(bumps)
    batch = 0
    late: list[Attempt] = []
    losers: list[Attempt] = []
    skipped: set[int] = set()
    while batch < 8:
        name = BatchName(QUERY, batch)
        attempts = []
        for partition in range(PARTITIONS):
            for _ in range(chance.choice([1, 1, 1, 2, 3])):
                # A stage that is run again counts attempts from 0, while those of its first run may live on.
                found = brokers.attempt(name, partition, chance.choice([0, 0, 1]))
                if found is not None:
                    attempts.append(found)
        winners: dict[int, OpenTransaction] = {}
        for one in attempts:
            if chance.random() < 0.3:
                late.append(one)
            elif chance.random() < 0.8:
                winners[one.partition] = one.write()
        missing = [one for one in attempts if one.partition not in winners and one not in late]
        for one in missing:
            winners[one.partition] = one.write()
        if attempts and len(winners) < PARTITIONS:
            continue  # A task failed for good: the query is started again.
        written = list(winners.values())
        losers += [one for one in attempts if one.has_joined and one.transaction not in written]
        crash_at = chance.randrange(60) if chance.random() < 0.5 else -1
        try:
            commit(ModelLedger(brokers, crash_at, is_done=chance.random() < 0.5), name, written, bumps=bumps)
        except Crash:
            if chance.random() < 0.5:
                abort(brokers, name, written)  # Spark asks for it also when the decision is written.
            if batch < 7 and chance.random() < 0.3:
                # A job that is not run again: what it decided is finished by the next one.
                if newest_batch(brokers) < batch:
                    skipped.add(batch)
                batch += 1
        else:
            batch += 1
        chance.shuffle(late)
        while late and chance.random() < 0.5:
            wake(late.pop())
        for one in losers:
            if chance.random() < 0.5:
                send_late(one)
    assert sorted(brokers.visible) == [row for row in rows(8) if row[0] not in skipped]


def abort(brokers: Brokers, name: BatchName, written: list[OpenTransaction]) -> None:
    asyncio.run(abort_batch(ModelLedger(brokers), name, written, bumps=brokers.bumps))


def wake(late: Attempt) -> None:
    """It writes now: into a transaction of its own, or nothing."""
    with suppress(InvalidProducerEpoch):
        late.write()


@BUMPS
@pytest.mark.parametrize("is_aborted", [False, True], ids=["committed", "aborted"])
def test_what_a_loser_sends_late_is_never_seen_and_holds_nobody_up(bumps: bool, is_aborted: bool) -> None:
    for step in range(1, 2 * steps_of_a_batch(bumps=bumps)):
        brokers = Brokers(bumps)
        run_batch(brokers, BatchName(QUERY, 0))
        name = BatchName(QUERY, 1)
        loser = brokers.attempt(name, 0)
        assert loser is not None
        loser.write()
        ledger = ModelLedger(brokers, meanwhile={step: partial(send_late, loser)})
        if is_aborted:
            asyncio.run(abort_batch(ledger, name, [], bumps=bumps))
        else:
            commit(ledger, name, write(brokers, name), bumps=bumps)
        for batch in (1, 2, 3):
            run_batch(brokers, BatchName(QUERY, batch))
        assert sorted(brokers.visible) == rows(4), f"step {step}"
        assert not brokers.unended, f"step {step}"


def send_late(one: Attempt) -> None:
    with suppress(InvalidProducerEpoch):
        one.produce()


@BUMPS
def test_two_attempts_that_find_the_same_id_do_not_share_a_transaction(bumps: bool) -> None:
    brokers = Brokers(bumps)
    run_batch(brokers, BatchName(QUERY, 0))
    name = BatchName(QUERY, 1)
    first, second = brokers.attempt(name, 0), brokers.attempt(name, 0)
    assert first is not None
    assert second is not None
    assert first.transaction.transactional_id != second.transaction.transactional_id
    commit(ModelLedger(brokers), name, [first.write(), *write(brokers, name)[1:]], bumps=bumps)
    second.write()
    run_batch(brokers, BatchName(QUERY, 2))
    assert sorted(brokers.visible) == rows(3)


@BUMPS
def test_ids_are_used_again_by_another_run_of_the_query(bumps: bool) -> None:
    brokers = Brokers(bumps)
    run_batch(brokers, BatchName(QUERY, 0))
    name = BatchName(QUERY, 1)
    abort(brokers, name, write(brokers, name))
    for batch in range(1, 50):
        run_batch(brokers, BatchName(QUERY, batch))
    assert sorted(brokers.visible) == rows(50)
    assert len(brokers.ids) == 2 * PARTITIONS


@BUMPS
def test_an_abort_after_the_decision_aborts_nothing(bumps: bool) -> None:
    name = BatchName(QUERY, 0)
    for step in range(steps_of_a_batch(bumps=bumps)):
        brokers = Brokers(bumps)
        written = write(brokers, name)
        with pytest.raises(Crash):
            commit(ModelLedger(brokers, step, is_done=True), name, written, bumps=bumps)
        abort(brokers, name, written)
        run_batch(brokers, name)
        assert sorted(brokers.visible) == rows(1), f"step {step}"


@BUMPS
def test_ids_with_another_timeout_are_not_used_again(bumps: bool) -> None:
    brokers = Brokers(bumps)
    run_batch(brokers, BatchName(QUERY, 0))
    state = brokers.state()
    assert state is not None
    brokers.states.append(encode_state(replace(state, timeout_ms=TIMEOUT_MS + 1)))
    run_batch(brokers, BatchName(QUERY, 1))
    assert len(brokers.ids) == 2 * PARTITIONS
    assert sorted(brokers.visible) == rows(2)


@BUMPS
def test_ids_that_brokers_may_have_forgotten_are_not_used_again(bumps: bool) -> None:
    brokers = Brokers(bumps)
    run_batch(brokers, BatchName(QUERY, 0))
    brokers.now_ms += 24 * 60 * 60 * 1000
    for batch in (1, 2):
        run_batch(brokers, BatchName(QUERY, batch))
    assert len(brokers.ids) == 2 * PARTITIONS
    assert sorted(brokers.visible) == rows(3)


@BUMPS
def test_a_replayed_batch_that_is_decided_writes_nothing(bumps: bool) -> None:
    brokers = Brokers(bumps)
    run_batch(brokers, BatchName(QUERY, 0))
    assert write(brokers, BatchName(QUERY, 0)) == []
    commit(ModelLedger(brokers), BatchName(QUERY, 0), [], bumps=bumps)
    assert sorted(brokers.visible) == rows(1)


@BUMPS
def test_what_a_new_run_wrote_of_a_decided_batch_is_aborted(bumps: bool) -> None:
    brokers = Brokers(bumps)
    name = BatchName(QUERY, 0)
    written_first, written_second = write(brokers, name), write(brokers, name)
    commit(ModelLedger(brokers), name, written_first, bumps=bumps)
    with pytest.raises(TransactionLost):
        brokers.end(written_second[0], is_commit=True)
    commit(ModelLedger(brokers), name, written_second, bumps=bumps)
    assert sorted(brokers.visible) == rows(1)


@BUMPS
def test_a_driver_that_was_fenced_decides_nothing(bumps: bool) -> None:
    brokers = Brokers(bumps)
    old = ModelLedger(brokers)
    asyncio.run(old.fence())
    asyncio.run(ModelLedger(brokers).fence())
    state = QueryState(0, Status.DECIDED, (), bumps, TIMEOUT_MS)
    with pytest.raises(InvalidProducerEpoch):
        asyncio.run(old.write(state))


@BUMPS
def test_a_transaction_that_is_over_too_early_leaves_the_batch_undecided(bumps: bool) -> None:
    brokers = Brokers(bumps)
    name = BatchName(QUERY, 0)
    written = write(brokers, name)
    brokers.time_out(written[1])
    with pytest.raises(WriteError, match=r"transaction\.timeout\.ms"):
        commit(ModelLedger(brokers), name, written, bumps=bumps)
    assert brokers.state() is None
    run_batch(brokers, BatchName(QUERY, 0))
    assert sorted(brokers.visible) == rows(1)


@BUMPS
def test_a_decided_transaction_that_is_over_stops_the_query_with_a_sentence(bumps: bool) -> None:
    brokers = Brokers(bumps)
    name = BatchName(QUERY, 0)
    written = write(brokers, name)
    decided = QueryState(0, Status.DECIDED, tuple(written), bumps, TIMEOUT_MS)
    brokers.states.append(encode_state(decided))
    brokers.time_out(written[1])
    for _ in range(2):
        with pytest.raises(TransactionLost, match="batch 0 of query query was decided, but a part of it is lost"):
            commit(ModelLedger(brokers), BatchName(QUERY, 0), [], bumps=bumps)
    assert sorted(brokers.visible) == [(0, 0), (0, 2)]


@BUMPS
def test_another_writer_under_the_same_name_is_refused(bumps: bool) -> None:
    first, second = (BatchName(QUERY, 0, writer) for writer in ("topic a", "topic b"))
    brokers = Brokers(bumps)
    late = write(brokers, second)
    run_batch(brokers, first)
    told = (
        "batch 0 of query query was written by another writer, topic a; this one is topic b. Give each of them a name "
        "of its own with the option queryId"
    )
    for work in (lambda: write(brokers, second), lambda: commit(ModelLedger(brokers), second, late, bumps=bumps)):
        with pytest.raises(WriteError, match=f"^{told}$"):
            work()
    run_batch(brokers, first)
    run_batch(brokers, BatchName(QUERY, 1, "topic b"))
    assert sorted(brokers.visible) == rows(2)
    assert not brokers.unended


def test_a_state_that_tells_no_writer_is_of_any() -> None:
    brokers = Brokers(bumps=True)
    run_batch(brokers, BatchName(QUERY, 0))
    told = json.loads(brokers.states[-1])
    del told["writer"]
    brokers.states.append(json.dumps(told).encode())
    run_batch(brokers, BatchName(QUERY, 0, "topic a"))
    assert sorted(brokers.visible) == rows(1)


def test_a_batch_before_the_newest_is_refused() -> None:
    brokers = Brokers(bumps=True)
    run_batch(brokers, BatchName(QUERY, 5))
    older = BatchName(QUERY, 4)
    for work in (lambda: write(brokers, older), lambda: commit(ModelLedger(brokers), older, [], bumps=True)):
        with pytest.raises(WriteError, match="has written batch 5 already and now comes with batch 4"):
            work()


@BUMPS
def test_ids_that_no_batch_has_used_for_a_while_are_let_go(bumps: bool) -> None:
    brokers = Brokers(bumps)
    run_batch(brokers, BatchName(QUERY, 0))
    sizes = []
    for batch in range(1, 102):
        run_batch(brokers, BatchName(QUERY, batch), partitions=1)
        state = brokers.state()
        assert state is not None
        sizes.append(len(state.pool))
    assert sizes == [PARTITIONS] * 100 + [1]
    run_batch(brokers, BatchName(QUERY, 102))
    state = brokers.state()
    assert state is not None
    assert (len(state.pool), state.idle_batches) == (PARTITIONS, {})


def test_no_task_takes_more_of_a_decision_than_is_said() -> None:
    """Of ids that are drawn as tasks draw them, with numbers of any size."""
    tasks = 5_000
    query = str(uuid4())
    ids = [new_attempt_id("lamina", BatchName(query, 0), Slot(task, 0), uuid4().hex[:12]) for task in range(tasks)]
    drawn = [OpenTransaction(one, Producer(uuid4().int % 2**63, uuid4().int % 2**15)) for one in ids]
    pool = {f"{task}.0": one for task, one in enumerate(drawn)}
    state = QueryState(
        2**40, Status.DECIDED, tuple(drawn), True, TIMEOUT_MS, pool, idle_batches=dict.fromkeys(pool, 99)
    )
    assert len(compress(Codec.GZIP, encode_state(state))) < tasks * BYTES_PER_TASK


def test_a_state_is_read_as_it_was_written() -> None:
    one = OpenTransaction("lamina-query-task-3.0-ab", Producer(7, 2))
    state = QueryState(12, Status.DECIDED, (one,), True, TIMEOUT_MS, {"3.0": one}, 1_700_000_000_000, "topic a")
    state = replace(state, idle_batches={"3.0": 7})
    assert decode_state(encode_state(state)) == state


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"version":1}', b"\xff", b'{"version":"a"}'])
def test_what_is_no_state_is_one_sentence(data: bytes) -> None:
    with pytest.raises(WriteError, match="no decision"):
        decode_state(data)


def test_a_state_of_a_later_version_is_refused() -> None:
    with pytest.raises(WriteError, match="version 2"):
        decode_state(b'{"version":2}')
