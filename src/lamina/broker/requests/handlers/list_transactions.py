"""ListTransactions (key 66), versions 0-2.

Behaviour: the transactional ids of this broker, with producer and state, in turns of the loop; states that do not exist
are told.
Version notes: by duration from v1, by a regular expression of RE2 from v2.
"""

from typing import Any

from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.coordinators.transaction_requests import ListRequest
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import LIST_TRANSACTIONS as API_KEY
from lamina.wire.building import response_shape

_ANY_DURATION = -1


async def handle(transactions: TransactionCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    response = await transactions.list_transactions(
        ListRequest(
            frozenset(message.state_filters),
            frozenset(message.producer_id_filters),
            getattr(message, "duration_filter", _ANY_DURATION),
            getattr(message, "transactional_id_pattern", None),
        )
    )
    shape = response_shape(API_KEY, request.api_version)
    state_shape = shape.of("transaction_states")
    states = [
        state_shape(transactional_id=one.transactional_id, producer_id=one.producer_id, transaction_state=one.state)
        async for one in in_turns(response.listings, clocks)
    ]
    return shape(
        error_code=ErrorCode.NONE,
        unknown_state_filters=response.unknown_states,
        transaction_states=tuple(states),
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=error.code, unknown_state_filters=(), transaction_states=()
    )


API = Api(API_KEY, "ListTransactions", range(3), error_response)
