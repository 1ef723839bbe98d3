"""DeleteGroups (key 42), versions 0-2.

Behaviour: a group without members goes with its offsets; NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND otherwise. Many offsets
go in turns of the loop, and with the last of them the group.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import DELETE_GROUPS as API_KEY
from lamina.wire.building import response_shape


async def handle(groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    result_shape = shape.of("results")
    results = []
    turns = Turns(clocks)
    for group_id in message.groups_names:
        code = ErrorCode.NONE
        try:
            shard = groups.shard_of(group_id)
            while not await shard.ask(lambda machine, waiter, now, g=group_id: machine.delete(g, waiter)):  # type: ignore[misc]
                await turns.step()
        except KafkaError as error:
            code = error.code
        results.append(result_shape(group_id=group_id, error_code=code))
        await turns.step()
    return shape(results=tuple(results))


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    result_shape = shape.of("results")
    results = tuple(result_shape(group_id=group_id, error_code=error.code) for group_id in message.groups_names)
    return shape(results=results)


API = Api(API_KEY, "DeleteGroups", range(3), error_response)
