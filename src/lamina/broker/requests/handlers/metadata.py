"""Metadata (key 3), versions 0-13.

Behaviour: brokers as this listener advertises them, the controller, and the topics asked for: all of them for
a null list (an empty list in v0), none for an empty one. A topic that is not there is made if the client and
`auto.create.topics.enable` allow it, before the answer. Encoded topics are kept as bytes. Everybody may do
everything, and if asked the answer says so.
Version notes: by topic id from v12 (v10 and v11 carry ids but may not be asked by them).
"""

from collections.abc import Awaitable
from typing import Any
from uuid import UUID

from lamina.broker.metadata.topic_creation import NewTopic, create_topics
from lamina.broker.network.service import Answer
from lamina.broker.node import Node
from lamina.broker.requests.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from lamina.broker.requests.router import Api, Request
from lamina.errors import (
    ErrorCode,
    InvalidRequest,
    InvalidTopic,
    KafkaError,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from lamina.image.topic import INTERNAL_TOPICS, Topic
from lamina.image.topic_names import check_topic_name
from lamina.settings.topics import AUTO_CREATE_TOPICS_ENABLE
from lamina.wire.building import Shape, response_shape
from lamina.wire.codec import encode_entity, encode_response_around

API_KEY = 3
_FIRST_WITH_AUTO_CREATION_FLAG = 4
_FIRST_BY_ID = 12


def handle(node: Node, request: Request, message: Any) -> Answer | Awaitable[Answer]:
    missing = _missing(node, request, message)
    if missing:
        return _create_and_answer(node, request, message, missing)
    return _answer(node, request, message, {})


def _missing(node: Node, request: Request, message: Any) -> list[str]:
    """The topics that this request makes."""
    wanted = getattr(message, "allow_auto_topic_creation", True) if message.topics else False
    if not wanted or not node.settings[AUTO_CREATE_TOPICS_ENABLE]:
        return []
    named = dict.fromkeys(topic.name for topic in message.topics if topic.name)
    return [name for name in named if name not in node.image.topics and name not in INTERNAL_TOPICS]


async def _create_and_answer(node: Node, request: Request, message: Any, missing: list[str]) -> Answer:
    try:
        made = await create_topics(node, [NewTopic(name) for name in missing])
    except KafkaError as error:
        made = dict.fromkeys(missing, error)
    # One that exists by now was made by another client's request, and is as good.
    errors = {
        name: error
        for name, error in made.items()
        if isinstance(error, KafkaError) and not isinstance(error, TopicAlreadyExists)
    }
    return _answer(node, request, message, errors)


def _answer(node: Node, request: Request, message: Any, errors: dict[str, KafkaError]) -> Answer:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    image = node.image
    operations = ALL_ON_TOPIC if getattr(message, "include_topic_authorized_operations", False) else NOT_ASKED
    wanted = _asked(node, request, message, errors)
    for one in wanted:
        if not isinstance(one, Topic):
            request.failed(one[2])
    encoded = [_topic(node, request.api_version, topic_shape, one, operations) for one in wanted]
    broker_shape = shape.of("brokers")
    response = shape(
        throttle_time=0,
        brokers=tuple(
            broker_shape(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            for broker in image.brokers.values()
            for endpoint in [broker.endpoint_for(request.connection.listener_name)]
        ),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=(),
        cluster_authorized_operations=(
            ALL_ON_CLUSTER if getattr(message, "include_cluster_authorized_operations", False) else NOT_ASKED
        ),
        error_code=ErrorCode.NONE,
    )
    return [encode_response_around(response, "topics", encoded, request.correlation_id)]


_Asked = Topic | tuple[str | None, UUID | None, ErrorCode]
"""A topic, or what is to be said in place of one."""


def _asked(node: Node, request: Request, message: Any, errors: dict[str, KafkaError]) -> list[_Asked]:
    image = node.image
    if message.topics is None or (request.api_version == 0 and not message.topics):
        return [topic for topic in image.topics.values() if not topic.is_being_deleted]
    asked: list[_Asked] = []
    for one in message.topics:
        topic_id = getattr(one, "topic_id", None)
        try:
            if one.name is None or (topic_id is not None and request.api_version >= _FIRST_BY_ID):
                if topic_id is None or request.api_version < _FIRST_BY_ID:
                    raise InvalidRequest("a topic without a name")
                asked.append(image.topic_with_id(topic_id.bytes))
                continue
            if one.name in errors:
                raise errors[one.name]
            check_topic_name(one.name)
            asked.append(image.topic(one.name))
        except UnknownTopicId as error:
            asked.append((None, topic_id, error.code))
        except (UnknownTopicOrPartition, InvalidTopic) as error:
            asked.append((one.name, None, error.code))
        except KafkaError as error:
            if isinstance(error, InvalidRequest):
                raise
            asked.append((one.name, None, error.code))
    return asked


def _topic(node: Node, api_version: int, shape: Shape, asked: _Asked, operations: int) -> bytes | bytearray:
    if not isinstance(asked, Topic):
        name, topic_id, error_code = asked
        nothing = shape(
            error_code=error_code,
            name=name if name is not None or api_version >= _FIRST_BY_ID else "",
            topic_id=topic_id,
            is_internal=name in INTERNAL_TOPICS,
            partitions=(),
            topic_authorized_operations=NOT_ASKED,
        )
        return encode_entity(nothing)
    if operations != NOT_ASKED:
        # Seldom asked for, so not worth keeping.
        return encode_entity(_whole_topic(shape, asked, operations))
    kept = node.encoded_topics.get(asked.name)
    if kept is None or kept[0] is not asked:
        kept = node.encoded_topics[asked.name] = (asked, {})
    by_version = kept[1]
    if api_version not in by_version:
        by_version[api_version] = encode_entity(_whole_topic(shape, asked, NOT_ASKED))
    return by_version[api_version]


def _whole_topic(shape: Shape, topic: Topic, operations: int) -> Any:
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
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                offline_replicas=(),
            )
            for index, partition in enumerate(topic.partitions)
        ),
        topic_authorized_operations=operations,
    )


def error_answer(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    topics = tuple(
        topic_shape(
            error_code=error.code,
            name=one.name or "",
            topic_id=getattr(one, "topic_id", None),
            is_internal=False,
            partitions=(),
        )
        for one in message.topics or ()
    )
    return shape(throttle_time=0, brokers=(), cluster_id=None, controller_id=-1, topics=topics, error_code=error.code)


API = Api(API_KEY, "Metadata", range(14), handle, error_answer)
