"""Metadata (key 3), versions 0-13.

Behaviour: brokers as this listener advertises them, the controller, and the topics asked for: all of them for
a null list (an empty list in v0), none for an empty one. A partition without a leader that can be reached by this
listener is LEADER_NOT_AVAILABLE or LISTENER_NOT_FOUND, and told all the same. A topic that is not there is made if the
client and `auto.create.topics.enable` allow it, before the answer. Encoded topics are kept as bytes. Topics that the
client may not describe are left out, and denied where it names them (S58); if asked, the answer says what it may do.
Many topics are answered in turns of the loop; one of many partitions is encoded on a thread.
Version notes: v0 leaves out replicas that are away (REPLICA_NOT_AVAILABLE); LISTENER_NOT_FOUND from v6; by topic id
from v12 (v10 and v11 carry ids but may not be asked by them).
"""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.topic_creation import CreateTopics, NewTopic, partition_count
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import check, denial
from lamina.broker.requests.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from lamina.broker.requests.client_quotas import ClientQuotas
from lamina.broker.requests.partition_metadata import View, partition_metadata
from lamina.broker.requests.request import Request, Response
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns, in_turns
from lamina.clocks import Clocks
from lamina.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    UnknownTopicId,
)
from lamina.image.image import Broker
from lamina.image.topic import INTERNAL_TOPICS, Topic
from lamina.image.topic_names import RESERVED, check_topic_name
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acls import Operation, ResourceType
from lamina.settings.broker import AUTO_CREATE_TOPICS_ENABLE
from lamina.wire.api_keys import METADATA as API_KEY
from lamina.wire.building import Shape, response_shape
from lamina.wire.codec import encode_entity, encode_response_around

_FIRST_WITH_LISTENER_NOT_FOUND = 6
_FIRST_BY_ID = 12
_TOPICS_AT_A_TIME = 256
_PARTITIONS_AT_A_TIME = 1000
"""Each takes about four microseconds, if its topic is not kept as bytes."""

_NEVER_MADE = INTERNAL_TOPICS | {RESERVED}
"""By a client's question alone."""

_Encoded = dict[tuple[int, str], bytes | bytearray]
"""A topic by version and listener."""
_Kept = tuple[Topic, Mapping[int, Broker], _Encoded]

_Asked = Topic | tuple[str | None, UUID | None, ErrorCode]
"""A topic, or what is to be said in place of one."""


class DescribeTopics:
    """The handler, with what it works on."""

    def __init__(
        self,
        metadata: Metadata,
        partitions: Partitions,
        create_topics: CreateTopics,
        client_quotas: ClientQuotas,
        message_thread: Threads,
        clocks: Clocks,
        authorizer: Authorizer | None,
    ) -> None:
        self._authorizer = authorizer
        self._message_thread = message_thread
        self._clocks = clocks
        self._metadata = metadata
        self._partitions = partitions
        self._create_topics = create_topics
        self._client_quotas = client_quotas
        self._encoded: dict[str, _Kept] = {}
        """Topics as responses have them, as long as they and the brokers are the same objects."""

    def handle(self, request: Request, message: Any) -> Response | Awaitable[Response]:
        missing = self._missing(request, message)
        # Topics by name that this client may not create, or not even hear of.
        errors: dict[str, KafkaError] = {}
        if self._authorizer is not None and message.topics:
            if len(message.topics) > _TOPICS_AT_A_TIME:
                return self._check_and_answer(self._authorizer, request, message, missing)
            errors = {name: error for name, error in _looked_at(self._authorizer, request, message, missing) if error}
            missing = [name for name in missing if name not in errors]
        if missing:
            return self._create_and_answer(request, message, missing, errors)
        if self._names_all(request, message):
            every = self._all_topics()
            if self._authorizer is not None:
                return self._answer_visible(self._authorizer, request, message, every)
            wanted: Sequence[_Asked] = every
        elif len(message.topics) > _TOPICS_AT_A_TIME:
            return self._find_and_answer(request, message, errors)
        else:
            wanted = [self._find(request, one, errors) for one in message.topics]
        if self._takes_long(wanted):
            return self._answer_in_turns(request, message, wanted)
        return self._answer(request, message, wanted, [self._topic(request, message, one) for one in wanted])

    def _missing(self, request: Request, message: Any) -> list[str]:
        """The topics that this request makes."""
        wanted = getattr(message, "allow_auto_topic_creation", True) if message.topics else False
        if not wanted or not self._metadata.settings[AUTO_CREATE_TOPICS_ENABLE]:
            return []
        named = dict.fromkeys(topic.name for topic in message.topics if topic.name)
        return [name for name in named if name not in self._metadata.image.topics and name not in _NEVER_MADE]

    async def _check_and_answer(
        self, authorizer: Authorizer, request: Request, message: Any, missing: list[str]
    ) -> Response:
        """For many topics."""
        every = in_turns(_looked_at(authorizer, request, message, missing), self._clocks)
        errors = {name: error async for name, error in every if error}
        missing = [name for name in missing if name not in errors]
        if missing:
            return await self._create_and_answer(request, message, missing, errors)
        return await self._find_and_answer(request, message, errors)

    async def _create_and_answer(
        self, request: Request, message: Any, missing: list[str], denied: dict[str, KafkaError]
    ) -> Response:
        made: Mapping[str, Topic | KafkaError]
        try:
            wanted = [NewTopic(name) for name in missing]
            changes = self._client_quotas.changes(request, is_strict=False)
            for new in wanted:
                changes.take(partition_count(self._metadata.settings, new))
            made = await self._create_topics(wanted)
        except KafkaError as error:
            made = dict.fromkeys(missing, error)
        # One that exists by now was made by another client's request, and is as good.
        errors = {
            name: error
            for name, error in made.items()
            if isinstance(error, KafkaError) and not isinstance(error, TopicAlreadyExists)
        }
        return await self._find_and_answer(request, message, denied | errors)

    async def _find_and_answer(self, request: Request, message: Any, errors: dict[str, KafkaError]) -> Response:
        turns = Turns(self._clocks)
        wanted = []
        for one in message.topics:
            wanted.append(self._find(request, one, errors))
            await turns.step()
        return await self._answer_in_turns(request, message, wanted)

    def _takes_long(self, wanted: Sequence[_Asked]) -> bool:
        return (
            len(wanted) > _TOPICS_AT_A_TIME
            or sum(len(one.partitions) for one in wanted if isinstance(one, Topic)) > _PARTITIONS_AT_A_TIME
        )

    async def _answer_in_turns(self, request: Request, message: Any, wanted: Sequence[_Asked]) -> Response:
        turns = Turns(self._clocks)
        encoded = []
        for one in wanted:
            if isinstance(one, Topic) and len(one.partitions) > _PARTITIONS_AT_A_TIME:
                encoded.append(await self._large_topic(request, one, self._operations(request, message, one.name)))
            else:
                encoded.append(self._topic(request, message, one))
            await turns.step()
        return self._answer(request, message, wanted, encoded)

    async def _large_topic(self, request: Request, topic: Topic, operations: int) -> bytes | bytearray:
        view = self._view(request, topic)
        encoded = self._kept(topic) if operations == NOT_ASKED and not view.offline else {}
        key = (request.api_version, request.listener_name)
        if key not in encoded:
            encoded[key] = await self._message_thread.compute(
                lambda: encode_entity(_whole_topic(request, topic, operations, view))
            )
        return encoded[key]

    def _view(self, request: Request, topic: Topic) -> View:
        offline = self._partitions.offline(topic.name)
        return View(self._metadata.image, request.listener_name, self._metadata.node_id, offline)

    def _answer(
        self, request: Request, message: Any, wanted: Sequence[_Asked], encoded: list[bytes | bytearray]
    ) -> Response:
        shape = response_shape(API_KEY, request.api_version)
        image = self._metadata.image
        for one in wanted:
            if not isinstance(one, Topic):
                request.failed(one[2])
        broker_shape = shape.of("brokers")
        response = shape(
            brokers=tuple(
                broker_shape(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
                for broker in image.brokers.values()
                if (endpoint := broker.endpoints.get(request.listener_name)) is not None
            ),
            throttle_time=request.throttled_ms(),
            cluster_id=image.cluster_id,
            controller_id=image.controller_on(request.listener_name),
            topics=(),
            cluster_authorized_operations=self._operations_on_cluster(request, message),
            error_code=ErrorCode.NONE,
        )
        return [encode_response_around(response, "topics", encoded, request.correlation_id)]

    def _names_all(self, request: Request, message: Any) -> bool:
        return message.topics is None or (request.api_version == 0 and not message.topics)

    def _all_topics(self) -> list[Topic]:
        return [topic for topic in self._metadata.image.topics.values() if not topic.is_being_deleted]

    async def _answer_visible(
        self, authorizer: Authorizer, request: Request, message: Any, every: Sequence[Topic]
    ) -> Response:
        """Of all topics those that the client may describe."""
        wanted = [
            topic
            async for topic in in_turns(every, self._clocks)
            if authorizer.allows_filtering(request, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
        return await self._answer_in_turns(request, message, wanted)

    def _operations(self, request: Request, message: Any, topic: str) -> int:
        if not getattr(message, "include_topic_authorized_operations", False):
            return NOT_ASKED
        if self._authorizer is None:
            return ALL_ON_TOPIC
        return self._authorizer.operations(request, ResourceType.TOPIC, topic)

    def _operations_on_cluster(self, request: Request, message: Any) -> int:
        if not getattr(message, "include_cluster_authorized_operations", False):
            return NOT_ASKED
        return ALL_ON_CLUSTER if self._authorizer is None else self._authorizer.operations_on_cluster(request)

    def _find(self, request: Request, asked: Any, errors: dict[str, KafkaError]) -> _Asked:
        image = self._metadata.image
        topic_id = getattr(asked, "topic_id", None)
        try:
            if asked.name is None or (topic_id is not None and request.api_version >= _FIRST_BY_ID):
                if topic_id is None or request.api_version < _FIRST_BY_ID:
                    raise InvalidRequest("a topic without a name")
                topic = image.topic_with_id(topic_id.bytes)
                if self._authorizer is not None:
                    check(self._authorizer, request, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
                return topic
            if asked.name in errors:
                raise errors[asked.name]
            check_topic_name(asked.name)
            return image.topic(asked.name)
        except (UnknownTopicId, TopicAuthorizationFailed) as error:
            is_by_id = isinstance(error, UnknownTopicId) or asked.name is None
            return None if is_by_id else asked.name, topic_id if is_by_id else None, error.code
        except InvalidRequest:
            raise
        except KafkaError as error:
            return asked.name, None, error.code

    def _topic(self, request: Request, message: Any, asked: _Asked) -> bytes | bytearray:
        if not isinstance(asked, Topic):
            name, _, error_code = asked
            operations = NOT_ASKED
            if name is not None and error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                operations = self._operations(request, message, name)
            return encode_entity(_no_topic(request, *asked, operations))
        operations = self._operations(request, message, asked.name)
        if operations != NOT_ASKED or self._partitions.offline(asked.name):
            # Seldom asked for, so not worth keeping.
            return encode_entity(_whole_topic(request, asked, operations, self._view(request, asked)))
        encoded = self._kept(asked)
        key = (request.api_version, request.listener_name)
        found = encoded.get(key)
        if found is None:
            found = encoded[key] = encode_entity(_whole_topic(request, asked, NOT_ASKED, self._view(request, asked)))
        return found

    def _kept(self, topic: Topic) -> _Encoded:
        image = self._metadata.image
        kept = self._encoded.get(topic.name)
        if kept is None or kept[0] is not topic or kept[1] is not image.brokers:
            if len(self._encoded) >= 2 * len(image.topics):
                # Most of them are of topics that were deleted.
                self._encoded.clear()
            kept = self._encoded[topic.name] = (topic, image.brokers, {})
        return kept[2]


def _looked_at(
    authorizer: Authorizer, request: Request, message: Any, missing: Sequence[str]
) -> Iterator[tuple[str, KafkaError | None]]:
    """What is said of each topic that the client may not describe, or not create where that is what it asks for."""
    may_create_all = missing and authorizer.allows_filtering(
        request, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME
    )
    to_create = frozenset(() if may_create_all else missing)
    for name in dict.fromkeys(topic.name for topic in message.topics if topic.name):
        error = None
        if not authorizer.allows(request, Operation.DESCRIBE, ResourceType.TOPIC, name):
            error = denial(Operation.DESCRIBE, ResourceType.TOPIC)
        elif name in to_create and not authorizer.allows(request, Operation.CREATE, ResourceType.TOPIC, name):
            error = denial(Operation.CREATE, ResourceType.TOPIC)
        yield name, error


def _topic_shape(request: Request) -> Shape:
    return response_shape(API_KEY, request.api_version).of("topics")


def _no_topic(request: Request, name: str | None, topic_id: UUID | None, error_code: ErrorCode, operations: int) -> Any:
    return _topic_shape(request)(
        error_code=error_code,
        name=name if name is not None or request.api_version >= _FIRST_BY_ID else "",
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=operations,
    )


def _whole_topic(request: Request, topic: Topic, operations: int, view: View) -> Any:
    shape = _topic_shape(request)
    partition_shape = shape.of("partitions")
    tells_listener = request.api_version >= _FIRST_WITH_LISTENER_NOT_FOUND
    live_only = request.api_version == 0
    return shape(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=UUID(bytes=topic.id),
        is_internal=topic.is_internal,
        partitions=tuple(
            partition_shape(
                error_code=told.error_code,
                partition_index=index,
                leader_id=told.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=told.replicas,
                isr_nodes=told.isr,
                offline_replicas=told.offline_replicas,
            )
            for index, partition in enumerate(topic.partitions)
            for told in [partition_metadata(view, topic, index, tells_listener=tells_listener, live_only=live_only)]
        ),
        topic_authorized_operations=operations,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
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
    return shape(brokers=(), cluster_id=None, controller_id=-1, topics=topics, error_code=error.code)


API = Api(API_KEY, "Metadata", range(14), error_response)
