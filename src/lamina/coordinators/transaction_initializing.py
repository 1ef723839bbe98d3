"""InitProducerId: a producer takes over its transactional id, and the one that had it before is fenced.

Must not know the log or who waits.
"""

from typing import NamedTuple

from lamina.coordinators.decision import Producer
from lamina.coordinators.records.transaction_records import Status, TransactionValue
from lamina.coordinators.transaction_requests import BUMPING, InitRequest, ProducerIdNeeded, fenced
from lamina.coordinators.transaction_transitions import (
    ENDING,
    aborted_by_fence,
    created,
    initialized,
    is_exhausted,
    producer_of,
)
from lamina.errors import ConcurrentTransactions


class Initialization(NamedTuple):
    value: TransactionValue
    response: Producer | ConcurrentTransactions
    """The error when a transaction had to be aborted first: the client asks again."""
    predecessor: Producer | None
    """Who the client was before. If it asks again as that, its answer was lost and it gets the same one."""


def initialize(
    value: TransactionValue | None,
    predecessor: Producer | None,
    request: InitRequest,
    transaction_version: int,
    now_ms: int,
) -> Initialization:
    if value is None:
        new = created(_fresh(request), request.timeout_ms, now_ms)
        return Initialization(new, producer_of(new), None)
    if value.status in ENDING:
        raise ConcurrentTransactions(f"the transaction of {request.transactional_id!r} is still being ended")
    current, expected = producer_of(value), request.expected
    if expected is not None and expected != current:
        if expected != predecessor or value.status is Status.ONGOING:
            reason = f"{request.transactional_id!r} is producer {current}, not {expected}"
            raise fenced(reason, is_known=request.knows_fenced)
        return Initialization(initialized(value, current, request.timeout_ms, now_ms), current, predecessor)
    if value.status is Status.ONGOING:
        reason = f"the transaction of {request.transactional_id!r} that was open is being aborted"
        is_recoverable = transaction_version >= BUMPING
        return Initialization(
            aborted_by_fence(value, transaction_version, now_ms),
            ConcurrentTransactions(reason),
            current if is_recoverable else None,
        )
    after = Producer(_fresh(request), 0) if is_exhausted(value) else Producer(current.id, current.epoch + 1)
    # A producer that starts over, unlike one that goes on, has no earlier request that it may repeat.
    return Initialization(initialized(value, after, request.timeout_ms, now_ms), after, expected)


def _fresh(request: InitRequest) -> int:
    if request.fresh_producer_id is None:
        raise ProducerIdNeeded(f"{request.transactional_id!r} needs a producer id")
    return request.fresh_producer_id
