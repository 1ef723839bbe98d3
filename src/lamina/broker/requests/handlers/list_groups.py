"""ListGroups (key 16), versions 0-5.

Behaviour: every group of this broker, also one that only has offsets, in turns of the loop;
COORDINATOR_LOAD_IN_PROGRESS while a shard loads.
Version notes: filters by state from v4, by type from v5; both ignore case, and an empty one takes all.
"""

from collections.abc import AsyncIterator
from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import GroupListing
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import LIST_GROUPS as API_KEY
from lamina.wire.building import response_shape


def handle(groups: GroupCoordinator, request: Request, message: Any) -> Any:
    return _list(request, message, groups.listings())


async def _list(request: Request, message: Any, listings: AsyncIterator[GroupListing]) -> Any:
    states = {state.lower() for state in getattr(message, "states_filter", ())}
    types = {name.lower() for name in getattr(message, "types_filter", ())}
    shape = response_shape(API_KEY, request.api_version)
    group_shape = shape.of("groups")
    groups = [
        group_shape(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state,
            group_type=group.type,
        )
        async for group in listings
        if (not states or group.state.lower() in states) and (not types or group.type in types)
    ]
    return shape(error_code=ErrorCode.NONE, groups=tuple(groups))


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, groups=())


API = Api(API_KEY, "ListGroups", range(6), error_response)
