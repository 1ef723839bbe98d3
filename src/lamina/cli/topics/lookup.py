"""What a cluster tells of topics, and where their partitions begin and end.

Must not know how any of it is shown, nor who asks.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lamina.cli.outcome import Attempts
from lamina.client.cluster import Cluster

Partition = tuple[str, int]

if TYPE_CHECKING:
    from confluent_kafka.admin import ListOffsetsResultInfo, TopicDescription

_UNKNOWN = "UNKNOWN_TOPIC_OR_PART"
EARLIEST = -2
LATEST = -1
MAX_TIMESTAMP = -3
"""Places in a partition, as the protocol numbers them beside times."""


def all_names(cluster: Cluster) -> list[str]:
    """Internal ones too."""
    from confluent_kafka import KafkaException

    from lamina.client.cluster import REQUEST_SECONDS
    from lamina.client.errors import Refused

    try:
        return sorted(cluster.admin().list_topics(timeout=REQUEST_SECONDS).topics)
    except KafkaException as error:
        raise Refused(error.args[0]) from error


def describe_all(cluster: Cluster, names: Iterable[str], attempts: Attempts) -> list["TopicDescription"]:
    """Those that are there, in the order of ``names``; of the others the attempts tell."""
    from confluent_kafka import TopicCollection

    from lamina.client.errors import ClientError, Refused, Unreachable, no_topic

    wanted = list(dict.fromkeys(names))
    if not wanted:
        return []
    futures = cluster.admin().describe_topics(TopicCollection(wanted))
    found = []
    for name, future in futures.items():
        try:
            found.append(cluster.answer(future))
        except Unreachable:
            raise
        except ClientError as error:
            is_unknown = isinstance(error, Refused) and error.name == _UNKNOWN
            attempts.fail(name, no_topic(name) if is_unknown else error)
    return found


def id_text(topic: "TopicDescription") -> str:
    """As Kafka writes ids; librdkafka writes them in the other base64."""
    return str(topic.topic_id).replace("+", "-").replace("/", "_")


def replication_factor(topic: "TopicDescription") -> int:
    """Of its first partition; -1 without any."""
    return len(topic.partitions[0].replicas) if topic.partitions else -1


def find_offsets(
    cluster: Cluster, topic: "TopicDescription", at: int, attempts: Attempts
) -> Mapping[int, "ListOffsetsResultInfo"]:
    """By partition, at a time or at one of the three places.

    A partition without a leader cannot tell; of one that fails the attempts tell.
    """
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    led = [partition.id for partition in topic.partitions if partition.leader is not None and partition.leader.id >= 0]
    if not led:
        return {}
    place = OffsetSpec(at)  # type: ignore[abstract]  # it makes one of its subclasses
    futures = cluster.admin().list_offsets({TopicPartition(topic.name, number): place for number in led})
    names = {f"{one.topic}-{one.partition}": one.partition for one in futures}
    asked = ((f"{one.topic}-{one.partition}", future) for one, future in futures.items())
    return {names[name]: found for name, found in attempts.answers(asked)}


def offsets_at(cluster: Cluster, partitions: Iterable[Partition], at: int, attempts: Attempts) -> dict[Partition, int]:
    """At a time or at one of the places; -1 where no record is that late. Without what could not be asked."""
    wanted = set(partitions)
    topics = describe_all(cluster, sorted({topic for topic, _ in wanted}), attempts)
    return {
        (topic.name, number): found.offset
        for topic in topics
        for number, found in find_offsets(cluster, topic, at, attempts).items()
        if (topic.name, number) in wanted
    }


def latest_offsets(cluster: Cluster, partitions: Iterable[Partition], attempts: Attempts) -> dict[Partition, int]:
    return offsets_at(cluster, partitions, LATEST, attempts)
