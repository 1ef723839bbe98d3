"""The metadata image: everything the cluster agrees on, at one instant.

Owns the shape of that knowledge and the look-ups that a request begins with. An image never changes; a change
makes another that shares all untouched parts, so the dictionaries in it are never written to. Must not know
where it is stored, nor what a broker does about it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from lamina.errors import UnknownTopicId, UnknownTopicOrPartition
from lamina.image.topic import Partition, Topic
from lamina.security.acls import AccessRule, ResourcePattern
from lamina.security.quotas import QuotaEntity
from lamina.security.scram_credential import ScramCredential, ScramMechanism
from lamina.settings.listeners import Listener
from lamina.topic_partition import TopicPartition

NO_CONTROLLER = -1


class ResourceType(IntEnum):
    """What configs can be set on, with the protocol's numbers."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic or a group by its name, or a broker by its id in digits; the empty name stands for all brokers."""

    type: ResourceType
    name: str


@dataclass(frozen=True, slots=True)
class Broker:
    """A live broker and, by listener name, the addresses that it advertises."""

    id: int
    endpoints: Mapping[str, Listener]
    rack: str | None = None
    epoch: int = -1
    """Which registration of this broker it is; another one after each start."""
    is_draining: bool = False
    """Whether it is about to stop: it leads nothing and is in no in-sync set that has other members."""
    offline: frozenset[TopicPartition] = frozenset()
    """Its replicas that it cannot use, because their log directory has failed or is not there."""
    features: Mapping[str, range] = field(default_factory=dict)
    """The levels of each feature that it supports."""


@dataclass(frozen=True, slots=True)
class Features:
    """The finalized features and how often they changed; clients distrust an epoch below 0."""

    levels: Mapping[str, int] = field(default_factory=dict)
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Image:
    cluster_id: str
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    topics: Mapping[str, Topic] = field(default_factory=dict)
    """All topics by name, those that are being deleted too."""
    topic_names: Mapping[bytes, str] = field(default_factory=dict)
    """Names by topic id, so that a change inside a topic copies one dictionary, not two."""
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    """What was set on each resource; a resource on which nothing is set is absent."""
    features: Features = field(default_factory=Features)
    deletions: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)
    """Ids of topics that are gone, with the brokers that were away and may still hold directories of them."""
    acls: Mapping[ResourcePattern, frozenset[AccessRule]] = field(default_factory=dict)
    """The access rules of each pattern that has any."""
    scram_credentials: Mapping[str, Mapping[ScramMechanism, ScramCredential]] = field(default_factory=dict)
    """By user; one without credentials is absent."""
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    """Values by Kafka's key; an entity without quotas is absent."""

    def topic(self, name: str) -> Topic:
        """The topic that clients know by this name; one that is being deleted is no longer known."""
        topic = self.topics.get(name)
        if topic is None or topic.is_being_deleted:
            raise UnknownTopicOrPartition(f"there is no topic {name!r}")
        return topic

    def topic_with_id(self, topic_id: bytes) -> Topic:
        name = self.topic_names.get(topic_id)
        if name is None or self.topics[name].is_being_deleted:
            raise UnknownTopicId(f"there is no topic with id {topic_id.hex()}")
        return self.topics[name]

    def partition(self, topic_name: str, index: int) -> Partition:
        partitions = self.topic(topic_name).partitions
        if not 0 <= index < len(partitions):
            raise UnknownTopicOrPartition(f"topic {topic_name!r} has {len(partitions)} partitions and no {index}")
        return partitions[index]

    def controller_on(self, listener_name: str) -> int:
        """The controller's id for clients of a listener; none while they cannot reach it there.

        librdkafka waits for a controller that it was told and not shown until it is told another one.
        """
        broker = self.brokers.get(self.controller_id)
        return self.controller_id if broker is not None and listener_name in broker.endpoints else NO_CONTROLLER

    def is_online(self, broker_id: int, topic: str, index: int) -> bool:
        """Whether a replica can serve (R44): its broker is there, does not drain, and can use its directory."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_draining and (topic, index) not in broker.offline

    def configs_of(self, resource: ConfigResource) -> Mapping[str, str]:
        return self.configs.get(resource, {})
