"""What admins are told of transactions: DescribeTransactions and ListTransactions.

Must not know how transactions change.
"""

from collections.abc import Iterator, Mapping

from lamina.coordinators.patterns import compile_pattern
from lamina.coordinators.records.transaction_records import Status, TransactionValue
from lamina.coordinators.transaction_requests import (
    ListRequest,
    TransactionDescription,
    TransactionListing,
)
from lamina.coordinators.transaction_transitions import producer_of

_BY_NAME = {status.state_name: status for status in Status}


def describe(transactional_id: str, value: TransactionValue) -> TransactionDescription:
    return TransactionDescription(
        transactional_id,
        value.status.state_name,
        value.timeout_ms,
        value.start_timestamp_ms,
        producer_of(value),
        tuple(sorted(value.partitions)),
    )


def listings(
    values: Mapping[str, TransactionValue], request: ListRequest, now_ms: int
) -> Iterator[TransactionListing | None]:
    """Every id in order, as it was when this began; ``None`` for one that is not wanted: to look at many takes long.

    Raises InvalidRegularExpression.
    """
    pattern = compile_pattern(request.id_pattern) if request.id_pattern else None
    states = {_BY_NAME[name] for name in request.states if name in _BY_NAME}
    for transactional_id, value in sorted(values.items()):
        is_wanted = (
            (not request.states or value.status in states)
            and (not request.producer_ids or value.producer_id in request.producer_ids)
            and (request.duration_ms < 0 or now_ms - value.start_timestamp_ms > request.duration_ms)
            and (pattern is None or pattern.fullmatch(transactional_id) is not None)
        )
        yield TransactionListing(transactional_id, value.producer_id, value.status.state_name) if is_wanted else None


def unknown_states(request: ListRequest) -> tuple[str, ...]:
    return tuple(sorted(request.states - _BY_NAME.keys()))
