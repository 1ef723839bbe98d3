"""InitProducerId (key 22), versions 0-5.

Behaviour: an idempotent producer gets a new id, at epoch 0. A transactional one gets what its transactional id has,
at the next epoch: the producer that had it before is fenced, and a transaction that was left open is aborted first
(CONCURRENT_TRANSACTIONS until then).
Version notes: from v3 a producer may name the id and epoch that it has, to go on after an error (KIP-360); without a
transactional id it gets a new one all the same, as in Kafka. PRODUCER_FENCED from v4.
"""

from typing import Any

from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.decision import Producer
from lamina.coordinators.transaction_requests import NO_PRODUCER, InitRequest, expected_producer
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.wire.api_keys import INIT_PRODUCER_ID as API_KEY
from lamina.wire.building import response_shape
from lamina.wire.encoder import milliseconds

_FIRST_WITH_FENCED = 4


async def handle(
    transactions: TransactionCoordinator, producer_ids: ProducerIdBlock, request: Request, message: Any
) -> Any:
    if message.transactional_id == "":
        raise InvalidRequest("a transactional id must not be empty")
    expected = expected_producer(
        getattr(message, "producer_id", NO_PRODUCER.id), getattr(message, "producer_epoch", NO_PRODUCER.epoch)
    )
    if message.transactional_id is None:
        return _response(request, ErrorCode.NONE, Producer(await producer_ids.next(), 0))
    producer = await transactions.init_producer_id(
        InitRequest(
            message.transactional_id,
            milliseconds(message.transaction_timeout),
            expected,
            request.api_version >= _FIRST_WITH_FENCED,
        )
    )
    return _response(request, ErrorCode.NONE, producer)


def _response(request: Request, code: ErrorCode, producer: Producer) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=code, producer_id=producer.id, producer_epoch=producer.epoch
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return _response(request, error.code, NO_PRODUCER)


API = Api(API_KEY, "InitProducerId", range(6), error_response)
