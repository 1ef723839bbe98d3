"""Transactional Produce: nothing lands in a transaction that has ended, or that the partition is no part of."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from lamina.broker.parts import Parts
from lamina.broker.requests.handlers import produce as produce_api
from lamina.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
)
from lamina.records.record import Record, build_batch
from lamina.settings.transactions import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
)
from lamina.topic_partition import TopicPartition
from tests.broker.in_process import InProcessBroker

PRODUCE = 0
CLASSIC, ABORTABLE, ADDING, BY_TOPIC_ID = 10, 11, 12, 13

Asked = tuple[str, int, int, tuple[TopicPartition, ...], bool]


class FakeCoordinator:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self, parts: Parts) -> None:
        self.asked: list[Asked] = []
        self.answer: KafkaError | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        parts.transactions.verify = self.verify  # type: ignore[method-assign]

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        may_add: bool,
    ) -> Mapping[TopicPartition, KafkaError | None]:
        self.asked.append((transactional_id, producer_id, producer_epoch, tuple(partitions), may_add))
        self.meanwhile()
        return dict.fromkeys(partitions, self.answer)


@pytest.fixture(autouse=True, params=[False, True], ids=["few", "many"])
def _are_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many partitions are looked at in turns of the loop."""
    if request.param:
        monkeypatch.setattr(produce_api, "_MANY_PARTITIONS", 0)


@pytest.fixture
def coordinator(broker: InProcessBroker) -> FakeCoordinator:
    broker.create("t", partitions=3)
    broker.restart(**{ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS.name: "0"})
    return FakeCoordinator(broker.parts)


def transactional(broker: InProcessBroker, sequence: int = 0, producer_id: int = 7, epoch: int = 0) -> bytes:
    record = Record(0, broker.parts.clocks.now_ms(), b"k", b"v")
    return bytes(
        build_batch(
            [record],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
    )


def produce(
    broker: InProcessBroker, *batches: bytes, version: int = CLASSIC, transactional_id: str | None = "orders"
) -> list[Any]:
    """The answer for each partition, one batch each."""
    sent = [{"index": index, "records": batch} for index, batch in enumerate(batches)]
    topic_id = broker.parts.partitions.get("t", 0).topic_id
    response = broker.ask(
        PRODUCE,
        version,
        transactional_id=transactional_id,
        acks=-1,
        topic_data=[{"name": "t", "topic_id": topic_id, "partition_data": sent}],
    )
    return list(response.responses[0].partition_responses)


def codes(*arguments: Any, **named: Any) -> list[int]:
    return [each.error_code for each in produce(*arguments, **named)]


def end(broker: InProcessBroker, index: int = 0, *, epoch: int = 0, version: int = 0) -> None:
    broker.parts.partitions.get("t", index).append_marker(
        7, epoch, 0, is_commit=False, transaction_version=version, now_ms=broker.parts.clocks.now_ms()
    )


def test_without_a_coordinator_no_transaction_can_begin(broker: InProcessBroker) -> None:
    """Nobody has asked for one yet: its topic is not there."""
    broker.create("t")
    assert codes(broker, transactional(broker)) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    partition = broker.parts.partitions.get("t", 0)
    assert partition.log.log_end_offset == partition.last_stable_offset == 0


def test_only_the_first_batch_in_each_partition_is_asked_for(
    broker: InProcessBroker, coordinator: FakeCoordinator
) -> None:
    assert codes(broker, transactional(broker)) == [0]
    assert codes(broker, transactional(broker, 1), transactional(broker)) == [0, 0]
    assert codes(broker, transactional(broker, 2), transactional(broker, 1)) == [0, 0]
    assert coordinator.asked == [
        ("orders", 7, 0, (("t", 0),), False),
        ("orders", 7, 0, (("t", 1),), False),
    ]
    end(broker)
    assert codes(broker, transactional(broker, 3)) == [0]
    assert len(coordinator.asked) == 3


@pytest.mark.parametrize("version", [ADDING, BY_TOPIC_ID])
def test_version_12_adds_partitions_and_begins_each_epoch_at_0(
    broker: InProcessBroker, coordinator: FakeCoordinator, version: int
) -> None:
    assert codes(broker, transactional(broker, 5), version=version) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert codes(broker, transactional(broker), version=version) == [0]
    end(broker, epoch=1, version=2)
    assert codes(broker, transactional(broker, 1), version=version) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert codes(broker, transactional(broker, epoch=1), version=version) == [0]
    assert all(may_add for *_, may_add in coordinator.asked)


def test_a_marker_between_the_answer_and_the_append_makes_the_answer_worthless(
    broker: InProcessBroker, coordinator: FakeCoordinator
) -> None:
    coordinator.meanwhile = lambda: end(broker)
    assert codes(broker, transactional(broker)) == [ErrorCode.INVALID_TXN_STATE]
    assert broker.parts.partitions.get("t", 0).last_stable_offset == 1
    coordinator.meanwhile = lambda: None
    assert codes(broker, transactional(broker)) == [0]


@pytest.mark.parametrize(
    ("error", "version", "told"),
    [
        (InvalidTransactionState("no"), CLASSIC, ErrorCode.INVALID_TXN_STATE),
        (InvalidProducerIdMapping("no"), CLASSIC, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ProducerFenced("no"), ADDING, ErrorCode.INVALID_PRODUCER_EPOCH),
        (CoordinatorNotAvailable("no"), ADDING, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ConcurrentTransactions("no"), ABORTABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ConcurrentTransactions("no"), ADDING, ErrorCode.CONCURRENT_TRANSACTIONS),
        (TransactionAbortable("no"), CLASSIC, ErrorCode.INVALID_TXN_STATE),
        (TransactionAbortable("no"), ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, KafkaError) else str(value),
)
def test_a_refusal_is_told_as_clients_of_the_version_understand_it(
    broker: InProcessBroker, coordinator: FakeCoordinator, error: KafkaError, version: int, told: ErrorCode
) -> None:
    coordinator.answer = error
    assert codes(broker, transactional(broker), version=version) == [told]
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 0


def test_a_refused_partition_does_not_hold_up_the_others(broker: InProcessBroker, coordinator: FakeCoordinator) -> None:
    assert codes(broker, transactional(broker)) == [0]
    coordinator.answer = InvalidTransactionState("no")
    assert codes(broker, transactional(broker, 1), transactional(broker)) == [0, ErrorCode.INVALID_TXN_STATE]


def test_a_later_batch_waits_for_the_one_that_could_not_be_verified(
    broker: InProcessBroker, coordinator: FakeCoordinator
) -> None:
    coordinator.answer = CoordinatorNotAvailable("no")
    assert codes(broker, transactional(broker, 3)) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    coordinator.answer = None
    assert codes(broker, transactional(broker, 4)) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert codes(broker, transactional(broker, 3)) == [0]
    assert codes(broker, transactional(broker, 4)) == [0]


def test_a_transaction_that_begins_while_the_last_one_ends_waits_a_little(
    broker: InProcessBroker, coordinator: FakeCoordinator
) -> None:
    long = {ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS.name: "1", ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS.name: "60000"}
    broker.restart(**long)
    coordinator = FakeCoordinator(broker.parts)

    def ended() -> None:
        coordinator.answer = (
            ConcurrentTransactions("the last one is being ended") if len(coordinator.asked) < 3 else None
        )

    coordinator.meanwhile = ended
    assert codes(broker, transactional(broker), version=ADDING) == [0]
    assert len(coordinator.asked) == 3
    coordinator.asked.clear()
    end(broker)
    assert codes(broker, transactional(broker, 1), version=ABORTABLE) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert len(coordinator.asked) == 1


def test_verification_may_be_switched_off_for_classic_clients(
    broker: InProcessBroker, coordinator: FakeCoordinator
) -> None:
    broker.restart(**{"transaction.partition.verification.enable": "false"})
    coordinator = FakeCoordinator(broker.parts)
    assert codes(broker, transactional(broker)) == [0]
    assert coordinator.asked == []
    assert codes(broker, b"", transactional(broker), version=ADDING)[1] == 0
    assert len(coordinator.asked) == 1


def test_transactional_records_need_a_transactional_id(broker: InProcessBroker, coordinator: FakeCoordinator) -> None:
    told = codes(broker, transactional(broker), transactional_id=None)
    assert told == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    assert coordinator.asked == []


def test_one_request_speaks_for_one_producer(broker: InProcessBroker, coordinator: FakeCoordinator) -> None:
    told = codes(broker, transactional(broker), transactional(broker, producer_id=8))
    assert told == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


def test_batches_outside_of_transactions_ask_nobody(broker: InProcessBroker, coordinator: FakeCoordinator) -> None:
    record = Record(0, broker.parts.clocks.now_ms(), b"k", b"v")
    plain = bytes(build_batch([record], producer_id=7, producer_epoch=0, base_sequence=0))
    assert codes(broker, plain) == [0]
    assert coordinator.asked == []


@pytest.mark.parametrize("records", [b"", b"\0" * 20, b"\xff" * 100])
def test_what_is_no_batch_is_refused_as_ever(
    broker: InProcessBroker, coordinator: FakeCoordinator, records: bytes
) -> None:
    assert codes(broker, records) == codes(broker, records, transactional_id=None) != [0]
