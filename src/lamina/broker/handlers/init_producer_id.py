"""InitProducerId (key 22), versions 0-5.

Behaviour: an idempotent producer gets an id that nobody had before, at epoch 0.
Version notes: from v3 a producer may name the id and epoch that it has; without a transactional id it gets a new
one all the same, as in Kafka.
Not done: transactions. A producer with a transactional id would first look for its coordinator, and
FindCoordinator is not offered; one that asks here nevertheless gets UNSUPPORTED_VERSION, which ends the attempt
(COORDINATOR_NOT_AVAILABLE would be tried again and again). An empty transactional id is an INVALID_REQUEST.
"""

from typing import Any

from lamina.broker.node import Node
from lamina.broker.router import Api, Request
from lamina.errors import ErrorCode, InvalidRequest, KafkaError, UnsupportedVersion
from lamina.wire.building import response_shape

API_KEY = 22
_NO_PRODUCER = -1


async def handle(node: Node, request: Request, message: Any) -> Any:
    if message.transactional_id == "":
        raise InvalidRequest("a transactional id must not be empty")
    if message.transactional_id is not None:
        raise UnsupportedVersion("this broker has no transaction coordinator")
    producer_id = await node.producer_ids.next()
    return response_shape(API_KEY, request.api_version)(
        throttle_time=0, error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0
    )


def error_answer(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(
        throttle_time=0, error_code=error.code, producer_id=_NO_PRODUCER, producer_epoch=-1
    )


API = Api(API_KEY, "InitProducerId", range(6), handle, error_answer)
