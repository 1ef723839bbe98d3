"""How what is known of a transactional id may change, and what it becomes.

Owns the allowed predecessors of every state (internal-topics.md §3.2) and the arithmetic of epochs. Each function
makes a new value out of an old one; whether a client may ask for it is decided elsewhere. Must not know requests.
"""

from lamina.coordinators.decision import Producer
from lamina.coordinators.records.transaction_records import NO_PRODUCER_ID, NOT_STARTED_MS, Status, TransactionValue
from lamina.coordinators.transaction_requests import BUMPING, CLASSIC
from lamina.topic_partition import TopicPartition

MAX_EPOCH = 2**15 - 1
LAST_CLIENT_EPOCH = MAX_EPOCH - 1
"""No client gets the very last epoch, so that there is always one left to fence it with."""

ENDING = frozenset({Status.PREPARE_COMMIT, Status.PREPARE_ABORT, Status.PREPARE_EPOCH_FENCE})
IDLE = frozenset({Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT})

PREDECESSORS: dict[Status, frozenset[Status]] = {
    Status.EMPTY: IDLE,
    Status.ONGOING: IDLE | {Status.ONGOING},
    Status.PREPARE_COMMIT: frozenset({Status.ONGOING}),
    Status.PREPARE_ABORT: frozenset({Status.ONGOING, Status.PREPARE_EPOCH_FENCE}),
    Status.COMPLETE_COMMIT: frozenset({Status.PREPARE_COMMIT}),
    Status.COMPLETE_ABORT: frozenset({Status.PREPARE_ABORT}),
    Status.DEAD: IDLE,
    Status.PREPARE_EPOCH_FENCE: frozenset({Status.ONGOING}),
}
"""In version 2 PREPARE_ABORT may follow IDLE too: a transaction may be aborted that never wrote."""


class IllegalTransition(Exception):
    """A change that no request can lead to."""


def producer_of(value: TransactionValue) -> Producer:
    return Producer(value.producer_id, value.producer_epoch)


def is_exhausted(value: TransactionValue) -> bool:
    return value.producer_epoch >= LAST_CLIENT_EPOCH


def created(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionValue:
    """A transactional id that was not known."""
    return TransactionValue(
        producer_id, 0, timeout_ms, Status.EMPTY, frozenset(), now_ms, previous_producer_id=producer_id
    )


def initialized(value: TransactionValue, producer: Producer, timeout_ms: int, now_ms: int) -> TransactionValue:
    """Its producer starts, or starts again."""
    return _moved(value, Status.EMPTY, now_ms)._replace(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_timestamp_ms=NOT_STARTED_MS,
    )


def with_partitions(
    value: TransactionValue, partitions: frozenset[TopicPartition], client_version: int, now_ms: int
) -> TransactionValue:
    """A transaction begins or grows."""
    return _moved(value, Status.ONGOING, now_ms)._replace(
        partitions=value.partitions | partitions,
        start_timestamp_ms=value.start_timestamp_ms if value.status is Status.ONGOING else now_ms,
        client_transaction_version=client_version,
    )


def ended(value: TransactionValue, *, is_commit: bool, now_ms: int) -> TransactionValue:
    """A classic client ends its transaction; it keeps its epoch."""
    status = Status.PREPARE_COMMIT if is_commit else Status.PREPARE_ABORT
    return _moved(value, status, now_ms)._replace(client_transaction_version=CLASSIC)


def ended_with_bump(
    value: TransactionValue, *, is_commit: bool, next_producer_id: int, now_ms: int
) -> TransactionValue:
    """A client of version 2 ends its transaction, or aborts one that never wrote; the epoch is raised."""
    status = Status.PREPARE_COMMIT if is_commit else Status.PREPARE_ABORT
    return _moved(value, status, now_ms, may_abort_nothing=True)._replace(
        producer_epoch=value.producer_epoch + 1,
        start_timestamp_ms=value.start_timestamp_ms if value.status is Status.ONGOING else now_ms,
        next_producer_id=next_producer_id,
        client_transaction_version=BUMPING,
    )


def aborted_by_fence(value: TransactionValue, transaction_version: int, now_ms: int) -> TransactionValue:
    """The coordinator aborts: PrepareEpochFence and PrepareAbort in one, since the first would never be visible."""
    return _moved(value, Status.PREPARE_ABORT, now_ms)._replace(
        producer_epoch=min(value.producer_epoch + 1, MAX_EPOCH),
        client_transaction_version=BUMPING if transaction_version >= BUMPING else CLASSIC,
    )


def fence_continued(value: TransactionValue, now_ms: int) -> TransactionValue:
    """A log that says PrepareEpochFence: its epoch is raised already."""
    return _moved(value, Status.PREPARE_ABORT, now_ms)


def needs_producer_id_to_complete(value: TransactionValue) -> bool:
    """A client of version 2 whose transaction the coordinator aborted at its last epoch: no epoch is left to give."""
    return (
        value.client_transaction_version >= BUMPING
        and value.producer_epoch == MAX_EPOCH
        and value.next_producer_id == NO_PRODUCER_ID
    )


def producer_after(value: TransactionValue, fresh_producer_id: int | None = None) -> Producer:
    """Who the client is once the transaction that is ending has ended."""
    if value.next_producer_id != NO_PRODUCER_ID and value.client_transaction_version >= BUMPING:
        return Producer(value.next_producer_id, 0)
    return producer_of(value) if fresh_producer_id is None else Producer(fresh_producer_id, 0)


def completed(value: TransactionValue, producer: Producer, now_ms: int) -> TransactionValue:
    """Every partition has its marker."""
    is_commit = value.status is Status.PREPARE_COMMIT
    return _moved(value, Status.COMPLETE_COMMIT if is_commit else Status.COMPLETE_ABORT, now_ms)._replace(
        producer_id=producer.id, producer_epoch=producer.epoch, partitions=frozenset()
    )


def _moved(
    value: TransactionValue, status: Status, now_ms: int, *, may_abort_nothing: bool = False
) -> TransactionValue:
    is_abort_of_nothing = may_abort_nothing and status is Status.PREPARE_ABORT and value.status in IDLE
    if value.status not in PREDECESSORS[status] and not is_abort_of_nothing:
        raise IllegalTransition(f"{value.status.state_name} cannot become {status.state_name}")
    return value._replace(
        status=status,
        update_timestamp_ms=now_ms,
        previous_producer_id=value.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )
