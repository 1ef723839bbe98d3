"""What this client knows of a cluster: its brokers, and the leaders of the topics that it asked about.

Owns how knowledge changes: by a Metadata response, which is the whole truth about brokers and about the topics in it,
or by the hint of a broker that no longer leads (KIP-951). A leader epoch never goes backwards: brokers hear of a
change one after the other, and an older word must not undo a newer one. Immutable and pure. Must not know how anything
is asked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from lamina.errors import KafkaError, LeaderNotAvailable, UnknownTopicOrPartition, error_from_code
from lamina.peer.addresses import Address
from lamina.wire.leaders import CurrentLeader, NodeEndpoint

NO_LEADER = -1
NO_CONTROLLER = -1


@dataclass(frozen=True, slots=True)
class TopicView:
    topic_id: UUID | None
    """``None`` where the broker is too old to have one."""
    leaders: Mapping[int, CurrentLeader]
    """By partition; `NO_LEADER` where there is none now."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str | None = None
    brokers: Mapping[int, Address] = field(default_factory=dict)
    controller_id: int = NO_CONTROLLER
    topics: Mapping[str, TopicView] = field(default_factory=dict)

    def leader(self, topic: str, partition: int) -> CurrentLeader:
        """Raises `UnknownTopicOrPartition` or `LeaderNotAvailable`."""
        view = self.topics.get(topic)
        if view is None or partition not in view.leaders:
            raise UnknownTopicOrPartition(f"there is no partition {topic}-{partition}")
        leader = view.leaders[partition]
        if leader.leader_id == NO_LEADER:
            raise LeaderNotAvailable(f"{topic}-{partition} has no leader now")
        return leader


def with_metadata(view: ClusterView, response: Any) -> tuple[ClusterView, dict[str, KafkaError]]:
    """The view after a Metadata response, and why topics in it are not there."""
    topics = dict(view.topics)
    errors: dict[str, KafkaError] = {}
    for told in response.topics:
        if told.error_code:
            topics.pop(told.name, None)
            errors[told.name] = error_from_code(told.error_code, f"topic {told.name} cannot be used")
        else:
            topics[told.name] = _newer(view.topics.get(told.name), told)
    brokers = {int(broker.node_id): Address(broker.host, broker.port) for broker in response.brokers}
    return ClusterView(response.cluster_id, brokers, int(response.controller_id), topics), errors


def _newer(known: TopicView | None, told: Any) -> TopicView:
    topic_id = getattr(told, "topic_id", None)
    leaders = {
        int(one.partition_index): CurrentLeader(int(one.leader_id), int(one.leader_epoch)) for one in told.partitions
    }
    # A topic that was deleted and made again starts at new epochs.
    if known is not None and known.topic_id == topic_id:
        for partition, leader in known.leaders.items():
            if partition in leaders and leader.leader_epoch > leaders[partition].leader_epoch:
                leaders[partition] = leader
    return TopicView(topic_id, leaders)


def with_leader(
    view: ClusterView, topic: str, partition: int, leader: CurrentLeader, endpoints: Iterable[NodeEndpoint]
) -> ClusterView:
    """The view after a hint; the same one where the hint is no news, or its leader's address is not known."""
    known = view.topics.get(topic)
    if known is None or partition not in known.leaders:
        return view
    brokers = {**view.brokers, **{one.node_id: Address(one.host, one.port) for one in endpoints}}
    if leader.leader_epoch <= known.leaders[partition].leader_epoch or leader.leader_id not in brokers:
        return view
    changed = replace(known, leaders={**known.leaders, partition: leader})
    return replace(view, brokers=brokers, topics={**view.topics, topic: changed})


def with_broker(view: ClusterView, broker_id: int, address: Address) -> ClusterView:
    """The view after a broker was named with its address."""
    return replace(view, brokers={**view.brokers, broker_id: address})
