"""Deleting committed offsets of a group, which librdkafka's Python binding cannot ask for.

Asks the group's coordinator. Must not know any command.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Refused
from lamina.peer.call import MessageCall
from lamina.peer.target import Coordinator, CoordinatorType
from lamina.topic_partition import TopicPartition, by_topic
from lamina.wire.api_keys import OFFSET_DELETE

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


_OFFSET_DELETE_VERSIONS = range(1)


def delete_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, ClientError | None]:
    """What became of each partition; raises Refused when the group itself refuses."""
    topics = [
        {"name": name, "partitions": [{"partition_index": number} for number in numbers]}
        for name, numbers in by_topic(partitions).items()
    ]
    call = MessageCall(OFFSET_DELETE, _OFFSET_DELETE_VERSIONS, group_id=group, topics=topics)
    coordinator = Coordinator(CoordinatorType.GROUP, group)
    response = cluster.ask(lambda peers: peers.request(coordinator, call))
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
