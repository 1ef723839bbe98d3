"""What members of the classic protocol write into protocol type ``consumer``, as far as a consumer group needs it.

The bytes are read and written by whoever implements :class:`EmbeddedProtocol`. Owns the way between topic names, which
those members speak of, and topic ids. Must not know groups.
"""

from collections.abc import Mapping
from typing import Protocol

from lamina.coordinators.records.consumer_protocol import Assignment, Subscription
from lamina.coordinators.records.group_records import TopicIdPartitions
from lamina.coordinators.topic_partitions import gathered
from lamina.image.image import Image

CONSUMER_PROTOCOL_TYPE = "consumer"
NamePartitions = Mapping[str, tuple[int, ...]]


class EmbeddedProtocol(Protocol):
    """Reading raises a KafkaError for what cannot be read."""

    def read_subscription(self, data: bytes) -> Subscription: ...

    def read_assignment(self, data: bytes) -> Assignment: ...

    def write_assignment(self, partitions: NamePartitions, version: int) -> bytes: ...


def by_id(partitions: NamePartitions, image: Image) -> TopicIdPartitions:
    """Topics that do not exist any more are left out."""
    return gathered(
        (image.topics[name].id, partition)
        for name, some in partitions.items()
        if name in image.topics
        for partition in some
    )


def by_name(partitions: TopicIdPartitions, image: Image) -> NamePartitions:
    names = image.topic_names
    return {names[topic_id]: some for topic_id, some in partitions.items() if topic_id in names}
