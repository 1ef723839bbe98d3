"""What becomes of each partition that a request about committed offsets names.

Owns which partitions exist for such a request, and the part of its answer that tells of each. Must not know what is
done with the offsets.
"""

from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode
from lamina.wire.building import response_shape

Outcome = dict[tuple[str, int], ErrorCode]


def partition_count(metadata: Metadata, topic: str) -> int:
    """0 where there is no such topic, or none any more."""
    found = metadata.image.topics.get(topic)
    return 0 if found is None or found.is_being_deleted else len(found.partitions)


def answer_with(api_key: int, request: Request, message: Any, outcome: Outcome, **more: Any) -> Any:
    """The answer, with an outcome for each partition that was named and whatever else it says."""
    shape = response_shape(api_key, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    return shape(
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
        **more,
    )
