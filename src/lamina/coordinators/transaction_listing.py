"""What admins are told of transactions: DescribeTransactions and ListTransactions.

Must not know how transactions change.
"""

from collections.abc import Mapping

from lamina.coordinators.patterns import compile_pattern
from lamina.coordinators.records.transaction_records import Status, TransactionValue
from lamina.coordinators.transaction_requests import (
    ListRequest,
    ListResponse,
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


def list_transactions(values: Mapping[str, TransactionValue], request: ListRequest, now_ms: int) -> ListResponse:
    """Raises InvalidRegularExpression."""
    pattern = compile_pattern(request.id_pattern) if request.id_pattern else None
    states = {_BY_NAME[name] for name in request.states if name in _BY_NAME}

    def is_wanted(transactional_id: str, value: TransactionValue) -> bool:
        return (
            (not request.states or value.status in states)
            and (not request.producer_ids or value.producer_id in request.producer_ids)
            and (request.duration_ms < 0 or now_ms - value.start_timestamp_ms > request.duration_ms)
            and (pattern is None or pattern.fullmatch(transactional_id) is not None)
        )

    return ListResponse(
        tuple(
            TransactionListing(transactional_id, value.producer_id, value.status.state_name)
            for transactional_id, value in sorted(values.items())
            if is_wanted(transactional_id, value)
        ),
        tuple(sorted(request.states - _BY_NAME.keys())),
    )
