"""CreateTopics (key 19), versions 2-7.

Behaviour: the topics that can be made are made in one change and are ready when the answer goes out; each of the
others gets its own error. -1 asks for the broker's default; with assignments both counts must be -1. A name that
comes twice in one request is an INVALID_REQUEST, once, and so is `__cluster_metadata`. Of a config that comes twice the
last value holds; one without a value is INVALID_CONFIG. With `validate_only` nothing is made. A client above its quota
of changes gets THROTTLING_QUOTA_EXCEEDED; with `validate_only` too (S64).
Version notes: v5 tells partitions, replicas and configs; v7 the topic id; below v6 what exceeds a quota is done all the
same, and the client told to wait.
Not done: the timeout is not looked at, since nothing is left to wait for.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.topic_creation import NewTopic, create_topics, partition_count, plan_topics
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import check
from lamina.broker.requests.client_quotas import ClientQuotas
from lamina.broker.requests.config_entries import topic_entries
from lamina.broker.requests.encoded_entries import response_around
from lamina.broker.requests.request import Request, Response
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, InvalidReplicaAssignment, InvalidRequest, KafkaError
from lamina.image.topic import Topic
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acls import Operation, ResourceType
from lamina.wire.api_keys import CREATE_TOPICS as API_KEY
from lamina.wire.building import Shape, response_shape
from lamina.wire.codec import encode_entity

_UNKNOWN = -1
_FIRST_STRICT = 6


async def handle(
    metadata: Metadata,
    directories: LogDirectories,
    client_quotas: ClientQuotas,
    message_thread: Threads,
    clocks: Clocks,
    authorizer: Authorizer | None,
    request: Request,
    message: Any,
) -> Response:
    changes = client_quotas.changes(request, is_strict=request.api_version >= _FIRST_STRICT)
    outcomes: dict[str, Topic | KafkaError] = {}
    wanted: list[NewTopic] = []
    named = Counter(asked.name for asked in message.topics)
    async for asked in in_turns(message.topics, clocks):
        try:
            if named[asked.name] > 1:
                raise InvalidRequest(f"topic {asked.name!r} is named more than once")
            if authorizer is not None:
                _check_may_create(authorizer, request, asked.name)
            new = _wanted(asked)
            # Whoever asks for what is there pays nothing, as in Kafka.
            if new.name not in metadata.decided.topics:
                changes.take(max(0, partition_count(metadata.settings, new)))
            wanted.append(new)
        except KafkaError as error:
            outcomes[asked.name] = error.without_frames()
    if message.validate_only:
        _, planned = await plan_topics(metadata, directories, metadata.image, wanted, message_thread, clocks)
        outcomes |= planned
    else:
        outcomes |= await create_topics(metadata, directories, wanted, message_thread, clocks)
    configs = {new.name: new.configs for new in wanted}
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    encoded = []
    # Every config of every topic is told, and a request may make thousands. As bytes they are nothing that the garbage
    # collector looks through.
    async for name in in_turns(named, clocks):
        outcome = outcomes[name]
        if isinstance(outcome, KafkaError):
            request.failed(outcome.code)
            topic = _failed(topic_shape, name, outcome)
        else:
            topic = _made(topic_shape, metadata, outcome, configs[name], is_made=not message.validate_only)
            if authorizer is not None and not authorizer.allows_filtering(
                request, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name
            ):
                topic = _without_configs(topic_shape, topic)
        encoded.append(encode_entity(topic))
    return await response_around(request, shape, "topics", encoded, message_thread)


def _check_may_create(authorizer: Authorizer, request: Request, name: str) -> None:
    if not authorizer.allows_filtering(request, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        check(authorizer, request, Operation.CREATE, ResourceType.TOPIC, name)


def _without_configs(shape: Shape, topic: Any) -> Any:
    """For a client that may not describe them."""
    if not shape.has("configs"):
        return topic
    return topic.replace(
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        num_partitions=_UNKNOWN,
        replication_factor=_UNKNOWN,
        configs=(),
    )


def _wanted(asked: Any) -> NewTopic:
    assignments: dict[int, tuple[int, ...]] = {}
    for assignment in asked.assignments:
        if assignment.partition_index in assignments:
            raise InvalidReplicaAssignment(f"partition {assignment.partition_index} is assigned more than once")
        assignments[assignment.partition_index] = tuple(assignment.broker_ids)
    configs = {config.name: config.value for config in asked.configs}
    return NewTopic(asked.name, asked.num_partitions, asked.replication_factor, assignments, configs)


def _made(shape: Shape, metadata: Metadata, topic: Topic, overrides: Mapping[str, str | None], *, is_made: bool) -> Any:
    configs: tuple[Any, ...] = ()
    if shape.has("configs"):
        config_shape = shape.of("configs")
        configs = tuple(
            config_shape(
                name=entry.name,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in topic_entries(
                metadata.settings, {name: text for name, text in overrides.items() if text is not None}
            )
        )
    return shape(
        name=topic.name,
        topic_id=UUID(bytes=topic.id) if is_made else None,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=configs,
    )


def _failed(shape: Shape, name: str, error: KafkaError) -> Any:
    return shape(
        name=name,
        topic_id=None,
        error_code=error.code,
        error_message=str(error),
        num_partitions=_UNKNOWN,
        replication_factor=_UNKNOWN,
        configs=(),
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    names = dict.fromkeys(asked.name for asked in message.topics)
    return shape(topics=tuple(_failed(shape.of("topics"), name, error) for name in names))


API = Api(API_KEY, "CreateTopics", range(2, 8), error_response, is_for_controller=True)
