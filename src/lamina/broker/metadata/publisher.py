"""What this broker does when the metadata changes: ``apply(old image, new image)``.

This is the only path by which anything here follows from metadata: the start (from an image of nothing), a topic made,
a config set, a leader moved, a topic deleted. Owns the order of the effects, when ``Cluster.image`` becomes the
new one, and the broker's settings as they are now. Access rules come first: they hold as they are decided, and wait for
no disk. What the cluster has to know of the effects is returned, never
written from here. Must not decide what the metadata is.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from lamina.broker.metadata.applied import Applied
from lamina.broker.metadata.found_partitions import FoundPartitions, find_partitions, is_retired
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.metadata.replicas import Replica, Replicas
from lamina.broker.partitions.cluster import Cluster
from lamina.broker.partitions.follower import Follower
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.removal import Removal
from lamina.broker.partitions.truncations import Truncations
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns, in_turns
from lamina.clocks import Clocks
from lamina.errors import StorageError
from lamina.image.diff import AccessRules, Changes, PartitionChanged, changed_acls, diff
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import NO_LEADER, Topic
from lamina.image.topic import Partition as PartitionState
from lamina.log.future_logs import FutureLog, rename_discarded
from lamina.settings.broker import LAMINA_DECOMPRESSED_BATCH_MAX_BYTES
from lamina.settings.definition import SettingError
from lamina.settings.log_config import LogConfig
from lamina.settings.resolve import with_dynamic
from lamina.settings.topic_config import topic_config
from lamina.settings.values import BrokerSettings
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class MovesBetweenDirectories(Protocol):
    """The moves to other log directories, as far as metadata has to know them."""

    def resume(self, futures: Sequence[FutureLog]) -> None:
        """Go on with copies that were found at the start."""

    async def drop(self, topic: str, index: int) -> None:
        """Have nothing left of a copy of a partition that goes."""


class Publisher:
    def __init__(
        self,
        settings: BrokerSettings,
        threads: Threads,
        directories: LogDirectories,
        partitions: Partitions,
        replicas: Replicas,
        removal: Removal,
        moves: MovesBetweenDirectories,
        truncations: Truncations,
        cluster: Cluster,
        clocks: Clocks,
    ) -> None:
        self._clocks = clocks
        self._removal = removal
        self._cluster = cluster
        self._node_id = cluster.node_id
        self._threads = threads
        self._directories = directories
        self._partitions = partitions
        self._replicas = replicas
        self._listeners: list[MetadataListener] = []
        self.settings = settings
        """The broker's settings as they are now, with what was set while it runs."""
        self._moves = moves
        self.truncations = truncations
        """Those of followers: a log is whole before this broker leads it."""
        self.decided: Callable[[], Image] | None = None
        """The metadata as it is stored, as far as this broker knows it. Set later: who decides has the publisher."""
        self._rules: AccessRules = {}
        """The access rules that hold."""

    @property
    def image(self) -> Image:
        """What clients are told."""
        return self._cluster.image

    def add_listener(self, listener: MetadataListener) -> None:
        self._listeners.append(listener)

    def obey(self) -> None:
        """Have the access rules hold that are decided now."""
        if self.decided is not None:
            self._obey(self.decided())

    def _obey(self, decided: Image) -> None:
        before, self._rules = self._rules, decided.acls
        changed = changed_acls(before, self._rules)
        if changed:
            for listener in self._listeners:
                listener.rules_changed(changed, self._rules)

    async def apply(self, old: Image | None, new: Image, opened: Callable[[int, int], None] | None = None) -> Applied:
        """Do what follows from a change; without an old image, that is the start.

        ``opened`` is told how many of how many logs are open, while the broker starts.
        """
        self._obey(new if self.decided is None else self.decided())
        changes = await self._threads.run(lambda: diff(Image(new.cluster_id) if old is None else old, new))
        turns = Turns(self._clocks)
        self._apply_broker_configs(changes, new)
        changed = [(change.topic, change.index) for change in changes.partitions_changed]
        comes = self._coming(changes)
        here = [(change.topic.name, change.index) for change in changes.partitions_changed if self._is_here(change)]
        retired = [(change.topic, change.index) for change in changes.partitions_changed if self._is_retired(change)]
        if not comes:
            self._cluster.image = new
        await self._configure_changed(changes, new, turns)
        found = await self._find(new) if old is None else FoundPartitions()
        removed = await self._delete_found(found)
        # Before others come under their names.
        recorded, left = await self._delete_gone(changes, new)
        names = frozenset(topic.name for topic in changes.topics_gone)
        anew = names & {topic.name for topic in changes.topics_created}
        self._tell_gone(anew)
        made, lost = await self._bring(comes, new, found, opened)
        await self._take_roles(
            self._hosted(new) if self._node_id in changes.brokers else [*changed, *comes], new, turns
        )
        deleted = [
            topic for topic in (*changes.topics_created, *changes.topics_being_deleted) if topic.is_being_deleted
        ]
        left += await self._delete(deleted, new)
        if retired:
            removed += await self._replicas.retire(retired, lambda name: self.config_of(new, name), self._going)
        self._cluster.image = new
        self._tell_gone(names - anew)
        await self._tell_applied(changes, found)
        return Applied(
            made=[*made, *here],
            lost=lost,
            deleted=[*deleted, *recorded],
            unknown=found.unknown,
            deleted_before=self._gone_before(new, old),
            removed=removed,
            left=left,
        )

    def _coming(self, changes: Changes) -> list[Replica]:
        """What may have to be opened or made here."""
        created = [(topic, index) for topic in changes.topics_created for index in range(len(topic.partitions))]
        added = [(added.topic, index) for added in changes.partitions_added for index in added.indexes]
        assigned = [
            (change.topic, change.index) for change in changes.partitions_changed if self._is_to_be_made(change)
        ]
        return created + added + assigned

    async def _tell_applied(self, changes: Changes, found: FoundPartitions) -> None:
        """Whoever goes by the image that this broker serves: it is the new one now."""
        if found.futures:
            self._moves.resume(found.futures)
        if changes.brokers:
            async for partition in in_turns(list(self._partitions), self._clocks):
                partition.brokers_changed()
        for listener in self._listeners:
            listener.image_changed(changes)

    async def make_waiting(self, image: Image) -> Applied:
        """Make the replicas that could not be opened for now when the image came."""
        made = await self._replicas.make_waiting(lambda topic: self.config_of(image, topic), self.settings)
        await self._take_roles([(image.topics[name], index) for name, index in made], image, Turns(self._clocks))
        return Applied(made=made)

    # Settings

    def config_of(self, image: Image, topic: str) -> LogConfig:
        return topic_config(self.settings, image.configs_of(ConfigResource(ResourceType.TOPIC, topic)))

    def _apply_broker_configs(self, changes: Changes, image: Image) -> None:
        if not any(resource.type is ResourceType.BROKER for resource in changes.configs):
            return
        try:
            self.settings = settings_in(image, self.settings, self._node_id)
        except SettingError as error:
            # Whoever took it compared it with another broker's own settings.
            logger.error("dynamic configs conflict with this broker's own settings and are ignored: %s", error)
            return
        for listener in self._listeners:
            listener.settings_changed(self.settings)

    async def _configure_changed(self, changes: Changes, image: Image, turns: Turns) -> None:
        """Topics whose own configs changed, and all of them where their defaults did."""
        for resource in changes.configs:
            if resource.type is ResourceType.TOPIC:
                await self._configure(image, resource.name, turns)
        if any(resource.type is ResourceType.BROKER for resource in changes.configs):
            for name in {partition.topic for partition in self._partitions}:
                await self._configure(image, name, turns)

    async def _configure(self, image: Image, name: str, turns: Turns) -> None:
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
            await turns.step()

    # Coming

    async def _find(self, image: Image) -> FoundPartitions:
        """What is on the disks when the broker starts; what waits there for its removal goes."""
        found = await self._threads.run(lambda: find_partitions(self._directories, image, self._node_id))
        for directory in self._directories.online:
            try:
                left = await self._threads.run(directory.deleted_directories)
                self._removal.remove_later(directory, left, 0)
            except OSError as error:
                directory.fail(error)
        for future in found.unneeded_futures:
            try:
                left = [await self._threads.run(partial(rename_discarded, future))]
                self._removal.remove_later(future.directory, left, 0)
            except StorageError as error:
                logger.error("%s stays: %s", future.path, error)
        return found

    async def _delete_found(self, found: FoundPartitions) -> list[TopicPartition]:
        """Remove what was deleted, or given to other brokers, while this broker was away.

        A topic counts as deleted only if the deletion of its id is recorded. Returns the replicas that others keep now
        and of which nothing is left here.
        """
        gone = list(found.nowhere)
        every = [one for some in found.deleted.values() for one in some] + found.retired
        for directory in self._directories.online:
            keys = [key for place, key in every if place is directory]
            if keys and await self._replicas.delete_directories(directory, keys):
                gone += [key for place, key in found.retired if place is directory]
        return gone

    def _gone_before(self, image: Image, old: Image | None) -> list[bytes]:
        """Deletions that wait for this broker, of which it has nothing now; a failed directory may have something."""
        if old is not None or not self._directories.are_all_online:
            return []
        return [topic_id for topic_id, brokers in image.deletions.items() if self._node_id in brokers]

    async def _bring(
        self,
        replicas: list[Replica],
        image: Image,
        found: FoundPartitions,
        opened: Callable[[int, int], None] | None,
    ) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Open replicas that are on a disk and make those that never were. Returns what was made, and what is lost.

        A replica that is on a disk and not in ``made_on`` was made just before this broker stopped: it is reported now.
        """

        def config_of(topic: str) -> LogConfig:
            return self.config_of(image, topic)

        mine = [one for one in replicas if self._node_id in _state(one).replicas]
        going = [(topic, index) for topic, index in mine if topic.is_being_deleted]
        for topic, index in going:
            if (topic.name, index) in found.places:
                self._directories.of[topic.name, index] = found.places[topic.name, index]
        mine = [(topic, index) for topic, index in mine if not topic.is_being_deleted]
        left = await self._replicas.open(found, mine, config_of, self.settings, opened) if found.places else mine
        untold = [one for one in mine if self._node_id not in _state(one).made_on]
        lost = [one for one in left if self._node_id in _state(one).made_on]
        if not self._directories.are_all_online:
            self._take_unseen_offline(lost)
            lost = []
        self._take_lost_offline(lost)
        wanted = [one for one in left if self._node_id not in _state(one).made_on]
        await self._replicas.make(wanted, config_of, self.settings)
        made = [(topic.name, index) for topic, index in untold if self._partitions.find(topic.name, index) is not None]
        return made, [(topic.name, index) for topic, index in lost]

    def _take_unseen_offline(self, unseen: list[Replica]) -> None:
        """They may be in a directory that failed: as long as nobody can look there, they are not lost (R66)."""
        for topic, index in unseen:
            self._replicas.take_offline(topic, index, "it may be in a log directory that is offline", is_told=True)
        if unseen:
            logger.warning("%d replicas are offline: they may be in log directories that are offline", len(unseen))

    def _take_lost_offline(self, lost: list[Replica]) -> None:
        """Of replicas that others have, one line tells: they are copied as soon as the controller knows of the loss."""
        copied = 0
        for topic, index in lost:
            if any(broker != self._node_id for broker in topic.partitions[index].isr):
                self._replicas.take_offline(topic, index, "it has no directory and waits to be copied", is_told=True)
                copied += 1
            else:
                self._replicas.take_offline(topic, index, "it has no directory: is a disk not mounted?")
        if copied:
            what = "1 replica has no directory: it is copied from its leader"
            if copied > 1:
                what = f"{copied} replicas have no directory: they are copied from their leaders"
            logger.warning("%s", what)

    def _is_to_be_made(self, change: PartitionChanged) -> bool:
        """Whether this broker is to keep a replica from now on, or to make one again that it had lost.

        One that it has made and deleted since is lost, until the controller knows that.
        """
        if self._node_id not in change.new.replicas or change.topic.is_being_deleted:
            return False
        if not self._partitions.is_known(change.topic.name, change.index):
            return True
        is_unmade = self._node_id in change.old.made_on and self._node_id not in change.new.made_on
        return is_unmade and not self._is_here(change)

    def _is_retired(self, change: PartitionChanged) -> bool:
        """Whether others keep from now on what this broker has."""
        is_here = self._partitions.is_known(change.topic.name, change.index)
        return is_here and is_retired(change.new, self._node_id) and not change.topic.is_being_deleted

    def _is_here(self, change: PartitionChanged) -> bool:
        """Whether a replica that was made is still here, though the metadata does not say so any more."""
        if self._node_id not in change.old.made_on or self._node_id in change.new.made_on:
            return False
        return self._partitions.find(change.topic.name, change.index) is not None

    def _hosted(self, image: Image) -> list[Replica]:
        return [(image.topics[one.topic], one.index) for one in self._partitions if one.topic in image.topics]

    # Roles

    async def _take_roles(self, changed: list[Replica], image: Image, turns: Turns) -> None:
        """A broker leads and follows what the metadata says.

        An image that does not know its present registration gives it no role: only what others lead is given up.
        """
        is_registered = self._cluster.is_registered_in(image)
        for topic, index in changed:
            partition, state = self._partitions.find(topic.name, index), topic.partitions[index]
            if partition is not None and not is_registered:
                self._give_up(partition, state)
            elif partition is not None and state.leader == self._node_id:
                if await self._is_whole(partition):
                    self._lead(partition, state)
            elif partition is not None:
                self._follow(partition, state)
            await turns.step()

    def _give_up(self, partition: Partition, state: PartitionState) -> None:
        if partition.leader is not None and partition.leader.epoch < state.leader_epoch:
            partition.resign()
            for listener in self._listeners:
                listener.partition_resigned(partition)

    async def _is_whole(self, partition: Partition) -> bool:
        """Finish what this broker truncates as a follower: a leader's epoch begins at the end that is left (R20).

        Where that cannot be done nothing can be appended: the replica goes offline, so that another one is elected.
        """
        if partition.leader is not None or not self.truncations.is_pending(partition):
            return True
        partition.resign()
        try:
            await self.truncations.finish(partition)
        except StorageError as error:
            logger.error("%s cannot be led: %s", partition.log.name, error)
            self._partitions.take_offline(partition, str(error))
            return False
        return True

    def _lead(self, partition: Partition, state: PartitionState) -> None:
        is_new = partition.leader is None or partition.leader.epoch != state.leader_epoch
        partition.lead(state)
        if is_new:
            for listener in self._listeners:
                listener.partition_led(partition)

    def _follow(self, partition: Partition, state: PartitionState) -> None:
        has_led, followed = partition.leader is not None, partition.follower
        if state.leader == NO_LEADER or self._node_id not in state.replicas:
            partition.resign()
        elif followed is None or (followed.leader_id, followed.epoch) != (state.leader, state.leader_epoch):
            partition.follow(Follower(state.leader, state.leader_epoch))
        for listener in self._listeners:
            if has_led:
                listener.partition_resigned(partition)
            if partition.follower is not followed:
                listener.partition_followed(partition)

    # Going

    async def _delete_gone(
        self, changes: Changes, image: Image
    ) -> tuple[list[Topic], list[tuple[TopicPartition, bytes]]]:
        """Delete topics that are in the image no more. Returns them, and what failed directories may have of them."""
        gone = [topic for topic in changes.topics_deleted if self._replicas.has_any(topic)]
        recorded = [topic for topic in gone if topic.id in image.deletions]
        left = await self._delete(recorded, image)
        if len(recorded) < len(gone):
            # The metadata is that of an old copy of the cluster's store.
            await self._replicas.set_aside([topic for topic in gone if topic not in recorded], self._going)
        return recorded, left

    async def _delete(self, topics: list[Topic], image: Image) -> list[tuple[TopicPartition, bytes]]:
        """Returns what failed directories may still have of them."""
        if not topics:
            return []
        return await self._replicas.delete(topics, lambda name: self.config_of(image, name), self._going)

    def _tell_gone(self, topics: frozenset[str]) -> None:
        if topics:
            for listener in self._listeners:
                listener.topics_gone(topics)

    async def _going(self, topic: str, index: int) -> None:
        await self._moves.drop(topic, index)
        await self.truncations.wait_for(topic, index)
        for listener in self._listeners:
            listener.partition_removed(topic, index)


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
