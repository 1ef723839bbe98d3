"""ListPartitionReassignments (key 46), version 0.

Behaviour: the partitions that are being reassigned, as the controller has them: all of them for a null list, else those
of the ones asked for. What is not reassigned, and what is not there, is left out (R69).
Not done: the timeout is not looked at.
"""

from collections.abc import AsyncIterator
from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError
from lamina.image.image import Image
from lamina.image.topic import Topic
from lamina.wire.api_keys import LIST_PARTITION_REASSIGNMENTS as API_KEY
from lamina.wire.building import response_shape


async def handle(metadata: Metadata, clocks: Clocks, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    topics = [
        topic_shape(
            name=topic.name,
            partitions=tuple(
                partition_shape(
                    partition_index=index,
                    replicas=topic.partitions[index].replicas,
                    adding_replicas=topic.partitions[index].adding,
                    removing_replicas=topic.partitions[index].removing,
                )
                for index in indexes
            ),
        )
        async for topic, indexes in _reassigning(metadata.decided, message, Turns(clocks))
    ]
    return shape(error_code=ErrorCode.NONE, error_message=None, topics=tuple(topics))


async def _reassigning(image: Image, message: Any, turns: Turns) -> AsyncIterator[tuple[Topic, list[int]]]:
    """The topics asked for of which partitions are reassigned, with these."""
    asked: dict[str, frozenset[int]] | None = None
    if message.topics is not None:
        asked = {one.name: frozenset(one.partition_indexes) for one in message.topics}
    for name in image.topics if asked is None else asked:
        topic = image.topics.get(name)
        if topic is not None and not topic.is_being_deleted:
            indexes = [
                index
                for index, partition in enumerate(topic.partitions)
                if partition.is_reassigning and (asked is None or index in asked[name])
            ]
            if indexes:
                yield topic, indexes
        await turns.step()


def error_response(request: Request, _message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    return shape(error_code=error.code, error_message=str(error), topics=())


API = Api(API_KEY, "ListPartitionReassignments", range(1), error_response, is_for_controller=True)
