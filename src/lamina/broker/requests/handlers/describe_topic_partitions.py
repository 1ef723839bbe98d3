"""DescribeTopicPartitions (key 75), version 0 (KIP-966).

Behaviour: topics in the order of their names, all of them for an empty list, with their partitions: as many as the
client and `max.request.partition.size.limit` allow, and with the rest to come a cursor that the next request begins
from. A topic that is not there is UNKNOWN_TOPIC_OR_PARTITION where it is named, and none where all are asked for. A
cursor to a topic that is not in the list, or to a partition below 0, is INVALID_REQUEST.
Not done: no replica is ever eligible for leadership that is not in sync.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any
from uuid import UUID

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorized_operations import ALL_ON_TOPIC, NOT_ASKED
from lamina.broker.requests.partition_metadata import View, partition_metadata
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.image.image import Image
from lamina.image.topic import INTERNAL_TOPICS, Topic
from lamina.image.topic_names import check_topic_name
from lamina.security.acls import Operation, ResourceType
from lamina.settings.broker import MAX_REQUEST_PARTITION_SIZE_LIMIT
from lamina.wire.api_keys import DESCRIBE_TOPIC_PARTITIONS as API_KEY
from lamina.wire.building import Shape, response_shape


async def handle(
    metadata: Metadata,
    partitions: Partitions,
    clocks: Clocks,
    authorizer: Authorizer | None,
    request: Request,
    message: Any,
) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    cursor = message.cursor
    left = max(1, min(message.response_partition_limit, metadata.settings[MAX_REQUEST_PARTITION_SIZE_LIMIT]))
    topics: list[Any] = []
    names = _names(metadata.image, message)
    if authorizer is not None:
        names, denied = await _divided(authorizer, request, message, names)
        topics += [_denied(topic_shape, name) async for name in in_turns(denied, clocks)]
    async for name in in_turns(names, clocks):
        if left == 0:
            return _answer(shape, topics, next_topic=name)
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        operations = ALL_ON_TOPIC
        if authorizer is not None:
            operations = authorizer.operations(request, ResourceType.TOPIC, name)
        try:
            topic = metadata.image.topic(name)
        except KafkaError as error:
            topics.append(_unknown(topic_shape, name, error, operations))
            continue
        view = View(metadata.image, request.listener_name, metadata.node_id, partitions.offline(name))
        described = _topic(topic_shape, topic, range(first, first + left), view, operations)
        topics.append(described)
        left -= len(described.partitions)
        if first + len(described.partitions) < len(topic.partitions):
            return _answer(shape, topics, next_topic=name, next_partition=first + len(described.partitions))
    return _answer(shape, topics)


def _names(image: Image, message: Any) -> list[str]:
    """In order, from the cursor on."""
    cursor = message.cursor
    if message.topics:
        names: Iterable[str] = (topic.name for topic in message.topics)
    else:
        names = (topic.name for topic in image.topics.values() if not topic.is_being_deleted)
    if cursor is None:
        return sorted(set(names))
    if cursor.partition_index < 0:
        raise InvalidRequest(f"the cursor stands at partition {cursor.partition_index}")
    wanted = {name for name in names if name >= cursor.topic_name}
    if message.topics and cursor.topic_name not in wanted:
        raise InvalidRequest(f"the cursor stands at topic {cursor.topic_name!r}, which is not in the list")
    return sorted(wanted)


async def _divided(
    authorizer: Authorizer, request: Request, message: Any, names: list[str]
) -> tuple[list[str], list[str]]:
    """Those that the client may describe, and those that it has asked for by name and may not."""
    may_describe = authorizer.allows if message.topics else authorizer.allows_filtering
    allowed: list[str] = []
    denied: list[str] = []
    async for name in in_turns(names, authorizer.clocks):
        is_allowed = may_describe(request, Operation.DESCRIBE, ResourceType.TOPIC, name)
        (allowed if is_allowed else denied).append(name)
    return allowed, denied if message.topics else []


def _denied(shape: Shape, name: str) -> Any:
    return shape(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        topic_id=None,
        is_internal=False,
        partitions=(),
        topic_authorized_operations=NOT_ASKED,
    )


def _topic(shape: Shape, topic: Topic, wanted: range, view: View, operations: int) -> Any:
    """A partition without a leader that can be reached is no error here, as in Kafka."""
    partition_shape = shape.of("partitions")
    return shape(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=UUID(bytes=topic.id),
        is_internal=topic.is_internal,
        partitions=tuple(
            partition_shape(
                error_code=ErrorCode.NONE,
                partition_index=index,
                leader_id=told.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=told.replicas,
                isr_nodes=told.isr,
                eligible_leader_replicas=(),
                last_known_elr=(),
                offline_replicas=told.offline_replicas,
            )
            for index, partition in islice(enumerate(topic.partitions), wanted.start, wanted.stop)
            for told in [partition_metadata(view, topic, index)]
        ),
        topic_authorized_operations=operations,
    )


def _unknown(shape: Shape, name: str, error: KafkaError, operations: int) -> Any:
    try:
        check_topic_name(name)
    except KafkaError as invalid:
        error = invalid
    return shape(
        error_code=error.code,
        name=name,
        topic_id=None,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=operations,
    )


def _answer(shape: Shape, topics: list[Any], next_topic: str | None = None, next_partition: int = 0) -> Any:
    cursor = None
    if next_topic is not None:
        cursor = shape.of("next_cursor")(topic_name=next_topic, partition_index=next_partition)
    return shape(topics=tuple(topics), next_cursor=cursor)


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    topics = [
        topic_shape(error_code=error.code, name=topic.name, topic_id=None, partitions=()) for topic in message.topics
    ]
    return _answer(shape, topics)


API = Api(API_KEY, "DescribeTopicPartitions", range(1), error_response)
