"""Which replicas of partitions are offline, and how far each one is behind its leader.

The lag is asked of the replicas themselves, in Kafka's own protocol: ListOffsets as a debugging consumer is answered by
followers too, with their log end offset (R37). A broker that does not answer leaves the lag of its replicas unknown.
Must not know any command.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.errors import KafkaError
from lamina.peer.call import Call
from lamina.peer.listing import DEBUGGING_CONSUMER, LATEST, list_many, offsets_listed
from lamina.peer.routes import metadata_call
from lamina.peer.target import AnyBroker, Broker, Target
from lamina.topic_partition import TopicPartition
from lamina.wire.fetch_request import READ_UNCOMMITTED

_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Replicas:
    offline: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Of every partition that the cluster told of."""
    lags: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)
    """Offsets behind the leader, by broker: 0 for the leader itself; without those that are not known."""


class Asked(Protocol):
    """As much of a cluster's client as is needed."""

    async def request(self, to: Target, call: Call[Any]) -> Any: ...


def find_replicas(cluster: Cluster, topics: Sequence[str], silent: Collection[int] = ()) -> Replicas:
    """Nothing is known where brokers cannot be asked one by one. Those that are ``silent`` already are not asked."""
    try:
        return cluster.ask(lambda client: ask_replicas(client, topics, silent))
    except ClientError:
        return Replicas()


async def ask_replicas(client: Asked, topics: Sequence[str], silent: Collection[int] = ()) -> Replicas:
    """Partitions with one replica have no lag: nobody is asked."""
    told = await client.request(AnyBroker(), metadata_call(topics))
    partitions = {(str(topic.name), int(one.partition_index)): one for topic in told.topics for one in topic.partitions}
    alive = {int(broker.node_id) for broker in told.brokers} - set(silent)
    kept_on: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for key, one in partitions.items():
        for broker_id in set(one.replica_nodes) & alive if len(one.replica_nodes) > 1 else ():
            kept_on[broker_id].append(key)
    ends = dict(await asyncio.gather(*(_ends(client, broker_id, keys) for broker_id, keys in kept_on.items())))
    return Replicas(
        {key: tuple(one.offline_replicas) for key, one in partitions.items()},
        {key: _lags(int(one.leader_id), key, ends) for key, one in partitions.items()},
    )


async def _ends(client: Asked, broker_id: int, keys: Iterable[TopicPartition]) -> tuple[int, dict[TopicPartition, int]]:
    """Where a broker's replicas end, as far as it tells."""
    call = list_many(dict.fromkeys(keys, LATEST), READ_UNCOMMITTED, DEBUGGING_CONSUMER)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            told = await client.request(Broker(broker_id), call)
    except (KafkaError, TimeoutError):
        return broker_id, {}
    return broker_id, offsets_listed(told)


def _lags(leader: int, key: TopicPartition, ends: Mapping[int, Mapping[TopicPartition, int]]) -> dict[int, int]:
    """The leader may have moved on between the answers: nobody is ahead of it."""
    end = ends.get(leader, {}).get(key)
    if end is None:
        return {}
    return {broker_id: max(end - found[key], 0) for broker_id, found in sorted(ends.items()) if key in found}
