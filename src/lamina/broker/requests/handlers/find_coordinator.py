"""FindCoordinator (key 10), versions 0-6.

Behaviour: names the broker that coordinates a group or a transactional id, which leads its partition of an internal
topic, at its address for the client's listener; the topic is made with the first question. COORDINATOR_NOT_AVAILABLE
while there is no such broker: the topic is being made, has no leader there, or the leader lacks that listener (R74).
Version notes: transactional ids (key type 1) from v1, several keys at a time from v4. Other types are an
INVALID_REQUEST.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import CoordinatorNotAvailable, ErrorCode, InvalidRequest, KafkaError
from lamina.image.image import Image
from lamina.settings.listeners import Listener
from lamina.wire.api_keys import FIND_COORDINATOR as API_KEY
from lamina.wire.building import Shape, response_shape

GROUP = 0
TRANSACTION = 1
_FIRST_BATCHED = 4
_NONE = -1


async def handle(
    metadata: Metadata,
    groups: GroupCoordinator,
    transactions: TransactionCoordinator,
    clocks: Clocks,
    request: Request,
    message: Any,
) -> Any:
    key_type = getattr(message, "key_type", GROUP)
    if key_type not in (GROUP, TRANSACTION):
        raise InvalidRequest(f"there is no coordinator for keys of type {key_type}")
    coordinator = groups if key_type == GROUP else transactions
    await coordinator.create_topic()
    shape = response_shape(API_KEY, request.api_version)

    def found(shape: Shape, key: str) -> Any:
        try:
            broker_id = coordinator.coordinator_of(key)
            endpoint = _endpoint(metadata.image, broker_id, request.listener_name)
        except CoordinatorNotAvailable as error:
            return shape(key=key, **_failed(error))
        return shape(
            key=key,
            error_code=ErrorCode.NONE,
            error_message=None,
            node_id=broker_id,
            host=endpoint.host,
            port=endpoint.port,
        )

    if request.api_version < _FIRST_BATCHED:
        return found(shape, message.key)
    one = shape.of("coordinators")
    return shape(coordinators=tuple([found(one, key) async for key in in_turns(message.coordinator_keys, clocks)]))


def _endpoint(image: Image, broker_id: int, listener_name: str) -> Listener:
    broker = image.brokers.get(broker_id)
    endpoint = None if broker is None else broker.endpoints.get(listener_name)
    if endpoint is None:
        raise CoordinatorNotAvailable(f"broker {broker_id} has no listener {listener_name}")
    return endpoint


def _failed(error: KafkaError) -> dict[str, Any]:
    return {
        "error_code": error.code,
        "error_message": str(error),
        "node_id": _NONE,
        "host": "",
        "port": _NONE,
    }


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    fields = _failed(error)
    if request.api_version < _FIRST_BATCHED:
        return shape(**fields)
    one = shape.of("coordinators")
    return shape(coordinators=tuple(one(key=key, **fields) for key in message.coordinator_keys))


API = Api(API_KEY, "FindCoordinator", range(7), error_response)
