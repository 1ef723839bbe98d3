"""Transactions: the calls of a producer, and of whoever ends or looks at what producers left open.

Owns how each is asked in both levels of the protocol (KIP-98, KIP-890) and what its response means. Must not know which
broker coordinates what, nor when a transaction is to end.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lamina.errors import ErrorCode, KafkaError, MalformedResponse, error_from_code
from lamina.peer.call import MessageCall
from lamina.wire.api_keys import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
)

TRANSACTION_VERSION = "transaction.version"
"""The finalized feature that says which level the brokers are at."""
BUMPING = 2
"""From this level on, partitions join a transaction by Produce alone, and each end raises the producer's epoch."""

ONGOING = "Ongoing"
NO_PRODUCER_ID = -1

_END_CLASSIC, _END_BUMPING = range(5), range(5, 6)


class Producer(NamedTuple):
    """Who writes: a producer id is fenced by the same one in a later epoch."""

    id: int
    epoch: int


class TransactionDescribed(NamedTuple):
    transactional_id: str
    state: str
    producer: Producer


class _AddPartitionsCall(MessageCall):
    """Its errors stand in a field of another name."""

    def errors(self, response: Any) -> Iterable[int]:
        for topic in response.results_by_topic_v3_and_below:
            for one in topic.results_by_partition:
                if one.partition_error_code:
                    yield int(one.partition_error_code)


def init_producer(transactional_id: str | None, transaction_timeout_ms: int) -> MessageCall:
    """A producer id, or for a transactional id its own in the next epoch. Ends what was open there."""
    return MessageCall(
        INIT_PRODUCER_ID,
        range(6),
        transactional_id=transactional_id,
        transaction_timeout=transaction_timeout_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
    )


def producer_of(response: Any) -> Producer:
    return Producer(int(response.producer_id), int(response.producer_epoch))


def add_partitions(transactional_id: str, producer: Producer, partitions: Mapping[str, Sequence[int]]) -> MessageCall:
    """Only for brokers below `BUMPING`."""
    return _AddPartitionsCall(
        ADD_PARTITIONS_TO_TXN,
        range(4),
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[{"name": topic, "partitions": indexes} for topic, indexes in partitions.items()],
    )


def end_transaction(transactional_id: str, producer: Producer, *, is_commit: bool, bumps: bool) -> MessageCall:
    """May be repeated: what has ended as it asks for is confirmed. `bumps` is the level that it was written in."""
    return MessageCall(
        END_TXN,
        _END_BUMPING if bumps else _END_CLASSIC,
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=is_commit,
    )


def producer_after(response: Any) -> Producer | None:
    """Whom the transactional id has after an end; ``None`` below `BUMPING`, where that is not told."""
    producer_id = int(getattr(response, "producer_id", NO_PRODUCER_ID))
    return None if producer_id == NO_PRODUCER_ID else Producer(producer_id, int(response.producer_epoch))


def list_transactions(states: Sequence[str] = ()) -> MessageCall:
    """Of one coordinator."""
    return MessageCall(LIST_TRANSACTIONS, range(1), state_filters=states, producer_id_filters=())


def transactional_ids_listed(response: Any) -> list[str]:
    return [one.transactional_id for one in response.transaction_states]


def describe_transaction(transactional_id: str) -> MessageCall:
    return MessageCall(DESCRIBE_TRANSACTIONS, range(1), transactional_ids=[transactional_id])


def transaction_described(response: Any) -> TransactionDescribed | None:
    """``None`` where the coordinator knows no such transactional id. Raises its error otherwise."""
    if len(response.transaction_states) != 1:
        raise MalformedResponse("a DescribeTransactions response is not about the one that was asked for")
    (told,) = response.transaction_states
    if told.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    if told.error_code:
        raise error_from_code(told.error_code, f"transactional id {told.transactional_id}")
    producer = Producer(int(told.producer_id), int(told.producer_epoch))
    return TransactionDescribed(told.transactional_id, told.transaction_state, producer)


def first_error(call: MessageCall, response: Any, sentence: str) -> KafkaError | None:
    """The first error that stands anywhere in a response: a reason, before what was not attempted because of it."""
    codes = sorted(call.errors(response), key=lambda code: code == ErrorCode.OPERATION_NOT_ATTEMPTED)
    return error_from_code(codes[0], sentence) if codes else None
