"""AddPartitionsToTxn, AddOffsetsToTxn and the questions of brokers whose clients write."""

import pytest

from lamina.coordinators.decision import Producer
from lamina.coordinators.transaction_requests import BUMPING, CLASSIC
from lamina.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    ProducerFenced,
    TransactionAbortable,
)
from tests.coordinators.transaction_world import ID, World

A, B = ("a", 0), ("b", 1)
LEVELS = pytest.mark.parametrize("version", [CLASSIC, BUMPING])


@LEVELS
def test_the_first_partition_begins_a_transaction(version: int) -> None:
    world = World()
    producer = world.init()
    world.pass_time(5)
    world.add(producer, A, version=version)
    description = world.shard.describe(ID)
    assert (description.state, description.partitions) == ("Ongoing", (A,))
    assert description.start_timestamp_ms == world.wall_ms


@LEVELS
def test_more_partitions_join_the_same_transaction(version: int) -> None:
    world = World()
    producer = world.init()
    world.add(producer, A, version=version)
    began_ms = world.wall_ms
    world.pass_time(5)
    world.add(producer, B, version=version)
    description = world.shard.describe(ID)
    assert description.partitions == (A, B)
    assert description.start_timestamp_ms == began_ms


def test_partitions_that_are_there_already_write_nothing() -> None:
    world = World()
    producer = world.init()
    world.add(producer, A, B)
    before = len(world.log)
    world.add(producer, A)
    assert len(world.log) == before


def test_the_next_transaction_begins_with_no_partitions() -> None:
    world = World()
    producer = world.init()
    world.add(producer, A)
    producer = world.commit(producer)
    world.write_markers()
    world.add(producer, B)
    assert world.shard.describe(ID).partitions == (B,)


def test_offsets_add_the_partition_that_the_group_lives_in() -> None:
    world = World()
    producer = world.init()
    world.add_offsets(producer, "tx")
    assert world.shard.describe(ID).partitions == (("__consumer_offsets", 16),)


@LEVELS
def test_an_id_that_was_not_initialized_has_no_producer(version: int) -> None:
    with pytest.raises(InvalidProducerIdMapping):
        World().add(Producer(1, 0), A, version=version)


def test_another_producer_id_is_an_invalid_mapping() -> None:
    world = World()
    producer = world.init()
    with pytest.raises(InvalidProducerIdMapping):
        world.add(producer._replace(id=producer.id + 1), A)


@pytest.mark.parametrize("epoch", [0, 2])
def test_another_epoch_is_fenced(epoch: int) -> None:
    world = World()
    world.init()
    producer = world.init()._replace(epoch=epoch)
    with pytest.raises(ProducerFenced):
        world.add(producer, A)
    with pytest.raises(InvalidProducerEpoch):
        world.add(producer, A, knows_fenced=False)
    with pytest.raises(InvalidProducerEpoch):
        world.add_offsets(producer, "group", knows_fenced=False)


def test_an_empty_transactional_id_is_an_invalid_request() -> None:
    with pytest.raises(InvalidRequest):
        World().add(Producer(1, 0), A, transactional_id="")


@LEVELS
def test_while_markers_are_written_the_next_transaction_waits(version: int) -> None:
    world = World()
    producer = world.init()
    world.add(producer, A, version=version)
    after = world.commit(producer, version)
    with pytest.raises(ConcurrentTransactions):
        world.add(after if version == BUMPING else producer, B, version=version)


# VerificationGuard


def test_a_partition_of_the_open_transaction_is_verified() -> None:
    world = World()
    producer = world.init()
    world.add(producer, A, version=CLASSIC)
    before = len(world.log)
    verified = world.verify(producer, A, B)
    assert verified[A] is None
    assert isinstance(verified[B], TransactionAbortable)
    assert len(world.log) == before


def test_after_the_end_nothing_is_verified() -> None:
    world = World()
    producer = world.init()
    world.add(producer, A, version=CLASSIC)
    world.commit(producer, CLASSIC)
    with pytest.raises(ConcurrentTransactions):
        world.verify(producer, A)
    world.write_markers()
    assert isinstance(world.verify(producer, A)[A], TransactionAbortable)


def test_a_zombies_write_is_not_verified() -> None:
    world = World()
    zombie = world.init()
    with pytest.raises(InvalidProducerIdMapping):
        world.verify(zombie._replace(id=5), A)
    world.init()
    with pytest.raises(ProducerFenced):
        world.verify(zombie, A)
    with pytest.raises(InvalidProducerIdMapping):
        World().verify(zombie, A)
