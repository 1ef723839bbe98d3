"""OffsetDelete (key 47), version 0.

Behaviour: removes committed offsets of a group; a topic that its members read is GROUP_SUBSCRIBED_TO_TOPIC, one that
does not exist UNKNOWN_TOPIC_OR_PARTITION.
"""

from typing import Any

from lamina.broker.asked import then
from lamina.broker.node import Node
from lamina.broker.router import Api, Request
from lamina.coordinators.group_requests import OffsetDeleteRequest
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.building import response_shape

API_KEY = 47

Outcome = dict[tuple[str, int], ErrorCode]


def handle(node: Node, request: Request, message: Any) -> Any:
    known, outcome = [], {}
    for topic in message.topics:
        found = node.image.topics.get(topic.name)
        count = 0 if found is None or found.is_being_deleted else len(found.partitions)
        for one in topic.partitions:
            if 0 <= one.partition_index < count:
                known.append((topic.name, one.partition_index))
            else:
                outcome[topic.name, one.partition_index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    delete = OffsetDeleteRequest(message.group_id, tuple(known))

    def respond(errors: list[KafkaError | None]) -> Any:
        for key, error in zip(known, errors, strict=True):
            outcome[key] = ErrorCode.NONE if error is None else error.code
        return _answer(request, message, outcome)

    shard = node.groups.shard_of(message.group_id)
    return then(shard.ask(lambda machine, waiter, now: machine.delete_offsets(delete, waiter)), respond)


def _answer(request: Request, message: Any, outcome: Outcome) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    return shape(
        throttle_time=0,
        error_code=ErrorCode.NONE,
        topics=tuple(
            topic_shape(
                name=topic.name,
                partitions=tuple(
                    partition_shape(
                        partition_index=one.partition_index, error_code=outcome[topic.name, one.partition_index]
                    )
                    for one in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )


def error_answer(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(throttle_time=0, error_code=error.code, topics=())


API = Api(API_KEY, "OffsetDelete", range(1), handle, error_answer)
