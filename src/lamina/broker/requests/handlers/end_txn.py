"""EndTxn (key 26), versions 0-5.

Behaviour: the transaction is committed or aborted: answered once that is decided for good. Its markers are written
behind the answer; until then the producer is told CONCURRENT_TRANSACTIONS.
Version notes: PRODUCER_FENCED from v2; with v5 (transaction version 2) the producer is told its next epoch, or its
next id.
"""

from typing import Any

from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.decision import Producer
from lamina.coordinators.transaction_requests import BUMPING, CLASSIC, NO_PRODUCER, EndRequest
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import END_TXN as API_KEY
from lamina.wire.building import response_shape

_FIRST_WITH_FENCED = 2
_FIRST_BUMPING = 5


async def handle(transactions: TransactionCoordinator, request: Request, message: Any) -> Any:
    ended = await transactions.end(
        EndRequest(
            message.transactional_id,
            Producer(message.producer_id, message.producer_epoch),
            message.committed,
            BUMPING if request.api_version >= _FIRST_BUMPING else CLASSIC,
            request.api_version >= _FIRST_WITH_FENCED,
        )
    )
    return _response(request, ErrorCode.NONE, ended)


def _response(request: Request, code: ErrorCode, producer: Producer) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=code, producer_id=producer.id, producer_epoch=producer.epoch
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return _response(request, error.code, NO_PRODUCER)


API = Api(API_KEY, "EndTxn", range(6), error_response)
