"""EndTxn: whether a producer may end its transaction, in both levels of the protocol.

The classic level ends by state and epoch alone, so that a late repetition looks like the end of the next
transaction. Version 2 raises the epoch at each end (KIP-890): an epoch names one transaction, and what comes with the
epoch before the current one is a repetition. Must not know the log or who waits.
"""

from typing import NamedTuple

from lamina.coordinators.decision import Producer
from lamina.coordinators.records.transaction_records import NO_PRODUCER_ID, Status, TransactionValue
from lamina.coordinators.transaction_requests import BUMPING, NO_PRODUCER, EndRequest, ProducerIdNeeded, fenced
from lamina.coordinators.transaction_transitions import (
    ENDING,
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    ended,
    ended_with_bump,
    is_exhausted,
    producer_after,
    producer_of,
)
from lamina.errors import ConcurrentTransactions, InvalidProducerIdMapping, InvalidTransactionState

_COMPLETE = {Status.COMPLETE_COMMIT: True, Status.COMPLETE_ABORT: False}
"""Whether what is complete was a commit."""


class Ending(NamedTuple):
    value: TransactionValue | None
    """``None`` for a repetition: the transaction has ended as it asks for."""
    response: Producer


def end(value: TransactionValue, request: EndRequest, now_ms: int) -> Ending:
    if request.client_version >= BUMPING:
        return _end_with_bump(value, request, now_ms)
    return _end_classic(value, request, now_ms)


def _end_classic(value: TransactionValue, request: EndRequest, now_ms: int) -> Ending:
    if request.producer.id != value.producer_id:
        raise _other_producer(value, request)
    if request.producer.epoch != value.producer_epoch:
        raise _other_epoch(value, request)
    if value.status in ENDING:
        raise _not_over(request)
    if value.status is Status.ONGOING:
        return Ending(ended(value, is_commit=request.is_commit, now_ms=now_ms), NO_PRODUCER)
    if _COMPLETE.get(value.status) is request.is_commit:
        return Ending(None, NO_PRODUCER)
    raise _wrong_state(value, request)


def _end_with_bump(value: TransactionValue, request: EndRequest, now_ms: int) -> Ending:
    # First of all: the client may have been told its next producer id, which takes over only when this has ended.
    if value.status in ENDING:
        raise _not_over(request)
    if _is_repetition(value, request.producer):
        if _COMPLETE[value.status] is not request.is_commit:
            raise _wrong_state(value, request)
        return Ending(None, producer_of(value))
    if request.producer.id != value.producer_id:
        raise _other_producer(value, request)
    if request.producer.epoch != value.producer_epoch:
        raise _other_epoch(value, request)
    if value.status is not Status.ONGOING and request.is_commit:
        raise _wrong_state(value, request)
    next_producer_id = NO_PRODUCER_ID
    if is_exhausted(value):
        if request.fresh_producer_id is None:
            raise ProducerIdNeeded(f"producer {value.producer_id} has no epochs left")
        next_producer_id = request.fresh_producer_id
    prepared = ended_with_bump(value, is_commit=request.is_commit, next_producer_id=next_producer_id, now_ms=now_ms)
    return Ending(prepared, producer_after(prepared))


def _is_repetition(value: TransactionValue, producer: Producer) -> bool:
    """Whether the transaction that has ended last is the one that this producer had."""
    if value.status not in _COMPLETE or value.client_transaction_version < BUMPING:
        return False
    if producer.id == value.producer_id:
        return producer.epoch + 1 == value.producer_epoch < MAX_EPOCH
    last = Producer(value.previous_producer_id, LAST_CLIENT_EPOCH)
    return value.producer_epoch == 0 and producer == last


def _other_producer(value: TransactionValue, request: EndRequest) -> InvalidProducerIdMapping:
    return InvalidProducerIdMapping(
        f"{request.transactional_id!r} has producer id {value.producer_id}, not {request.producer.id}"
    )


def _other_epoch(value: TransactionValue, request: EndRequest) -> Exception:
    reason = f"{request.transactional_id!r} is at epoch {value.producer_epoch}, not {request.producer.epoch}"
    return fenced(reason, is_known=request.knows_fenced)


def _not_over(request: EndRequest) -> ConcurrentTransactions:
    return ConcurrentTransactions(f"the transaction of {request.transactional_id!r} is still being ended")


def _wrong_state(value: TransactionValue, request: EndRequest) -> InvalidTransactionState:
    wish = "committed" if request.is_commit else "aborted"
    return InvalidTransactionState(
        f"the transaction of {request.transactional_id!r} is in {value.status.state_name} and cannot be {wish}"
    )
