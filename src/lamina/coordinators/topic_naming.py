"""Partitions of topics by name, as members of the classic protocol speak of them, and by id, as consumer groups do.

Must not know groups.
"""

from collections.abc import Mapping

from lamina.coordinators.records.group_records import TopicIdPartitions
from lamina.coordinators.topic_partitions import gathered
from lamina.image.image import Image

CONSUMER_PROTOCOL_TYPE = "consumer"
NamePartitions = Mapping[str, tuple[int, ...]]


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
