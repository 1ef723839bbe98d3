"""FindCoordinator (key 10), versions 0-6.

Behaviour: names the broker that coordinates a group or a transactional id; the internal topic is made with the first
question. One whose partition is offline has no coordinator: COORDINATOR_NOT_AVAILABLE.
Version notes: transactional ids (key type 1) from v1, several keys at a time from v4. Other types are an
INVALID_REQUEST.
"""

from typing import Any

from lamina.broker.node import Node
from lamina.broker.requests.router import Api, Request
from lamina.errors import CoordinatorNotAvailable, ErrorCode, InvalidRequest, KafkaError, NotCoordinator
from lamina.wire.building import Shape, response_shape

API_KEY = 10
GROUP = 0
TRANSACTION = 1
_FIRST_BATCHED = 4
_NOBODY = -1


async def handle(node: Node, request: Request, message: Any) -> Any:
    key_type = getattr(message, "key_type", GROUP)
    if key_type not in (GROUP, TRANSACTION):
        raise InvalidRequest(f"there is no coordinator for keys of type {key_type}")
    coordinator = node.groups if key_type == GROUP else node.transactions
    await coordinator.make_topic()
    broker = node.image.brokers[node.id]
    endpoint = broker.endpoint_for(request.connection.listener_name)
    shape = response_shape(API_KEY, request.api_version)

    def found(shape: Shape, key: str) -> Any:
        try:
            coordinator.shard_of(key)
        except NotCoordinator as error:
            return shape(key=key, **_failed(CoordinatorNotAvailable(str(error))))
        return shape(
            throttle_time=0,
            key=key,
            error_code=ErrorCode.NONE,
            error_message=None,
            node_id=node.id,
            host=endpoint.host,
            port=endpoint.port,
        )

    if request.api_version < _FIRST_BATCHED:
        return found(shape, message.key)
    coordinators = tuple(found(shape.of("coordinators"), key) for key in message.coordinator_keys)
    return shape(throttle_time=0, coordinators=coordinators)


def _failed(error: KafkaError) -> dict[str, Any]:
    return {
        "throttle_time": 0,
        "error_code": error.code,
        "error_message": str(error),
        "node_id": _NOBODY,
        "host": "",
        "port": _NOBODY,
    }


def error_answer(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    fields = _failed(error)
    if request.api_version < _FIRST_BATCHED:
        return shape(**fields)
    one = shape.of("coordinators")
    return shape(throttle_time=0, coordinators=tuple(one(key=key, **fields) for key in message.coordinator_keys))


API = Api(API_KEY, "FindCoordinator", range(7), handle, error_answer)
