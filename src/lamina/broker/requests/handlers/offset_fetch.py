"""OffsetFetch (key 9), versions 1-9.

Behaviour: committed offsets, -1 where there is none; of all partitions of a group where no topics are named (v2). With
require_stable (v7) an offset that an open transaction writes is UNSTABLE_OFFSET_COMMIT.
Version notes: errors of the whole group from v2; several groups from v8; members say who they are from v9.
Not done: v10 names topics by id, which no client needs.
"""

from itertools import groupby
from typing import Any

from lamina.broker.node import Node
from lamina.broker.requests.router import Api, Request
from lamina.coordinators.group_requests import FetchedOffset, OffsetFetchRequest
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.building import Shape, response_shape

API_KEY = 9
_FIRST_BATCHED = 8
_FIRST_WITH_ERROR = 2
_NOTHING = -1


async def handle(node: Node, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    require_stable = getattr(message, "require_stable", False)
    if request.api_version < _FIRST_BATCHED:
        found = await _fetch(node, message, require_stable)
        return shape(throttle_time=0, error_code=ErrorCode.NONE, topics=_topics(shape.of("topics"), found))
    group_shape = shape.of("groups")
    groups = [await _group(node, group_shape, group, require_stable) for group in message.groups]
    return shape(throttle_time=0, groups=tuple(groups))


async def _group(node: Node, shape: Shape, group: Any, require_stable: bool) -> Any:
    try:
        topics = _topics(shape.of("topics"), await _fetch(node, group, require_stable))
        return shape(group_id=group.group_id, topics=topics, error_code=ErrorCode.NONE)
    except KafkaError as error:
        return shape(group_id=group.group_id, topics=(), error_code=error.code)


async def _fetch(node: Node, group: Any, require_stable: bool) -> tuple[FetchedOffset, ...]:
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
    answer: Any = node.groups.shard_of(group.group_id).ask(
        lambda machine, waiter, now: machine.fetch_offsets(fetch, waiter)
    )
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


def error_answer(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    if request.api_version >= _FIRST_BATCHED:
        one = shape.of("groups")
        groups = tuple(one(group_id=group.group_id, topics=(), error_code=error.code) for group in message.groups)
        return shape(throttle_time=0, groups=groups)
    if request.api_version >= _FIRST_WITH_ERROR:
        return shape(throttle_time=0, error_code=error.code, topics=())
    failed = tuple(
        FetchedOffset(topic.name, index, error=error) for topic in message.topics for index in topic.partition_indexes
    )
    return shape(throttle_time=0, topics=_topics(shape.of("topics"), failed))


API = Api(API_KEY, "OffsetFetch", range(1, 10), handle, error_answer)
