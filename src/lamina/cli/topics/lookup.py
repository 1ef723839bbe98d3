"""What a cluster tells of topics.

librdkafka asks the controller; while that one is away, any broker is asked for what all of them know. Must not know how
any of it is shown, nor who asks.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.cli.outcome import Attempts
from lamina.client.cluster import METADATA_SECONDS, REQUEST_SECONDS, Cluster
from lamina.client.errors import Refused

Partition = tuple[str, int]

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata, TopicDescription

_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_UNKNOWN = "UNKNOWN_TOPIC_OR_PART"
EARLIEST = -2
LATEST = -1
MAX_TIMESTAMP = -3
"""Places in a partition, as the protocol numbers them beside times."""


@dataclass(frozen=True, slots=True)
class Leader:
    """A broker that leads partitions, and where it listens."""

    id: int
    address: str


def all_names(cluster: Cluster) -> list[str]:
    """Internal ones too."""
    return sorted(_metadata(cluster, REQUEST_SECONDS).topics)


def describe_all(cluster: Cluster, names: Iterable[str], attempts: Attempts) -> list["TopicDescription"]:
    """Those that are there, in the order of ``names``; of the others the attempts tell."""
    from confluent_kafka import TopicCollection

    from lamina.client.errors import ClientError, Unreachable, no_topic

    wanted = list(dict.fromkeys(names))
    if not wanted:
        return []
    if cluster.is_controller_silent():
        return _describe_by_metadata(cluster, wanted, attempts)
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


def _describe_by_metadata(cluster: Cluster, names: list[str], attempts: Attempts) -> list["TopicDescription"]:
    """From what any broker tells; only the ids of topics are not in it."""
    from confluent_kafka import Node, TopicPartitionInfo
    from confluent_kafka.admin import TopicDescription

    from lamina.client.errors import no_topic

    told = _metadata(cluster, REQUEST_SECONDS)
    nodes = {id_: Node(id_, str(broker.host), int(broker.port or 0)) for id_, broker in told.brokers.items()}
    found = []
    for name in names:
        if name not in told.topics:
            attempts.fail(name, no_topic(name))
            continue
        partitions = [
            TopicPartitionInfo(
                one.id,
                nodes.get(one.leader, Node(one.leader, "", -1)),
                [nodes.get(id_, Node(id_, "", -1)) for id_ in one.replicas],
                [nodes.get(id_, Node(id_, "", -1)) for id_ in one.isrs],
            )
            for _, one in sorted(told.topics[name].partitions.items())
        ]
        found.append(TopicDescription(name, None, name in _INTERNAL, partitions))  # type: ignore[arg-type]
    return found


def current_leaders(cluster: Cluster) -> dict[Partition, Leader]:
    """Of all partitions that have one, as any broker tells now; of none where no broker answers."""
    try:
        told = _metadata(cluster, METADATA_SECONDS)
    except Refused:
        return {}
    return {
        (name, one.id): Leader(one.leader, f"{told.brokers[one.leader].host}:{told.brokers[one.leader].port}")
        for name, topic in told.topics.items()
        for one in topic.partitions.values()
        if one.leader in told.brokers
    }


def _metadata(cluster: Cluster, seconds: float) -> "ClusterMetadata":
    from confluent_kafka import KafkaException

    try:
        return cluster.admin().list_topics(timeout=seconds)
    except KafkaException as error:
        raise Refused(error.args[0]) from error


def id_text(topic: "TopicDescription") -> str | None:
    """As Kafka writes ids; librdkafka writes them in the other base64. ``None`` where it is not known."""
    return None if topic.topic_id is None else str(topic.topic_id).replace("+", "-").replace("/", "_")


def replication_factor(topic: "TopicDescription") -> int:
    """Of its first partition; -1 without any."""
    return len(topic.partitions[0].replicas) if topic.partitions else -1
