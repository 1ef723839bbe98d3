"""OffsetFetch (key 9), versions 1-10.

Behaviour: committed offsets, -1 where there is none; of all partitions of a group where no topics are named (v2). With
require_stable (v7) an offset that an open transaction writes is UNSTABLE_OFFSET_COMMIT.
Version notes: errors of the whole group from v2; several groups from v8; members say who they are from v9; v10
has topic ids in place of names: an id that no topic has is UNKNOWN_TOPIC_ID, and offsets of a topic that was deleted
are left out where all are asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.offset_outcomes import topic_key, topic_name
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import FetchedOffset, OffsetFetchRequest
from lamina.errors import ErrorCode, KafkaError, UnknownTopicId
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import OFFSET_FETCH as API_KEY
from lamina.wire.building import Shape, response_shape

_FIRST_BATCHED = 8
_FIRST_WITH_ERROR = 2
_NOTHING = -1


async def handle(metadata: Metadata, groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    require_stable = getattr(message, "require_stable", False)
    turns = Turns(clocks)
    if request.api_version < _FIRST_BATCHED:
        topics = await _fetch_topics(metadata, groups, turns, shape.of("topics"), message, require_stable)
        return shape(error_code=ErrorCode.NONE, topics=topics)
    group_shape = shape.of("groups")
    fetched = []
    for group in message.groups:
        fetched.append(await _group(metadata, groups, turns, group_shape, group, require_stable))
        await turns.step()
    return shape(groups=tuple(fetched))


async def _group(
    metadata: Metadata, groups: GroupCoordinator, turns: Turns, shape: Shape, group: Any, require_stable: bool
) -> Any:
    try:
        topics = await _fetch_topics(metadata, groups, turns, shape.of("topics"), group, require_stable)
        return shape(group_id=group.group_id, topics=topics, error_code=ErrorCode.NONE)
    except KafkaError as error:
        return shape(group_id=group.group_id, topics=(), error_code=error.code)


async def _fetch_topics(
    metadata: Metadata, groups: GroupCoordinator, turns: Turns, shape: Shape, group: Any, require_stable: bool
) -> tuple[Any, ...]:
    """The topics of the answer for one group."""
    if group.topics is None:
        found = await _fetch(groups, group, None, require_stable)
        if not shape.has("topic_id"):
            return await _topics(shape, found, turns)
        topic_ids = {topic.name: UUID(bytes=topic.id) for topic in metadata.image.topics.values()}
        return await _topics(shape, [one for one in found if one.topic in topic_ids], turns, topic_ids)
    partitions: list[TopicPartition] = []
    topic_ids = {}
    unknown = []
    for topic in group.topics:
        key = topic_key(topic)
        name = topic_name(metadata, key)
        if name is None:
            unknown.append(await _unknown_topic(shape, topic, turns))
            continue
        if isinstance(key, UUID):
            topic_ids[name] = key
        partitions += [(name, index) for index in topic.partition_indexes]
    found = await _fetch(groups, group, tuple(partitions), require_stable)
    return (*await _topics(shape, found, turns, topic_ids), *unknown)


async def _fetch(
    groups: GroupCoordinator, group: Any, partitions: tuple[TopicPartition, ...] | None, require_stable: bool
) -> tuple[FetchedOffset, ...]:
    fetch = OffsetFetchRequest(
        group.group_id,
        partitions,
        getattr(group, "member_id", None),
        getattr(group, "member_epoch", _NOTHING),
        require_stable,
    )
    shard = groups.shard_of(group.group_id)
    found: tuple[FetchedOffset, ...] = await shard.ask(
        lambda machine, waiter, now: machine.fetch_offsets(fetch, waiter)
    )
    return found


async def _topics(
    shape: Shape, found: Sequence[FetchedOffset], turns: Turns, topic_ids: Mapping[str, UUID] | None = None
) -> tuple[Any, ...]:
    """``topic_ids`` where the answer has them in place of names."""
    topics = []
    for name, of_topic in groupby(found, key=lambda one: one.topic):
        topics.append(await _topic(shape, name, topic_ids.get(name) if topic_ids else None, of_topic, turns))
    return tuple(topics)


async def _unknown_topic(shape: Shape, topic: Any, turns: Turns) -> Any:
    error = UnknownTopicId("no topic has this id")
    offsets = [FetchedOffset("", index, error=error) for index in topic.partition_indexes]
    return await _topic(shape, "", topic.topic_id, offsets, turns)


async def _topic(shape: Shape, name: str, topic_id: UUID | None, offsets: Iterable[FetchedOffset], turns: Turns) -> Any:
    partition_shape = shape.of("partitions")
    partitions = []
    for one in offsets:
        partitions.append(_partition(partition_shape, one))
        await turns.step()
    return shape(name=name, topic_id=topic_id, partitions=tuple(partitions))


def _partition(shape: Shape, one: FetchedOffset) -> Any:
    return shape(
        partition_index=one.partition,
        committed_offset=one.offset,
        committed_leader_epoch=one.leader_epoch,
        metadata=one.metadata,
        error_code=ErrorCode.NONE if one.error is None else one.error.code,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    if request.api_version >= _FIRST_BATCHED:
        one = shape.of("groups")
        groups = tuple(one(group_id=group.group_id, topics=(), error_code=error.code) for group in message.groups)
        return shape(groups=groups)
    if request.api_version >= _FIRST_WITH_ERROR:
        return shape(error_code=error.code, topics=())
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    topics = tuple(
        topic_shape(
            name=topic.name,
            partitions=tuple(
                _partition(partition_shape, FetchedOffset(topic.name, index, error=error))
                for index in topic.partition_indexes
            ),
        )
        for topic in message.topics
    )
    return shape(topics=topics)


API = Api(API_KEY, "OffsetFetch", range(1, 11), error_response)
