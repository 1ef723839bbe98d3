"""Heartbeat (key 12), versions 0-4.

Behaviour: a classic member is alive; REBALANCE_IN_PROGRESS tells it to join again. While the group is loaded, and its
members are not known yet, the answer is that all is well, as in Kafka: clients end at COORDINATOR_LOAD_IN_PROGRESS.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import HeartbeatRequest
from lamina.errors import CoordinatorLoadInProgress, ErrorCode, KafkaError
from lamina.wire.api_keys import HEARTBEAT as API_KEY
from lamina.wire.building import response_shape


def handle(groups: GroupCoordinator, request: Request, message: Any) -> Any:
    heartbeat = HeartbeatRequest(
        message.group_id, message.generation_id, message.member_id, getattr(message, "group_instance_id", None)
    )
    shard = groups.shard_of(message.group_id)
    pending = shard.ask(lambda machine, waiter, now: machine.heartbeat(heartbeat, waiter, now))
    return pending.then(lambda _: response_shape(API_KEY, request.api_version)(error_code=ErrorCode.NONE))


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    code = ErrorCode.NONE if isinstance(error, CoordinatorLoadInProgress) else error.code
    return response_shape(API_KEY, request.api_version)(error_code=code)


API = Api(API_KEY, "Heartbeat", range(5), error_response)
