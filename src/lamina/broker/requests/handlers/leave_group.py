"""LeaveGroup (key 13), versions 0-5.

Behaviour: members leave, or an administrator removes them; each has its own outcome, which is UNKNOWN_MEMBER_ID for all
if there is no such group. Many leave some at a time, in turns of the loop.
Version notes: below v3 one member, whose error is the answer's own.
"""

from collections.abc import Iterable
from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.pending import Response
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import LeaveRequest, LeaveResponse, LeavingMember
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import LEAVE_GROUP as API_KEY
from lamina.wire.building import Shape, response_shape

_FIRST_BATCHED = 3
_MEMBERS_AT_A_TIME = 256
"""To let one go takes a few microseconds."""


def handle(groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    if request.api_version < _FIRST_BATCHED:
        members = [LeavingMember(message.member_id, None)]
    elif len(message.members) > _MEMBERS_AT_A_TIME:
        return _handle_in_turns(groups, clocks, request, message)
    else:
        members = [_leaving(one) for one in message.members]
    return _leave(groups, message.group_id, members).then(lambda response: _response(request, response))


async def _handle_in_turns(groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    """As above, for many members: some of them at a time."""
    turns = Turns(clocks)
    shape = response_shape(API_KEY, request.api_version)
    member_shape = shape.of("members")
    answered = []
    for start in range(0, len(message.members), _MEMBERS_AT_A_TIME):
        members = [_leaving(one) for one in message.members[start : start + _MEMBERS_AT_A_TIME]]
        left: LeaveResponse = await _leave(groups, message.group_id, members)
        answered += [_member(member_shape, *outcome) for outcome in left.members]
        await turns.step()
    return shape(error_code=ErrorCode.NONE, members=tuple(answered))


def _leaving(one: Any) -> LeavingMember:
    return LeavingMember(one.member_id, one.group_instance_id, getattr(one, "reason", None) or "")


def _leave(groups: GroupCoordinator, group_id: str, members: Iterable[LeavingMember]) -> Response:
    leave = LeaveRequest(group_id, tuple(members))
    return groups.shard_of(group_id).ask(lambda machine, waiter, now: machine.leave(leave, waiter, now))


def _response(request: Request, response: LeaveResponse) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    if request.api_version < _FIRST_BATCHED:
        _, error = response.members[0]
        return shape(error_code=_code(error))
    member_shape = shape.of("members")
    members = tuple(_member(member_shape, *outcome) for outcome in response.members)
    return shape(error_code=ErrorCode.NONE, members=members)


def _member(shape: Shape, member: LeavingMember, error: KafkaError | None) -> Any:
    return shape(member_id=member.member_id, group_instance_id=member.instance_id, error_code=_code(error))


def _code(error: KafkaError | None) -> ErrorCode:
    return ErrorCode.NONE if error is None else error.code


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, members=())


API = Api(API_KEY, "LeaveGroup", range(6), error_response)
