"""SyncGroup (key 14), versions 0-5.

Behaviour: the leader brings the assignments, everybody gets its own; the others' answers wait for the leader.
Version notes: from v5 a member says which protocol it believes in, and is told.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import SyncRequest, SyncResponse
from lamina.errors import ErrorCode, InconsistentGroupProtocol, KafkaError, RebalanceInProgress
from lamina.wire.api_keys import SYNC_GROUP as API_KEY
from lamina.wire.building import response_shape

_FIRST_WITH_PROTOCOL = 5


def handle(groups: GroupCoordinator, request: Request, message: Any) -> Any:
    protocol_type = getattr(message, "protocol_type", None)
    protocol = getattr(message, "protocol_name", None)
    if request.api_version >= _FIRST_WITH_PROTOCOL and (protocol_type is None or protocol is None):
        raise InconsistentGroupProtocol("the protocol type and the protocol have to be named")
    sync = SyncRequest(
        message.group_id,
        message.generation_id,
        message.member_id,
        getattr(message, "group_instance_id", None),
        protocol_type,
        protocol,
        {one.member_id: bytes(one.assignment) for one in message.assignments},
    )
    shard = groups.shard_of(message.group_id)
    pending = shard.ask(lambda machine, waiter, now: machine.sync(sync, waiter, now))
    if not pending.is_ready:
        request.park(lambda: pending.give_up(RebalanceInProgress("the client is gone")))
    return pending.then(lambda response: _response(request, response))


def _response(request: Request, response: SyncResponse) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=ErrorCode.NONE,
        protocol_type=response.protocol_type,
        protocol_name=response.protocol,
        assignment=response.assignment,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=error.code, protocol_type=None, protocol_name=None, assignment=b""
    )


API = Api(API_KEY, "SyncGroup", range(6), error_response)
