"""What this broker does when the metadata changes: ``apply(old image, new image)``.

This is the only path by which anything here follows from metadata: the start (from an image of nothing), a topic made,
a config set, a leader moved, a topic deleted. Owns the image and the settings that this broker serves, and the order of
the effects. What the cluster has to know of them is returned, never written from here. Must not decide what the
metadata is.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lamina.broker.metadata.found_partitions import FoundPartitions, find_partitions
from lamina.broker.metadata.replicas import Replica, Replicas
from lamina.broker.partitions.leader import Leader
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.removal import Removal
from lamina.broker.threads import Threads
from lamina.image.changes import mark_made, remove_topic
from lamina.image.diff import Changes, diff
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import Partition as PartitionState
from lamina.image.topic import Topic
from lamina.settings.broker import LAMINA_DECOMPRESSED_BATCH_MAX_BYTES
from lamina.settings.log_config import LogConfig
from lamina.settings.resolve import with_dynamic
from lamina.settings.topic_config import topic_config
from lamina.settings.values import BrokerSettings
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_TOPICS_AT_A_TIME = 8


class MetadataListener:
    """Is told when the metadata changes, and acts on it; each method is a turn of the loop."""

    def settings_changed(self, settings: BrokerSettings) -> None:
        """The broker's settings are others from now on."""

    def partition_led(self, partition: Partition) -> None:
        """This broker leads the partition from now on, or leads it in another epoch."""

    def partition_resigned(self, partition: Partition) -> None:
        """This broker does not lead the partition any more."""

    def partition_configured(self, partition: Partition) -> None:
        """The topic's settings are others from now on."""

    def partition_removed(self, topic: str, index: int) -> None:
        """The partition is out of service for good."""

    def image_changed(self, changes: Changes) -> None:
        """Everything else has been done."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What the cluster's metadata has to be told after a change was applied here."""

    made: Sequence[TopicPartition] = ()
    """Replicas that this broker has made: from now on a missing one is a loss."""
    deleted: Sequence[str] = ()
    """Topics that are out of service and off the disk, so that their names are free."""
    unknown: Sequence[str] = field(default_factory=list)
    """Partition directories that the metadata does not know."""

    def reported(self, image: Image, node_id: int) -> Image:
        """The image in which this stands."""
        if self.made:
            image = mark_made(image, node_id, self.made)
        return remove_topic(image, *self.deleted) if self.deleted else image


class Publisher:
    def __init__(
        self,
        node_id: int,
        settings: BrokerSettings,
        threads: Threads,
        directories: LogDirectories,
        partitions: Partitions,
        replicas: Replicas,
        removal: Removal,
    ) -> None:
        self._removal = removal
        self._node_id = node_id
        self._threads = threads
        self._directories = directories
        self._partitions = partitions
        self._replicas = replicas
        self._listeners: list[MetadataListener] = []
        self.settings = settings
        """The broker's settings as they are now, with what was set while it runs."""
        self.image = Image("")
        """What clients are told: a topic is in it once it can be written to, and no longer when it is to go."""

    def add_listener(self, listener: MetadataListener) -> None:
        self._listeners.append(listener)

    async def apply(self, old: Image | None, new: Image, opened: Callable[[int, int], None] | None = None) -> Applied:
        """Do what follows from a change; without an old image, that is the start.

        ``opened`` is told how many of how many logs are open, while the broker starts.
        """
        changes = diff(Image(new.cluster_id) if old is None else old, new)
        self._apply_broker_configs(changes, new)
        comes = [(topic, index) for topic in changes.topics_created for index in range(len(topic.partitions))]
        comes += [(added.topic, index) for added in changes.partitions_added for index in added.indexes]
        if not comes:
            self.image = new
        for resource in changes.configs:
            if resource.type is ResourceType.TOPIC:
                self._configure(new, resource.name)
        if any(resource.type is ResourceType.BROKER for resource in changes.configs):
            await self._configure_all(new)
        found = await self._find(new) if old is None else FoundPartitions()
        made = await self._bring(comes, new, found, opened)
        changed = [(change.topic, change.index) for change in changes.partitions_changed]
        self._take_roles([*changed, *comes], new)
        deleted = [
            topic for topic in (*changes.topics_created, *changes.topics_being_deleted) if topic.is_being_deleted
        ]
        if deleted:
            await self._delete(deleted, new)
        self.image = new
        for listener in self._listeners:
            listener.image_changed(changes)
        return Applied(made, [topic.name for topic in deleted], found.unknown)

    async def make_waiting(self, image: Image) -> Applied:
        """Make the replicas that could not be opened for now when the image came."""
        made = await self._replicas.make_waiting(lambda topic: self.config_of(image, topic), self.settings)
        self._take_roles([(image.topics[name], index) for name, index in made], image)
        return Applied(made)

    # Settings

    def config_of(self, image: Image, topic: str) -> LogConfig:
        return topic_config(self.settings, image.configs_of(ConfigResource(ResourceType.TOPIC, topic)))

    def _apply_broker_configs(self, changes: Changes, image: Image) -> None:
        if not any(resource.type is ResourceType.BROKER for resource in changes.configs):
            return
        self.settings = settings_in(image, self.settings, self._node_id)
        for listener in self._listeners:
            listener.settings_changed(self.settings)

    async def _configure_all(self, image: Image) -> None:
        for number, name in enumerate({partition.topic for partition in self._partitions}, 1):
            self._configure(image, name)
            if number % _TOPICS_AT_A_TIME == 0:
                await asyncio.sleep(0)

    def _configure(self, image: Image, name: str) -> None:
        topic = image.topics.get(name)
        if topic is None:
            return
        config = self.config_of(image, name)
        limit_bytes = self.settings[LAMINA_DECOMPRESSED_BATCH_MAX_BYTES]
        for index in range(len(topic.partitions)):
            partition = self._partitions.find(name, index)
            if partition is not None:
                partition.configure(config, limit_bytes)
                for listener in self._listeners:
                    listener.partition_configured(partition)

    # Coming

    async def _find(self, image: Image) -> FoundPartitions:
        """What is on the disks when the broker starts; what waits there for its removal goes."""
        found = await self._threads.run(lambda: find_partitions(self._directories, image))
        for directory in self._directories.online:
            try:
                left = await self._threads.run(directory.deleted_directories)
                self._removal.remove_later(directory, left, 0)
            except OSError as error:
                directory.fail(error)
        return found

    async def _bring(
        self,
        replicas: list[Replica],
        image: Image,
        found: FoundPartitions,
        opened: Callable[[int, int], None] | None,
    ) -> list[TopicPartition]:
        """Open replicas that are on a disk and make those that never were. Returns what was made."""

        def config_of(topic: str) -> LogConfig:
            return self.config_of(image, topic)

        mine = [one for one in replicas if self._node_id in _state(one).replicas]
        going = [(topic, index) for topic, index in mine if topic.is_being_deleted]
        for topic, index in going:
            if (topic.name, index) in found.places:
                self._directories.of[topic.name, index] = found.places[topic.name, index]
        mine = [(topic, index) for topic, index in mine if not topic.is_being_deleted]
        if found.places:
            mine = await self._replicas.open(found, mine, config_of, self.settings, opened)
        wanted = []
        for topic, index in mine:
            if self._node_id in topic.partitions[index].made_on:
                self._replicas.take_offline(topic, index, "it has no directory: is a disk not mounted?")
            else:
                wanted.append((topic, index))
        return await self._replicas.make(wanted, config_of, self.settings)

    # Roles

    def _take_roles(self, changed: list[Replica], image: Image) -> None:
        """A broker leads what the metadata says, once it is registered."""
        if self._node_id not in image.brokers:
            return
        for topic, index in changed:
            partition, state = self._partitions.find(topic.name, index), topic.partitions[index]
            if partition is None:
                continue
            if state.leader != self._node_id:
                self._resign(partition)
                continue
            leader = Leader(state.leader_epoch, state.replicas, frozenset(state.isr))
            is_new = partition.leader is None or partition.leader.epoch != leader.epoch
            partition.lead(leader)
            if is_new:
                for listener in self._listeners:
                    listener.partition_led(partition)

    def _resign(self, partition: Partition) -> None:
        if partition.leader is None:
            return
        partition.resign()
        for listener in self._listeners:
            listener.partition_resigned(partition)

    # Going

    async def _delete(self, topics: list[Topic], image: Image) -> None:
        def going(topic: str, index: int) -> None:
            for listener in self._listeners:
                listener.partition_removed(topic, index)

        await self._replicas.delete(topics, lambda name: self.config_of(image, name), going)


def settings_in(image: Image, settings: BrokerSettings, node_id: int) -> BrokerSettings:
    """A broker's settings with what the metadata says of all brokers and of this one."""
    return with_dynamic(
        settings,
        dynamic_default=image.configs_of(ConfigResource(ResourceType.BROKER, "")),
        dynamic_broker=image.configs_of(ConfigResource(ResourceType.BROKER, str(node_id))),
    )


def _state(replica: Replica) -> PartitionState:
    topic, index = replica
    return topic.partitions[index]
