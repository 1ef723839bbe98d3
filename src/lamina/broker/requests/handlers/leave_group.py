"""LeaveGroup (key 13), versions 0-5.

Behaviour: members leave, or an administrator removes them; each has its own outcome, which is UNKNOWN_MEMBER_ID for all
if there is no such group.
Version notes: below v3 one member, whose error is the answer's own.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import LeaveRequest, LeaveResponse, LeavingMember
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.building import response_shape

API_KEY = 13
_FIRST_BATCHED = 3


def handle(groups: GroupCoordinator, request: Request, message: Any) -> Any:
    if request.api_version < _FIRST_BATCHED:
        members: tuple[LeavingMember, ...] = (LeavingMember(message.member_id, None),)
    else:
        members = tuple(
            LeavingMember(one.member_id, one.group_instance_id, getattr(one, "reason", None) or "")
            for one in message.members
        )
    leave = LeaveRequest(message.group_id, members)
    shard = groups.shard_of(message.group_id)
    pending = shard.ask(lambda machine, waiter, now: machine.leave(leave, waiter, now))
    return pending.then(lambda response: _response(request, response))


def _response(request: Request, response: LeaveResponse) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    if request.api_version < _FIRST_BATCHED:
        _, error = response.members[0]
        return shape(error_code=_code(error))
    member_shape = shape.of("members")
    return shape(
        error_code=ErrorCode.NONE,
        members=tuple(
            member_shape(member_id=member.member_id, group_instance_id=member.instance_id, error_code=_code(error))
            for member, error in response.members
        ),
    )


def _code(error: KafkaError | None) -> ErrorCode:
    return ErrorCode.NONE if error is None else error.code


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, members=())


API = Api(API_KEY, "LeaveGroup", range(6), error_response)
