"""What becomes of each partition that a request about committed offsets names.

Owns which topics and partitions exist for such a request, and the part of its answer that tells of each. Must not know
what is done with the offsets.
"""

from typing import Any
from uuid import UUID

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.errors import ErrorCode, UnknownTopicId
from lamina.wire.building import response_shape

TopicKey = str | UUID | None
"""A topic as a request names it: by its name, or by its id from version 10 of OffsetCommit and OffsetFetch."""

Outcome = dict[tuple[TopicKey, int], ErrorCode]


def topic_key(topic: Any) -> TopicKey:
    key: TopicKey = topic.topic_id if hasattr(topic, "topic_id") else topic.name
    return key


def topic_name(metadata: Metadata, key: TopicKey) -> str | None:
    """The name of the topic, which need not exist; ``None`` where no topic has the id."""
    if isinstance(key, str):
        return key
    try:
        return None if key is None else metadata.image.topic_with_id(key.bytes).name
    except UnknownTopicId:
        return None


def partition_count(metadata: Metadata, topic: str) -> int:
    """0 where there is no such topic, or none any more."""
    found = metadata.image.topics.get(topic)
    return 0 if found is None or found.is_being_deleted else len(found.partitions)


def response_with(api_key: int, request: Request, message: Any, outcome: Outcome, **more: Any) -> Any:
    """The answer, with an outcome for each partition that was named and whatever else it says."""
    shape = response_shape(api_key, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    return shape(
        topics=tuple(
            topic_shape(
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(
                    partition_shape(
                        partition_index=one.partition_index, error_code=outcome[topic_key(topic), one.partition_index]
                    )
                    for one in topic.partitions
                ),
            )
            for topic in message.topics
        ),
        **more,
    )


async def response_in_turns(
    api_key: int, request: Request, message: Any, outcome: Outcome, turns: Turns, **more: Any
) -> Any:
    """As above, for many partitions."""
    shape = response_shape(api_key, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    topics = []
    for topic in message.topics:
        key = topic_key(topic)
        partitions = []
        for one in topic.partitions:
            index = one.partition_index
            partitions.append(partition_shape(partition_index=index, error_code=outcome[key, index]))
            await turns.step()
        topics.append(
            topic_shape(
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(partitions),
            )
        )
        await turns.step()
    return shape(topics=tuple(topics), **more)


def one_outcome(message: Any, code: ErrorCode) -> Outcome:
    """The same for every partition."""
    return {(topic_key(topic), one.partition_index): code for topic in message.topics for one in topic.partitions}
