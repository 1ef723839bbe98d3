"""InitProducerId: new ids, fencing, going on after an error (KIP-360), epochs that run out."""

import pytest

from lamina.coordinators.decision import Producer
from lamina.coordinators.records.transaction_records import Status, TransactionValue
from lamina.coordinators.transaction_requests import (
    BUMPING,
    CLASSIC,
    InitRequest,
    ProducerIdNeeded,
    TransactionSettings,
    expected_producer,
)
from lamina.coordinators.transaction_transitions import LAST_CLIENT_EPOCH, MAX_EPOCH
from lamina.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    ProducerFenced,
)
from tests.coordinators.transaction_world import FIRST_PRODUCER_ID, ID, TIMEOUT_MS, WAITER, World

PARTITION = ("t", 0)


def world_at(epoch: int, transaction_version: int = BUMPING) -> tuple[World, Producer]:
    """A transactional id that has come to this epoch."""
    world = World(TransactionSettings(transaction_version=transaction_version))
    world.init()
    value = world.value()
    assert value is not None
    world.log = [world.log[0]._replace(value=value._replace(producer_epoch=epoch))]
    world.start()
    return world, Producer(FIRST_PRODUCER_ID, epoch)


def test_a_new_transactional_id_gets_a_fresh_producer_id_at_epoch_0() -> None:
    world = World()
    assert world.init() == Producer(FIRST_PRODUCER_ID, 0)
    assert world.value() == TransactionValue(
        FIRST_PRODUCER_ID,
        0,
        TIMEOUT_MS,
        Status.EMPTY,
        frozenset(),
        world.wall_ms,
        previous_producer_id=FIRST_PRODUCER_ID,
    )


def test_a_producer_id_is_asked_for_only_when_it_is_needed() -> None:
    world = World()
    with pytest.raises(ProducerIdNeeded):
        world.shard.init_producer_id(InitRequest(ID, TIMEOUT_MS), WAITER, world.now)
    world.init()
    world.init()
    assert world.next_producer_id == FIRST_PRODUCER_ID + 1


def test_whoever_comes_next_fences_whoever_was_there() -> None:
    world = World()
    first = world.init()
    second = world.init()
    assert second == Producer(first.id, 1)
    with pytest.raises(ProducerFenced):
        world.add(first, PARTITION)
    world.add(second, PARTITION)


def test_a_known_id_takes_over_the_timeout_of_its_new_producer() -> None:
    world = World()
    world.init()
    world.init(timeout_ms=1_000)
    assert world.shard.describe(ID).timeout_ms == 1_000


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_must_be_positive_and_no_more_than_the_brokers_maximum(timeout_ms: int) -> None:
    with pytest.raises(InvalidTransactionTimeout, match=r"transaction\.max\.timeout\.ms=900000"):
        World().init(timeout_ms=timeout_ms)


def test_the_longest_timeout_is_the_brokers_maximum() -> None:
    assert World().init(timeout_ms=900_000)


def test_an_empty_transactional_id_is_an_invalid_request() -> None:
    with pytest.raises(InvalidRequest):
        World().init(transactional_id="")


@pytest.mark.parametrize("level", [0, 1, 2])
def test_an_open_transaction_is_aborted_first_and_the_client_asks_again(level: int) -> None:
    world = World(TransactionSettings(transaction_version=level))
    zombie = world.init()
    world.add(zombie, PARTITION, version=CLASSIC)
    with pytest.raises(ConcurrentTransactions):
        world.init()
    assert world.status == "PrepareAbort"
    with pytest.raises(ConcurrentTransactions):
        world.init()
    (sent,) = world.write_markers()
    assert (sent.is_commit, sent.producer, sent.partitions) == (False, Producer(zombie.id, 1), frozenset({PARTITION}))
    assert world.status == "CompleteAbort"
    assert world.init() == Producer(zombie.id, 2)
    with pytest.raises(ProducerFenced):
        world.end(zombie, is_commit=True, version=CLASSIC)


def test_a_commit_that_is_under_way_is_waited_for() -> None:
    world = World()
    producer = world.init()
    world.add(producer, PARTITION)
    world.commit(producer)
    with pytest.raises(ConcurrentTransactions):
        world.init()
    world.write_markers()
    assert world.init() == Producer(producer.id, 2)


def test_a_fence_is_told_to_old_clients_as_an_invalid_epoch() -> None:
    world = World()
    zombie = world.init()
    world.init()
    with pytest.raises(InvalidProducerEpoch):
        world.init(expected=zombie, knows_fenced=False)


# Going on after an error (KIP-360)


def test_a_producer_that_goes_on_gets_the_next_epoch() -> None:
    world = World()
    producer = world.init()
    assert world.init(expected=producer) == Producer(producer.id, 1)


def test_a_producer_that_goes_on_and_asks_again_gets_the_same_answer() -> None:
    world = World()
    producer = world.init()
    response = world.init(expected=producer)
    assert world.init(expected=producer) == response
    assert world.init(expected=producer) == response


def test_a_zombie_that_goes_on_is_fenced() -> None:
    world = World()
    zombie = world.init()
    world.init()
    with pytest.raises(ProducerFenced):
        world.init(expected=zombie)


def test_a_zombie_that_goes_on_does_not_abort_the_open_transaction_of_its_successor() -> None:
    world = World()
    zombie = world.init()
    successor = world.init(expected=zombie)
    world.add(successor, PARTITION)
    with pytest.raises(ProducerFenced):
        world.init(expected=zombie)
    assert world.status == "Ongoing"


def test_a_producer_with_another_id_is_fenced() -> None:
    world = World()
    producer = world.init()
    with pytest.raises(ProducerFenced):
        world.init(expected=Producer(producer.id + 5, producer.epoch))


def test_a_producer_that_goes_on_with_an_id_that_was_forgotten_is_welcome() -> None:
    assert World().init(expected=Producer(17, 3)) == Producer(FIRST_PRODUCER_ID, 0)


def test_in_version_2_a_producer_goes_on_after_its_transaction_timed_out() -> None:
    world = World()
    producer = world.init()
    world.add(producer, PARTITION)
    world.pass_time(TIMEOUT_MS + 10_000)
    world.write_markers()
    assert world.init(expected=producer) == Producer(producer.id, 1)


def test_in_version_2_a_producer_whose_end_was_not_answered_goes_on_with_the_epoch_that_it_raised() -> None:
    world = World()
    producer = world.init()
    world.add(producer, PARTITION)
    after = world.commit(producer)
    world.write_markers()
    assert world.init(expected=producer) == after


@pytest.mark.parametrize("level", [1, 2])
def test_who_wanted_to_take_over_and_did_not_come_back_fences_at_the_classic_level_only(level: int) -> None:
    world = World(TransactionSettings(transaction_version=level))
    producer = world.init()
    world.add(producer, PARTITION, version=CLASSIC)
    with pytest.raises(ConcurrentTransactions):
        world.init()
    world.write_markers()
    if level == BUMPING:
        assert world.init(expected=producer) == Producer(producer.id, 1)
    else:
        with pytest.raises(ProducerFenced):
            world.init(expected=producer)


def test_after_a_crash_nobody_may_ask_again() -> None:
    world = World()
    producer = world.init()
    world.init(expected=producer)
    world.start()
    with pytest.raises(ProducerFenced):
        world.init(expected=producer)


def test_at_the_classic_level_a_producer_whose_transaction_timed_out_is_fenced() -> None:
    world = World(TransactionSettings(transaction_version=1))
    producer = world.init()
    world.add(producer, PARTITION, version=CLASSIC)
    world.pass_time(TIMEOUT_MS + 10_000)
    world.write_markers()
    with pytest.raises(ProducerFenced):
        world.init(expected=producer)


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_a_producer_that_is_half_named_is_an_invalid_request(producer_id: int, epoch: int) -> None:
    with pytest.raises(InvalidRequest):
        expected_producer(producer_id, epoch)
    assert expected_producer(-1, -1) is None
    assert expected_producer(5, 0) == Producer(5, 0)


# Epochs that run out


def test_the_last_epoch_that_a_client_gets_is_32766() -> None:
    world, producer = world_at(LAST_CLIENT_EPOCH - 1)
    assert world.init() == Producer(producer.id, 32_766)


def test_after_the_last_epoch_a_fresh_producer_id_takes_over() -> None:
    world, zombie = world_at(LAST_CLIENT_EPOCH)
    fresh = world.init()
    assert fresh == Producer(FIRST_PRODUCER_ID + 1, 0)
    value = world.value()
    assert value is not None
    assert value.previous_producer_id == zombie.id
    with pytest.raises(InvalidProducerIdMapping):
        world.add(zombie, PARTITION)
    with pytest.raises(ProducerFenced):
        world.init(expected=zombie)


def test_a_producer_that_goes_on_at_its_last_epoch_may_ask_again_for_its_fresh_id() -> None:
    world, producer = world_at(LAST_CLIENT_EPOCH)
    fresh = world.init(expected=producer)
    assert fresh.epoch == 0
    assert world.init(expected=producer) == fresh


@pytest.mark.parametrize("level", [1, 2])
def test_a_transaction_at_the_last_epoch_can_be_fenced(level: int) -> None:
    world, zombie = world_at(LAST_CLIENT_EPOCH, level)
    world.add(zombie, PARTITION, version=CLASSIC)
    with pytest.raises(ConcurrentTransactions):
        world.init()
    (sent,) = world.write_markers()
    assert sent.producer == Producer(zombie.id, MAX_EPOCH)
    fresh = world.init()
    assert fresh.id != zombie.id
    assert fresh.epoch <= 1
    world.add(fresh, PARTITION)
