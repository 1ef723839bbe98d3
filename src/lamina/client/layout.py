"""Where the replicas of a cluster are, who leads them, and how large they are.

Metadata and DescribeLogDirs are asked over connections of the command's own, because librdkafka does not tell sizes. A
broker that does not answer leaves the sizes of its replicas unknown. Must not know any command.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lamina.client.cluster import Cluster
from lamina.errors import KafkaError
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.target import Broker, Controller
from lamina.planning.copying import SizesByBroker
from lamina.planning.moves import Replicas
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import DESCRIBE_LOG_DIRS, METADATA

_METADATA_VERSIONS = range(7, 14)
_DESCRIBE_LOG_DIRS_VERSIONS = range(1, 5)
_ANSWER_SECONDS = 5.0
_NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Placed:
    """A partition."""

    replicas: Replicas
    """Those that are added and removed too, while it is reassigned."""
    leader: int | None
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True)
class Layout:
    racks: Mapping[int, str | None]
    """The brokers that are there."""
    partitions: Mapping[TopicPartition, Placed]

    @property
    def leaders(self) -> dict[TopicPartition, int]:
        return {key: one.leader for key, one in self.partitions.items() if one.leader is not None}


def find_layout(cluster: Cluster) -> Layout:
    """Of all topics, internal ones too."""
    return cluster.ask(ask_layout)


async def ask_layout(peers: ClusterClient) -> Layout:
    # The controller is the first to know what it has changed.
    told = await peers.request(
        Controller(),
        MessageCall(
            METADATA,
            _METADATA_VERSIONS,
            topics=None,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        ),
    )
    return Layout(
        {int(broker.node_id): broker.rack for broker in told.brokers},
        {
            (str(topic.name), int(one.partition_index)): Placed(
                tuple(map(int, one.replica_nodes)),
                None if one.leader_id == _NO_LEADER else int(one.leader_id),
                frozenset(map(int, one.isr_nodes)),
            )
            for topic in told.topics
            if not topic.error_code
            for one in topic.partitions
        },
    )


def find_sizes(cluster: Cluster, layout: Layout, keys: Collection[TopicPartition]) -> SizesByBroker:
    """Of the replicas of these partitions, as far as brokers tell."""
    return cluster.ask(lambda peers: ask_sizes(peers, layout, keys)) if keys else {}


async def ask_sizes(peers: ClusterClient, layout: Layout, keys: Collection[TopicPartition]) -> SizesByBroker:
    kept_on: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for key in keys:
        if key in layout.partitions:
            for broker_id in layout.partitions[key].replicas:
                if broker_id in layout.racks:
                    kept_on[broker_id].append(key)
    answers = await asyncio.gather(*(_sizes_on(peers, broker_id, on) for broker_id, on in kept_on.items()))
    return {place: size for answer in answers for place, size in answer.items()}


async def _sizes_on(
    peers: ClusterClient, broker_id: int, keys: Collection[TopicPartition]
) -> dict[tuple[int, TopicPartition], int]:
    indexes: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in keys:
        indexes[topic].append(index)
    asked = [{"topic": topic, "partitions": of_topic} for topic, of_topic in indexes.items()]
    call = MessageCall(DESCRIBE_LOG_DIRS, _DESCRIBE_LOG_DIRS_VERSIONS, topics=asked)
    told: Any
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            told = await peers.request(Broker(broker_id), call)
    except (KafkaError, TimeoutError):
        return {}
    return {
        (broker_id, (str(topic.name), int(one.partition_index))): int(one.partition_size)
        for directory in told.results
        for topic in directory.topics
        for one in topic.partitions
        if not one.is_future_key
    }
