"""Deleting committed offsets of a group, which librdkafka's Python binding cannot ask for.

Asks the group's coordinator over a connection of its own. Must not know any command.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lamina.client.errors import ClientError, Refused
from lamina.client.own_connection import ask
from lamina.wire.versions import nested_schema, request_schema

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

OFFSET_DELETE, OFFSET_DELETE_VERSION = 47, 0


def delete_offsets(
    coordinator: tuple[str, int], group: str, partitions: Iterable[tuple[str, int]]
) -> Mapping[tuple[str, int], ClientError | None]:
    """What became of each partition; raises Refused when the group itself refuses."""
    schema = request_schema(OFFSET_DELETE, OFFSET_DELETE_VERSION)
    topic_schema = nested_schema(schema, "topics")
    partition_schema = nested_schema(topic_schema, "partitions")
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    topics = tuple(
        topic_schema(name=name, partitions=tuple(partition_schema(partition_index=number) for number in numbers))
        for name, numbers in by_topic.items()
    )
    request: Any = schema
    response = ask(coordinator, request(group_id=group, topics=topics))
    if response.error_code:
        raise Refused(_error(response.error_code))
    return {
        (topic.name, one.partition_index): Refused(_error(one.error_code)) if one.error_code else None
        for topic in response.topics
        for one in topic.partitions
    }


def _error(code: int) -> "KafkaError":
    from confluent_kafka import KafkaError

    return KafkaError(int(code))
