"""FindCoordinator (key 10), versions 0-6.

Behaviour: names the broker that coordinates a group or a transactional id; the internal topic is made with the first
question. One whose partition is offline has no coordinator: COORDINATOR_NOT_AVAILABLE.
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
from lamina.errors import CoordinatorNotAvailable, ErrorCode, InvalidRequest, KafkaError, NotCoordinator
from lamina.wire.building import Shape, response_shape

API_KEY = 10
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
    broker = metadata.image.brokers[metadata.node_id]
    endpoint = broker.endpoint_for(request.listener_name)
    shape = response_shape(API_KEY, request.api_version)

    def found(shape: Shape, key: str) -> Any:
        try:
            coordinator.shard_of(key)
        except NotCoordinator as error:
            return shape(key=key, **_failed(CoordinatorNotAvailable(str(error))))
        return shape(
            key=key,
            error_code=ErrorCode.NONE,
            error_message=None,
            node_id=metadata.node_id,
            host=endpoint.host,
            port=endpoint.port,
        )

    if request.api_version < _FIRST_BATCHED:
        return found(shape, message.key)
    one = shape.of("coordinators")
    return shape(coordinators=tuple([found(one, key) async for key in in_turns(message.coordinator_keys, clocks)]))


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
