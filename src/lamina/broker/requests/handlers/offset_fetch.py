"""OffsetFetch (key 9), versions 1-9.

Behaviour: committed offsets, -1 where there is none; of all partitions of a group where no topics are named (v2). With
require_stable (v7) an offset that an open transaction writes is UNSTABLE_OFFSET_COMMIT.
Version notes: errors of the whole group from v2; several groups from v8; members say who they are from v9.
Not done: v10 names topics by id, which no client needs.
"""

from itertools import groupby
from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import FetchedOffset, OffsetFetchRequest
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.building import Shape, response_shape

API_KEY = 9
_FIRST_BATCHED = 8
_FIRST_WITH_ERROR = 2
_NOTHING = -1


async def handle(groups: GroupCoordinator, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    require_stable = getattr(message, "require_stable", False)
    if request.api_version < _FIRST_BATCHED:
        found = await _fetch(groups, message, require_stable)
        return shape(error_code=ErrorCode.NONE, topics=_topics(shape.of("topics"), found))
    group_shape = shape.of("groups")
    fetched = [await _group(groups, group_shape, group, require_stable) for group in message.groups]
    return shape(groups=tuple(fetched))


async def _group(groups: GroupCoordinator, shape: Shape, group: Any, require_stable: bool) -> Any:
    try:
        topics = _topics(shape.of("topics"), await _fetch(groups, group, require_stable))
        return shape(group_id=group.group_id, topics=topics, error_code=ErrorCode.NONE)
    except KafkaError as error:
        return shape(group_id=group.group_id, topics=(), error_code=error.code)


async def _fetch(groups: GroupCoordinator, group: Any, require_stable: bool) -> tuple[FetchedOffset, ...]:
    partitions = None
    if group.topics is not None:
        partitions = tuple((topic.name, index) for topic in group.topics for index in topic.partition_indexes)
    fetch = OffsetFetchRequest(
        group.group_id,
        partitions,
        getattr(group, "member_id", None),
        getattr(group, "member_epoch", _NOTHING),
        require_stable,
    )
    answer: Any = groups.shard_of(group.group_id).ask(lambda machine, waiter, now: machine.fetch_offsets(fetch, waiter))
    return answer if isinstance(answer, tuple) else await answer


def _topics(shape: Shape, found: tuple[FetchedOffset, ...]) -> tuple[Any, ...]:
    partition_shape = shape.of("partitions")
    return tuple(
        shape(
            name=name,
            partitions=tuple(
                partition_shape(
                    partition_index=one.partition,
                    committed_offset=one.offset,
                    committed_leader_epoch=one.leader_epoch,
                    metadata=one.metadata,
                    error_code=ErrorCode.NONE if one.error is None else one.error.code,
                )
                for one in of_topic
            ),
        )
        for name, of_topic in groupby(found, key=lambda one: one.topic)
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    if request.api_version >= _FIRST_BATCHED:
        one = shape.of("groups")
        groups = tuple(one(group_id=group.group_id, topics=(), error_code=error.code) for group in message.groups)
        return shape(groups=groups)
    if request.api_version >= _FIRST_WITH_ERROR:
        return shape(error_code=error.code, topics=())
    failed = tuple(
        FetchedOffset(topic.name, index, error=error) for topic in message.topics for index in topic.partition_indexes
    )
    return shape(topics=_topics(shape.of("topics"), failed))


API = Api(API_KEY, "OffsetFetch", range(1, 10), error_response)
