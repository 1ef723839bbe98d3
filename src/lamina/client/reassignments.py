"""Giving partitions other replicas, and which of them are on their way: what librdkafka has no call for.

Owns AlterPartitionReassignments and ListPartitionReassignments. Must not know any command.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.layout import Layout
from lamina.errors import error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.target import Controller
from lamina.planning.moves import Move, Replicas
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS

_ALTER_VERSIONS = range(2)
_LIST_VERSIONS = range(1)
_TIMEOUT = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Reassignment:
    """One that is under way."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas

    @property
    def target(self) -> Replicas:
        return tuple(one for one in self.replicas if one not in self.removing)

    @property
    def origin(self) -> Replicas:
        return tuple(one for one in self.replicas if one not in self.adding)


UnderWay = Mapping[TopicPartition, Reassignment]


def find_reassignments(cluster: Cluster) -> UnderWay:
    """All that are under way."""
    return cluster.ask(ask_reassignments)


async def ask_reassignments(peers: ClusterClient) -> UnderWay:
    told = await peers.request(
        Controller(), MessageCall(LIST_PARTITION_REASSIGNMENTS, _LIST_VERSIONS, timeout=_TIMEOUT, topics=None)
    )
    _check(told)
    return {
        (str(topic.name), int(one.partition_index)): Reassignment(
            *(tuple(map(int, ids)) for ids in (one.replicas, one.adding_replicas, one.removing_replicas))
        )
        for topic in told.topics
        for one in topic.partitions
    }


def alter_reassignments(
    cluster: Cluster, wanted: Mapping[TopicPartition, Replicas | None]
) -> dict[TopicPartition, ClientError]:
    """Begin what is wanted; ``None`` cancels. Returns why some were refused."""
    if not wanted:
        return {}
    by_topic: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for (topic, index), replicas in wanted.items():
        by_topic[topic].append({"partition_index": index, "replicas": replicas})
    call = MessageCall(
        ALTER_PARTITION_REASSIGNMENTS,
        _ALTER_VERSIONS,
        timeout=_TIMEOUT,
        allow_replication_factor_change=True,
        topics=[{"name": topic, "partitions": partitions} for topic, partitions in by_topic.items()],
    )
    told = cluster.ask(lambda peers: peers.request(Controller(), call))
    _check(told)
    return {
        (str(topic.name), int(one.partition_index)): _error(one.error_code, one.error_message)
        for topic in told.responses
        for one in topic.partitions
        if one.error_code
    }


def targets(layout: Layout, under_way: UnderWay) -> dict[TopicPartition, Replicas]:
    """The replicas that every partition is to have when all that is under way is complete."""
    return {
        key: under_way[key].target if key in under_way else placed.replicas for key, placed in layout.partitions.items()
    }


def moves_under_way(under_way: UnderWay) -> list[Move]:
    return [Move(key, one.origin, one.target) for key, one in sorted(under_way.items())]


def _check(told: Any) -> None:
    if told.error_code:
        raise _error(told.error_code, told.error_message)


def _error(code: int, message: str | None) -> ClientError:
    text = (message or str(error_from_code(code, "the controller refused"))).rstrip(".")
    return ClientError(text[0].lower() + text[1:] if text[1:2].islower() else text)
