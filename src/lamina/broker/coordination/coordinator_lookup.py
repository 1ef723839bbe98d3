"""What coordinators look up in the image: who leads which partition, theirs and those of transactions.

A group or a transactional id is coordinated by the leader of its partition of an internal topic (R74). Must not know
whether this broker is it.
"""

from lamina.broker.partitions.partition import Partition
from lamina.coordinators.records.partitioning import partition_of
from lamina.errors import CoordinatorNotAvailable, UnknownTopicOrPartition
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER


def coordinating_partition(image: Image, topic_name: str, key: str) -> int:
    """The partition that a key lives in; raises COORDINATOR_NOT_AVAILABLE while the topic is not there."""
    topic = image.topics.get(topic_name)
    if topic is None or topic.is_being_deleted:
        raise CoordinatorNotAvailable(f"{topic_name} does not exist yet")
    return partition_of(key, len(topic.partitions))


def coordinating_broker(image: Image, topic_name: str, key: str) -> int:
    """Raises COORDINATOR_NOT_AVAILABLE while no broker leads the partition."""
    index = coordinating_partition(image, topic_name, key)
    leader = image.topics[topic_name].partitions[index].leader
    if leader == NO_LEADER:
        raise CoordinatorNotAvailable(f"{topic_name}-{index} has no leader")
    return leader


def leader_of(image: Image, topic_name: str, index: int) -> int | None:
    """The broker that leads a partition, or NO_LEADER; ``None`` where there is no such partition."""
    try:
        return image.partition(topic_name, index).leader
    except UnknownTopicOrPartition:
        return None


def knows_election(image: Image, partition: Partition, leader_epoch: int) -> bool:
    """Whether the image is as new as the election of a coordinator's partition in this epoch.

    A broker takes its roles before it shows an image to all. What an older image lacks need not be gone.
    """
    topic = image.topics.get(partition.topic)
    return topic is not None and topic.partitions[partition.index].leader_epoch >= leader_epoch
