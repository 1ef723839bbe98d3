"""A transaction that hangs is found by DescribeProducers and ended by WriteTxnMarkers."""

from typing import Any

import pytest

from lamina.broker.partitions.partition import Partition
from lamina.errors import ErrorCode
from lamina.records.record import Record, build_batch
from tests.broker.in_process import InProcessBroker

WRITE_TXN_MARKERS, DESCRIBE_PRODUCERS = 27, 61


@pytest.fixture(autouse=True)
def topic(broker: InProcessBroker) -> None:
    broker.create("t", partitions=2)


def write(broker: InProcessBroker, *, epoch: int = 0, count: int = 1, transactional: bool = True) -> int:
    """Append a batch of producer 7; returns its timestamp."""
    now_ms = broker.parts.clocks.now_ms()
    batch = build_batch(
        [Record(number, now_ms, b"k", b"v") for number in range(count)],
        producer_id=7,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=transactional,
    )
    partition = broker.parts.partitions.get("t", 0)
    verification = partition.log.producers.begin_verification(7, epoch, 0, now_ms, begins_at_zero=False)
    partition.append_own(batch, now_ms, verification)
    return now_ms


def describe(broker: InProcessBroker, topic: str, *indexes: int) -> list[Any]:
    answer = broker.ask(DESCRIBE_PRODUCERS, 0, topics=[{"name": topic, "partition_indexes": indexes}])
    assert [each.partition_index for each in answer.topics[0].partitions] == list(indexes)
    return list(answer.topics[0].partitions)


def end(broker: InProcessBroker, *, topic: str = "t", indexes: tuple[int, ...] = (0,), **marker: Any) -> list[int]:
    asked = {"producer_id": 7, "producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0}
    asked |= {"topics": [{"name": topic, "partition_indexes": indexes}]} | marker
    (told,) = broker.ask(WRITE_TXN_MARKERS, 1, markers=[asked]).markers
    assert told.producer_id == asked["producer_id"]
    return [each.error_code for each in told.topics[0].partitions]


def test_producers_are_described(broker: InProcessBroker) -> None:
    broker.produce("t", 2)
    written_ms = write(broker, epoch=3, count=4)
    known, empty = describe(broker, "t", 0, 1)
    assert (known.error_code, known.error_message) == (0, None)
    assert empty.active_producers == ()
    (producer,) = known.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, 3)
    assert (producer.last_timestamp, producer.current_txn_start_offset) == (written_ms, 2)
    assert producer.coordinator_epoch == -1


def test_a_producer_without_a_transaction_is_described(broker: InProcessBroker) -> None:
    write(broker, transactional=False)
    end(broker, coordinator_epoch=9)
    (producer,) = describe(broker, "t", 0)[0].active_producers
    assert (producer.current_txn_start_offset, producer.coordinator_epoch) == (-1, 9)


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("t", 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a/b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_cannot_be_described_says_why(broker: InProcessBroker, topic: str, index: int, code: ErrorCode) -> None:
    (told,) = describe(broker, topic, index)
    assert (told.error_code, told.active_producers) == (code, ())
    assert told.error_message


def test_an_operator_ends_a_transaction_that_hangs(broker: InProcessBroker) -> None:
    """Exactly what a Java admin client sends: the epochs that DescribeProducers told, -1 counted as 0."""
    write(broker, epoch=5)
    partition = broker.parts.partitions.get("t", 0)
    assert partition.last_stable_offset == 0
    assert end(broker, producer_epoch=5) == [ErrorCode.NONE]
    assert partition.last_stable_offset == 2
    assert len(partition.log.segments.aborted_between(0, 2)) == 1
    assert end(broker, producer_epoch=5) == [ErrorCode.NONE]


def test_a_commit_leaves_nothing_aborted(broker: InProcessBroker) -> None:
    write(broker)
    assert end(broker, transaction_result=True) == [0]
    partition = broker.parts.partitions.get("t", 0)
    assert (partition.last_stable_offset, partition.log.segments.aborted_between(0, 2)) == (2, [])


def test_each_partition_has_its_own_answer(broker: InProcessBroker) -> None:
    assert end(broker, indexes=(1, 7, 0)) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    assert end(broker, topic="u") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_older_epochs_are_fenced(broker: InProcessBroker) -> None:
    write(broker, epoch=5)
    assert end(broker, producer_epoch=4) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert end(broker, producer_epoch=5, coordinator_epoch=2) == [0]
    assert end(broker, producer_epoch=5, coordinator_epoch=1) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]


@pytest.mark.parametrize("wrong", [{"producer_id": -1}, {"producer_epoch": -1}])
def test_a_marker_needs_a_producer(broker: InProcessBroker, wrong: dict[str, Any]) -> None:
    assert end(broker, **wrong) == [ErrorCode.INVALID_REQUEST]
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 0


def test_no_markers_are_no_answers(broker: InProcessBroker) -> None:
    assert broker.ask(WRITE_TXN_MARKERS, 1, markers=[]).markers == ()


def test_a_marker_is_flushed_where_the_topic_says_so(broker: InProcessBroker) -> None:
    broker.create("flushed", flush_messages="1")
    assert end(broker, topic="flushed") == [0]
    assert broker.parts.partitions.get("flushed", 0).log.recovery_point == 1


def test_many_topics_of_few_partitions_leave_the_loop_to_others(broker: InProcessBroker) -> None:
    topics = [{"name": "t", "partition_indexes": [index % 2]} for index in range(1000)]
    marker = {"producer_id": 7, "producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0}
    begun = broker.begin(WRITE_TXN_MARKERS, 1, markers=[marker | {"topics": topics}])
    for _ in range(3):
        broker.turn()
    assert not begun.done()
    assert len(broker.finish(begun).markers[0].topics) == 1000


# As other brokers ask (R75)


def test_a_partition_that_is_led_elsewhere_takes_no_marker(broker: InProcessBroker) -> None:
    broker.set_partition("t", 0, replicas=(1, 2), leader=2, leader_epoch=9)
    assert end(broker, indexes=(0, 1, 2)) == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_marker_needs_enough_in_sync_replicas(broker: InProcessBroker) -> None:
    broker.create("two", min_insync_replicas="2")
    broker.set_partition("two", 0, replicas=(1, 2))
    assert end(broker, topic="two") == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert broker.parts.partitions.get("two", 0).log.log_end_offset == 0


def test_a_marker_that_is_not_committed_in_time_is_told_and_stays(broker: InProcessBroker) -> None:
    broker.restart(**{"request.timeout.ms": "1"})
    broker.set_partition("t", 0, replicas=(1, 2), isr=(1, 2))
    assert end(broker, indexes=(0, 1)) == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 1


def test_a_late_marker_of_transaction_version_2_ends_no_later_transaction(broker: InProcessBroker) -> None:
    write(broker, epoch=6)
    partition = {"name": "t", "partition_indexes": [0]}
    marker = {"producer_id": 7, "producer_epoch": 6, "coordinator_epoch": 0, "topics": [partition]}
    (told,) = broker.ask(WRITE_TXN_MARKERS, 2, markers=[marker | {"transaction_version": 2}]).markers
    assert told.topics[0].partitions[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    (told,) = broker.ask(WRITE_TXN_MARKERS, 2, markers=[marker | {"transaction_version": 0}]).markers
    assert told.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_a_partition_that_fails_unexpectedly_goes_offline_and_the_others_get_their_markers(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_marker = Partition.append_marker

    def fails_in_the_first(partition: Partition, *given: Any, **named: Any) -> None:
        if partition.index == 0:
            raise RuntimeError("a mistake of ours")
        append_marker(partition, *given, **named)

    monkeypatch.setattr(Partition, "append_marker", fails_in_the_first)
    assert end(broker, indexes=(0, 1)) == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert broker.parts.partitions.get("t", 0).log.failure is not None
    assert broker.parts.partitions.get("t", 1).log.log_end_offset == 1
