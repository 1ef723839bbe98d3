"""EndTxn at both levels: the classic one, and transaction version 2 (KIP-890)."""

import pytest

from lamina.coordinators.decision import Producer
from lamina.coordinators.records.transaction_records import Status
from lamina.coordinators.transaction_requests import BUMPING, CLASSIC, NO_PRODUCER
from lamina.coordinators.transaction_transitions import LAST_CLIENT_EPOCH, MAX_EPOCH
from lamina.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionState,
    ProducerFenced,
)
from tests.coordinators.test_transaction_init import world_at
from tests.coordinators.transaction_world import ID, TIMEOUT_MS, World

PARTITION = ("t", 0)
LEVELS = pytest.mark.parametrize("version", [CLASSIC, BUMPING])
RESULTS = pytest.mark.parametrize("is_commit", [True, False])


def ongoing(version: int) -> tuple[World, Producer]:
    world = World()
    producer = world.init()
    world.add(producer, PARTITION, version=version)
    return world, producer


def ended(version: int, *, is_commit: bool) -> tuple[World, Producer, Producer]:
    """A transaction that is over, who had it, and who that is now."""
    world, producer = ongoing(version)
    after = world.end(producer, is_commit=is_commit, version=version)
    world.write_markers()
    return world, producer, after


# Both levels


@LEVELS
@RESULTS
def test_a_transaction_is_prepared_then_marked_then_complete(version: int, is_commit: bool) -> None:
    world, producer = ongoing(version)
    world.end(producer, is_commit=is_commit, version=version)
    result = "Commit" if is_commit else "Abort"
    assert world.status == f"Prepare{result}"
    (sent,) = world.write_markers()
    assert (sent.transactional_id, sent.is_commit, sent.partitions) == (ID, is_commit, frozenset({PARTITION}))
    assert sent.transaction_version == version
    assert world.status == f"Complete{result}"
    assert world.shard.describe(ID).partitions == ()


@LEVELS
@RESULTS
def test_an_end_that_is_repeated_while_markers_are_written_comes_too_early(version: int, is_commit: bool) -> None:
    world, producer = ongoing(version)
    world.end(producer, is_commit=True, version=version)
    with pytest.raises(ConcurrentTransactions):
        world.end(producer, is_commit=is_commit, version=version)


@LEVELS
def test_markers_that_are_written_twice_complete_once(version: int) -> None:
    world, producer = ongoing(version)
    world.commit(producer, version)
    (sent,) = world.write_markers()
    before = len(world.log)
    world.markers_written(sent)
    assert len(world.log) == before


def test_markers_of_an_earlier_transaction_do_not_complete_a_later_one() -> None:
    world, producer = ongoing(BUMPING)
    producer = world.commit(producer)
    (earlier,) = world.write_markers()
    world.add(producer, PARTITION)
    world.markers_written(earlier)
    assert world.status == "Ongoing"
    world.abort(producer)
    world.markers_written(earlier)
    assert world.status == "PrepareAbort"


@LEVELS
def test_an_end_by_nobody_is_refused(version: int) -> None:
    world, producer = ongoing(version)
    with pytest.raises(InvalidProducerIdMapping):
        World().end(producer, is_commit=True, version=version)
    with pytest.raises(InvalidProducerIdMapping):
        world.end(producer._replace(id=1), is_commit=True, version=version)
    with pytest.raises(InvalidRequest):
        world.end(producer, is_commit=True, version=version, transactional_id="")


@LEVELS
@pytest.mark.parametrize("epoch", [-1, 1, 7])
def test_an_end_with_another_epoch_is_fenced(version: int, epoch: int) -> None:
    world, producer = ongoing(version)
    with pytest.raises(ProducerFenced):
        world.end(producer._replace(epoch=epoch), is_commit=True, version=version)
    with pytest.raises(InvalidProducerEpoch):
        world.end(producer._replace(epoch=epoch), is_commit=True, version=version, knows_fenced=False)


# The classic level


@RESULTS
def test_a_classic_client_keeps_its_epoch_and_is_told_none(is_commit: bool) -> None:
    world, producer, response = ended(CLASSIC, is_commit=is_commit)
    assert response == NO_PRODUCER
    assert world.shard.describe(ID).producer == producer
    world.add(producer, PARTITION, version=CLASSIC)


@RESULTS
def test_a_classic_end_that_is_repeated_gets_the_same_success(is_commit: bool) -> None:
    world, producer, response = ended(CLASSIC, is_commit=is_commit)
    before = len(world.log)
    assert world.end(producer, is_commit=is_commit, version=CLASSIC) == response
    assert len(world.log) == before
    with pytest.raises(InvalidTransactionState):
        world.end(producer, is_commit=not is_commit, version=CLASSIC)


@RESULTS
def test_a_classic_client_cannot_end_what_it_has_not_begun(is_commit: bool) -> None:
    world = World()
    producer = world.init()
    with pytest.raises(InvalidTransactionState, match="Empty"):
        world.end(producer, is_commit=is_commit, version=CLASSIC)


# Version 2


@RESULTS
def test_every_end_raises_the_epoch_and_the_answer_says_so(is_commit: bool) -> None:
    world, producer = ongoing(BUMPING)
    after = world.end(producer, is_commit=is_commit)
    assert after == Producer(producer.id, producer.epoch + 1)
    (sent,) = world.write_markers()
    assert sent.producer == after
    assert world.shard.describe(ID).producer == after
    with pytest.raises(ProducerFenced):
        world.add(producer, PARTITION)
    world.add(after, PARTITION)


@RESULTS
def test_an_end_that_is_repeated_gets_the_same_success(is_commit: bool) -> None:
    world, producer, after = ended(BUMPING, is_commit=is_commit)
    before = len(world.log)
    assert world.end(producer, is_commit=is_commit) == after
    world.start()
    assert world.end(producer, is_commit=is_commit) == after
    assert len(world.log) == before


@RESULTS
def test_an_end_that_is_repeated_with_the_other_result_is_an_invalid_state(is_commit: bool) -> None:
    world, producer, _ = ended(BUMPING, is_commit=is_commit)
    with pytest.raises(InvalidTransactionState):
        world.end(producer, is_commit=not is_commit)


@RESULTS
def test_a_late_end_does_not_touch_the_next_transaction(is_commit: bool) -> None:
    world, producer, after = ended(BUMPING, is_commit=True)
    world.add(after, PARTITION)
    with pytest.raises(ProducerFenced):
        world.end(producer, is_commit=is_commit)
    assert world.status == "Ongoing"


@pytest.mark.parametrize("before", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_an_abort_with_no_partition_is_legal_and_raises_the_epoch(before: str) -> None:
    if before == "Empty":
        world = World()
        producer = world.init()
    else:
        world, _, producer = ended(BUMPING, is_commit=before == "CompleteCommit")
    assert world.status == before
    after = world.abort(producer)
    assert after == Producer(producer.id, producer.epoch + 1)
    assert world.status == "PrepareAbort"
    (sent,) = world.write_markers()
    assert sent.partitions == frozenset()
    assert world.status == "CompleteAbort"
    assert world.shard.describe(ID).start_timestamp_ms == world.wall_ms
    assert world.abort(producer) == after


@pytest.mark.parametrize("before", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_a_commit_with_no_partition_is_an_invalid_state(before: str) -> None:
    if before == "Empty":
        world = World()
        producer = world.init()
    else:
        world, _, producer = ended(BUMPING, is_commit=before == "CompleteCommit")
    with pytest.raises(InvalidTransactionState, match=before):
        world.commit(producer)


def test_a_repetition_after_somebody_took_over_is_fenced() -> None:
    world, producer, _ = ended(BUMPING, is_commit=True)
    world.init()
    with pytest.raises(ProducerFenced):
        world.commit(producer)


def test_a_zombie_does_not_pass_for_the_classic_client_that_took_over() -> None:
    world = World()
    zombie = world.init()
    successor = world.init()
    world.add(successor, PARTITION, version=CLASSIC)
    world.commit(successor, CLASSIC)
    world.write_markers()
    assert successor.epoch == zombie.epoch + 1
    with pytest.raises(ProducerFenced):
        world.commit(zombie)


def test_after_a_timeout_an_abort_succeeds_with_the_epoch_that_was_raised() -> None:
    world, producer = ongoing(BUMPING)
    world.pass_time(TIMEOUT_MS + 10_000)
    world.write_markers()
    with pytest.raises(InvalidTransactionState):
        world.commit(producer)
    after = world.abort(producer)
    assert after == Producer(producer.id, 1)
    world.add(after, PARTITION)


# Epochs that run out


@RESULTS
def test_at_the_last_epoch_the_answer_names_a_fresh_producer_id(is_commit: bool) -> None:
    world, producer = world_at(LAST_CLIENT_EPOCH)
    world.add(producer, PARTITION)
    after = world.end(producer, is_commit=is_commit)
    assert after == Producer(producer.id + 1, 0)
    value = world.value()
    assert value is not None
    assert (value.producer_id, value.producer_epoch, value.next_producer_id) == (producer.id, MAX_EPOCH, after.id)
    with pytest.raises(ConcurrentTransactions):
        world.add(after, PARTITION)
    with pytest.raises(ConcurrentTransactions):
        world.end(after, is_commit=False)
    (sent,) = world.write_markers()
    assert sent.producer == Producer(producer.id, MAX_EPOCH)
    value = world.value()
    assert value is not None
    assert (value.producer_id, value.producer_epoch) == after
    assert (value.previous_producer_id, value.next_producer_id) == (producer.id, -1)


@RESULTS
def test_a_repeated_end_at_the_last_epoch_gets_the_same_success_even_after_a_crash(is_commit: bool) -> None:
    world, producer = world_at(LAST_CLIENT_EPOCH)
    world.add(producer, PARTITION)
    after = world.end(producer, is_commit=is_commit)
    world.start()
    world.write_markers()
    assert world.end(producer, is_commit=is_commit) == after
    world.start()
    assert world.end(producer, is_commit=is_commit) == after
    with pytest.raises(InvalidTransactionState):
        world.end(producer, is_commit=not is_commit)
    world.add(after, PARTITION)
    with pytest.raises(InvalidProducerIdMapping):
        world.end(producer, is_commit=is_commit)


def test_a_transaction_that_times_out_at_the_last_epoch_goes_on_with_a_fresh_producer_id() -> None:
    world, producer = world_at(LAST_CLIENT_EPOCH)
    world.add(producer, PARTITION)
    world.pass_time(TIMEOUT_MS + 10_000)
    world.start()
    (sent,) = world.write_markers()
    assert sent.needs_producer_id
    assert sent.producer == Producer(producer.id, MAX_EPOCH)
    after = world.abort(producer)
    assert after == Producer(producer.id + 1, 0)
    assert world.init(expected=after) == Producer(after.id, 1)


def test_the_epoch_that_fences_is_never_given_to_a_client() -> None:
    world, producer = world_at(LAST_CLIENT_EPOCH, transaction_version=1)
    world.add(producer, PARTITION, version=CLASSIC)
    world.pass_time(TIMEOUT_MS + 10_000)
    world.write_markers()
    world.set_level(BUMPING)
    value = world.value()
    assert value is not None
    assert (value.status, value.producer_epoch) == (Status.COMPLETE_ABORT, MAX_EPOCH)
    with pytest.raises(ProducerFenced):
        world.abort(producer)


def test_a_log_in_which_somebody_is_at_the_epoch_that_fences_gives_it_to_nobody_either() -> None:
    world, producer = world_at(LAST_CLIENT_EPOCH)
    value = world.value()
    assert value is not None
    fenced = value._replace(
        status=Status.COMPLETE_ABORT, producer_epoch=MAX_EPOCH, client_transaction_version=BUMPING, start_timestamp_ms=1
    )
    world.log = [world.log[0]._replace(value=fenced)]
    world.start()
    with pytest.raises(ProducerFenced):
        world.abort(producer)
    assert world.init() == Producer(producer.id + 1, 0)
