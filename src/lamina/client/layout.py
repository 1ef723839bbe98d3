"""Where the replicas of a cluster are, who leads them, and how large they are.

Metadata and DescribeLogDirs are asked over connections of the command's own, because librdkafka does not tell sizes. A
broker that does not answer leaves the sizes of its replicas unknown. Must not know any command.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.log_directories import ask_directories
from lamina.errors import KafkaError
from lamina.peer.cluster import ClusterClient
from lamina.peer.routes import metadata_call
from lamina.peer.target import Controller
from lamina.peer.view import NO_LEADER
from lamina.planning.copying import SizesByBroker
from lamina.planning.moves import Replicas
from lamina.topic_partition import TopicPartition

_ANSWER_SECONDS = 5.0


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
    told = await peers.request(Controller(), metadata_call(None))
    return Layout(
        {int(broker.node_id): broker.rack for broker in told.brokers},
        {
            (str(topic.name), int(one.partition_index)): Placed(
                tuple(map(int, one.replica_nodes)),
                None if one.leader_id == NO_LEADER else int(one.leader_id),
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
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            described = await ask_directories(peers, broker_id, keys)
    except (ClientError, KafkaError, TimeoutError):
        return {}
    return {(broker_id, key): log.size_bytes for key, log in described.logs.items()}
