"""What Jepsen and others found in brokers that speak this protocol (reliability.md §4.3), each held off by one test.

Left out are the two that need replicas: the election of a stale leader (Kafka 0.8), and a new leader that takes itself
for up to date (Redpanda).
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from lamina.errors import ErrorCode
from lamina.records.record import Record, build_batch
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION
from tests.broker.power_cuts import PowerCutBroker
from tests.broker.transacting import BUMPING, CLASSIC, FEW_PARTITIONS, Me, Transacting, Versions, committed

WRITE_TXN_MARKERS = 27
BOTH = pytest.mark.parametrize("versions", [CLASSIC, BUMPING], ids=["classic", "version 2"])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[PowerCutBroker]:
    started = PowerCutBroker(tmp_path, FEW_PARTITIONS)
    started.create("t", partitions=2)
    yield started
    started.close()


@pytest.fixture
def orders(broker: PowerCutBroker) -> Transacting:
    found = Transacting(broker)
    found.find()
    return found


def cut_power(broker: PowerCutBroker) -> None:
    broker.cut_power(len(broker.disk.ops), Random(0))


def send(broker: PowerCutBroker, sequence: int) -> tuple[int, int]:
    """A batch of an idempotent producer; the error and the offset that it is told."""
    batch = build_batch(
        [Record(0, broker.parts.clocks.now_ms(), None, b"%d" % sequence)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
    )
    data = [{"name": "t", "partition_data": [{"index": 0, "records": bytes(batch)}]}]
    (told,) = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=data).responses[0].partition_responses
    return int(told.error_code), int(told.base_offset)


def test_each_of_the_last_five_batches_may_be_retried_and_none_is_written_twice(broker: PowerCutBroker) -> None:
    """§4.3, Redpanda: without a window of five batches a retry raised the epoch and wrote twice."""
    for sequence in range(8):
        assert send(broker, sequence) == (0, sequence)
    for _ in range(2):
        assert [send(broker, sequence) for sequence in range(3, 8)] == [(0, offset) for offset in range(3, 8)]
        assert send(broker, 9)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert broker.parts.partitions.get("t", 0).log.log_end_offset == 8
        cut_power(broker)


@BOTH
def test_a_late_abort_marker_does_not_touch_a_newer_transaction_of_the_same_producer(
    broker: PowerCutBroker, orders: Transacting, versions: Versions
) -> None:
    """§4.3, Redpanda: abort markers that went by the producer's id alone hit a newer transaction."""
    old = orders.started(versions.init)
    orders.transact(old, [b"aborted"], versions, commit=False)
    new = orders.started(versions.init)
    if versions.adds_itself:
        assert orders.add(new, ("t", 0)) == [0]
    assert orders.produce(new, [b"kept"], version=versions.produce) == 0
    producer = {"producer_id": old.id, "producer_epoch": old.epoch}
    topics = [{"name": "t", "partition_indexes": [0]}]
    marker = {**producer, "transaction_result": False, "coordinator_epoch": 0, "topics": topics}
    (told,) = broker.ask(WRITE_TXN_MARKERS, 1, markers=[marker]).markers
    assert told.topics[0].partitions[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert orders.end(new, version=versions.end).code == 0
    assert committed(broker) == [b"kept"]


@BOTH
def test_a_commit_after_a_power_cut_covers_every_partition_of_the_transaction(
    broker: PowerCutBroker, orders: Transacting, versions: Versions
) -> None:
    """§4.3, Redpanda: partitions that only memory knew of were lost with it, and a commit covered half."""
    me = orders.started(versions.init)
    for partition in range(2):
        if versions.adds_itself:
            assert orders.add(me, ("t", partition)) == [0]
        assert orders.produce(me, [b"half"], version=versions.produce, partition=partition) == 0
        cut_power(broker)
        broker.settle()
    assert orders.end(me, version=versions.end).code == 0
    assert [committed(broker, partition=partition) for partition in range(2)] == [[b"half"], [b"half"]]


@BOTH
def test_sequences_that_begin_again_after_an_abort_are_no_duplicates(
    broker: PowerCutBroker, orders: Transacting, versions: Versions
) -> None:
    """§4.3, Redpanda: sequence numbers that were used again after an abort were answered as duplicates."""
    after = orders.transact(orders.started(versions.init), [b"aborted"], versions, commit=False)
    me = orders.started(versions.init) if versions.adds_itself else after
    orders.transact(me, [b"kept"], versions)
    assert committed(broker) == [b"kept"]


def test_an_offset_is_told_as_it_is_read_and_never_as_0(broker: PowerCutBroker) -> None:
    """§4.3, Bufstream: answers with offset 0 for records that were somewhere else."""
    told = [broker.produce("t", 2) for _ in range(5)] + [send(broker, 0)[1], send(broker, 0)[1]]
    assert told == [0, 2, 4, 6, 8, 10, 10]
    cut_power(broker)
    assert broker.produce("t", 1) == 11


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_delayed_end_does_not_end_a_later_transaction(
    broker: PowerCutBroker, orders: Transacting, commit: bool
) -> None:
    """§4.3, Bufstream and the protocol itself: an end that came late ended the next transaction of the same epoch.

    Version 2 raises the epoch with each transaction, so that it is told apart.
    """
    first = orders.started(BUMPING.init)
    second = orders.transact(first, [b"first"], BUMPING)
    third = orders.transact(second, [b"second"], BUMPING)
    assert orders.produce(third, [b"third"], version=BUMPING.produce) == 0
    late = orders.end(first, commit=commit, version=BUMPING.end)
    assert late.code == ErrorCode.PRODUCER_FENCED
    assert orders.state() == "Ongoing"
    assert orders.end(third, version=BUMPING.end).code == 0
    assert committed(broker) == [b"first", b"second", b"third"]


@BOTH
def test_an_aborted_record_is_never_read_as_committed_not_even_after_a_power_cut(
    broker: PowerCutBroker, orders: Transacting, versions: Versions
) -> None:
    """§4.3, the harness: aborted reads (G1a), and records that were acknowledged and are not read (unseen)."""
    me, expected = orders.started(versions.init), []
    sequence = 0
    for number in range(6):
        commit = number % 2 == 0
        after = orders.transact(me, [b"%d" % number], versions, sequence, commit=commit)
        sequence = sequence + 1 if after == me else 0
        me = after
        expected += [b"%d" % number] if commit else []
        cut_power(broker)
        broker.run_until(lambda: orders.state().startswith("Complete"))
        assert committed(broker) == expected


def test_a_producer_that_was_fenced_writes_nothing_after_a_power_cut(
    broker: PowerCutBroker, orders: Transacting
) -> None:
    """§4.3, the harness: a pause and a kill leave a zombie, whose records would be duplicates."""
    zombie = orders.started()
    me = orders.started()
    assert me == Me(zombie.id, zombie.epoch + 1)
    cut_power(broker)
    broker.settle()
    assert orders.add(zombie, ("t", 0)) == [ErrorCode.PRODUCER_FENCED]
    assert orders.produce(zombie, [b"zombie"]) != 0
    orders.transact(me, [b"kept"])
    assert committed(broker) == [b"kept"]
