"""DescribeGroups (key 15), versions 0-6.

Behaviour: state, protocol and members of classic groups. A group that is not there, or is a consumer group, is Dead.
Version notes: authorized operations from v3, also of a group that is not there, unless it has an error; from v6 a group
that is not there is GROUP_ID_NOT_FOUND with a sentence.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import ClassicDescription
from lamina.errors import ErrorCode, GroupIdNotFound, KafkaError
from lamina.wire.api_keys import DESCRIBE_GROUPS as API_KEY
from lamina.wire.building import Shape, response_shape

_FIRST_WITH_NOT_FOUND = 6
_DEAD = "Dead"


async def handle(groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    group_shape = shape.of("groups")
    operations = ALL_ON_GROUP if getattr(message, "include_authorized_operations", False) else NOT_ASKED
    described = []
    async for group_id in in_turns(message.groups, clocks):
        try:
            described.append(_group(group_shape, await groups.describe(group_id), operations))
        except GroupIdNotFound as error:
            if request.api_version >= _FIRST_WITH_NOT_FOUND:
                described.append(_failed(group_shape, group_id, error, _DEAD))
            else:
                dead = ClassicDescription(group_id, _DEAD, "", "", (), -1, None)
                described.append(_group(group_shape, dead, operations))
        except KafkaError as error:
            described.append(_failed(group_shape, group_id, error, ""))
    return shape(groups=tuple(described))


def _group(shape: Shape, described: ClassicDescription, operations: int) -> Any:
    member_shape = shape.of("members")
    return shape(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=described.group_id,
        group_state=described.state,
        protocol_type=described.protocol_type,
        protocol_data=described.protocol,
        members=tuple(
            member_shape(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in described.members
        ),
        authorized_operations=operations,
    )


def _failed(shape: Shape, group_id: str, error: KafkaError, state: str) -> Any:
    return shape(
        error_code=error.code,
        error_message=str(error),
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
        authorized_operations=NOT_ASKED,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    groups = tuple(_failed(shape.of("groups"), group_id, error, "") for group_id in message.groups)
    return shape(groups=groups)


API = Api(API_KEY, "DescribeGroups", range(7), error_response)
