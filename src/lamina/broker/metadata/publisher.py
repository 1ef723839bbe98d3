"""What this broker does when the metadata changes: (old image, new image) → effects, in order.

Owns the partitions' life on this broker: directories made, logs opened and led, settings applied, deleted
topics taken out of service and off the disk. Everything that touches names on disk runs on a thread. Must not
decide what the metadata is.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING
from uuid import UUID

from lamina.broker.partitions.partition import Partition
from lamina.errors import StorageError
from lamina.image.changes import mark_made, remove_topic
from lamina.image.diff import Changes
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import Topic, TopicPartition
from lamina.log.directory import LogDirectory
from lamina.log.flushing import Flusher
from lamina.log.partition_log import PartitionLog
from lamina.settings.broker import LAMINA_DECOMPRESSED_BATCH_MAX_BYTES
from lamina.settings.log_config import LogConfig
from lamina.settings.network import LAMINA_SLOW_REQUEST_MS
from lamina.settings.resolve import with_dynamic

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)

_TOPICS_AT_A_TIME = 8

Change = Callable[[Callable[[Image], Image]], Awaitable[Image]]
"""Makes a further metadata change that belongs to the one being published."""


class Publisher:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self.directory_of: dict[TopicPartition, LogDirectory] = {}

    async def publish(self, changes: Changes, change: Change) -> None:
        if any(resource.type is ResourceType.BROKER for resource in changes.configs):
            await self._apply_broker_configs()
        for resource in changes.configs:
            if resource.type is ResourceType.TOPIC:
                self._configure(resource.name)
        wanted = [(topic, index) for topic in changes.topics_created for index in range(len(topic.partitions))]
        wanted += [(added.topic, index) for added in changes.partitions_added for index in added.indexes]
        if wanted:
            await self._make(wanted, change)
        for changed in changes.leaders_moved:
            partition = self._node.partitions.find(changed.topic.name, changed.index)
            if partition is not None:
                partition.leader_epoch = changed.new.leader_epoch
        for topic in changes.topics_being_deleted:
            await self.delete(topic, change)
        self._node.groups.image_changed(changes)

    # Coming

    async def _make(self, wanted: list[tuple[Topic, int]], change: Change) -> None:
        """Make the partitions, and remember that they were made.

        Those of a directory that fails meanwhile go to another one. When none is left they are lost, and not
        remembered: the next start makes them.
        """
        made: list[TopicPartition] = []
        while wanted and (directories := self.emptiest_first(len(wanted))):
            placed = list(zip(wanted, directories, strict=True))
            wanted = []
            for directory in {id(directory): directory for directory in directories}.values():
                mine = [partition for partition, other in placed if other is directory]
                if await self._make_in(directory, mine):
                    made += [(topic.name, index) for topic, index in mine]
                else:
                    wanted += mine
        for topic, index in wanted:
            self.lose(topic, index, "every log directory is offline")
        if made:
            await change(lambda image: mark_made(image, self._node.id, made))

    async def _make_in(self, directory: LogDirectory, wanted: list[tuple[Topic, int]]) -> bool:
        """Make and open the new logs on a thread, then lead them. False if the disk failed before."""
        keys = [(topic.name, index) for topic, index in wanted]
        configs = {name: self._node.config_of(name) for name in {topic.name for topic, _ in wanted}}
        now_ms = self._node.now_ms()
        self.directory_of |= dict.fromkeys(keys, directory)
        try:
            await self._forget(directory, keys)
            logs = await self._node.threads.run(lambda: _make_files(directory, wanted, configs, now_ms))
        except StorageError as error:
            logger.error("%d partitions were not made: %s", len(keys), error)
            for key in keys:
                del self.directory_of[key]
            return False
        for log in logs:
            directory.adopt(log)
        try:
            await self._node.checkpoint(directory, directory.collect_recovery_points)
        except StorageError as error:
            # They may be in the checkpoint, which tells the next start where they are: no second place for them.
            logger.error("%d partitions are offline: %s", len(keys), error)
        for log, (topic, _) in zip(logs, wanted, strict=True):
            self.lead(log, topic)
            await asyncio.sleep(0)
        return True

    def lose(self, topic: Topic, index: int, reason: str) -> None:
        """Have a partition answer with a storage error: it should be here and cannot be used."""
        sentence = f"{topic.name}-{index} cannot be used: {reason}"
        logger.error("%s", sentence)
        self._node.partitions.add_lost(topic.name, index, UUID(bytes=topic.id), sentence)

    async def _forget(self, directory: LogDirectory, partitions: list[TopicPartition]) -> None:
        await self._node.checkpoint(directory, lambda: directory.forget(partitions))

    def emptiest_first(self, count: int) -> list[LogDirectory]:
        """A directory for each of so many new partitions: always the one that has fewest by then.

        Those whose disk is nearly full are left out as long as there are others. None at all when every directory
        is offline.
        """
        online = [directory for directory in self._node.directories if directory.failure is None]
        if not online:
            return []
        online = [directory for directory in online if not self._node.rooms[directory.path].is_low] or online
        held = Counter(id(directory) for directory in self.directory_of.values())
        heap = [(held[id(directory)], number) for number, directory in enumerate(online)]
        heapify(heap)
        chosen = []
        for _ in range(count):
            partitions, number = heap[0]
            heapreplace(heap, (partitions + 1, number))
            chosen.append(online[number])
        return chosen

    def lead(self, log: PartitionLog, topic: Topic) -> Partition:
        """Serve a log that is open, in the epoch that the metadata says."""
        node = self._node
        flusher = Flusher(log, node.run_flush)
        partition = Partition(
            log,
            UUID(bytes=topic.id),
            topic.partitions[log.partition].leader_epoch,
            flusher,
            node.settings[LAMINA_DECOMPRESSED_BATCH_MAX_BYTES],
            node.counters.topic(topic.name),
            node.rooms[self.directory_of[log.topic, log.partition].path],
        )
        node.partitions.add(partition)
        runtime = node.runtime_of(log.topic)
        if runtime is not None:
            runtime.lead(partition)
        return partition

    # Changing

    async def _apply_broker_configs(self) -> None:
        node = self._node
        configs = node.decided.configs_of
        node.settings = with_dynamic(
            node.settings,
            dynamic_default=configs(ConfigResource(ResourceType.BROKER, "")),
            dynamic_broker=configs(ConfigResource(ResourceType.BROKER, str(node.id))),
        )
        node.request_watch.configure(node.settings[LAMINA_SLOW_REQUEST_MS])
        if node.on_settings is not None:
            node.on_settings(node.settings)
        node.cleaner.configured()
        for number, name in enumerate({partition.topic for partition in node.partitions}, 1):
            self._configure(name)
            if number % _TOPICS_AT_A_TIME == 0:
                await asyncio.sleep(0)

    def _configure(self, name: str) -> None:
        topic = self._node.decided.topics.get(name)
        if topic is None:
            return
        config = self._node.config_of(name)
        limit_bytes = self._node.settings[LAMINA_DECOMPRESSED_BATCH_MAX_BYTES]
        for index in range(len(topic.partitions)):
            partition = self._node.partitions.find(name, index)
            if partition is not None:
                partition.configure(config, limit_bytes)
                if not config.compact:
                    self._node.cleaner.abort((name, index))

    # Going

    async def delete(self, topic: Topic, change: Change) -> None:
        """Finish a deletion that the metadata has begun: out of service, renamed, forgotten, removed later."""
        node = self._node
        delay_ms = node.config_of(topic.name).file_delete_delay_ms
        gone: list[str] = []
        left: dict[str, tuple[LogDirectory, list[TopicPartition]]] = {}
        for index in range(len(topic.partitions)):
            partition = node.partitions.remove(topic.name, index)
            directory = self.directory_of.pop((topic.name, index), None)
            node.cleaner.forget((topic.name, index))
            if partition is not None:
                partition.release_all()
            runtime = node.runtime_of(topic.name)
            if runtime is not None:
                runtime.resign(index)
            if directory is not None and directory.failure is None:
                directory.close_partition(topic.name, index)
                try:
                    renamed = await node.threads.run(
                        lambda d=directory, i=index: d.rename_deleted(topic.name, i)  # type: ignore[misc]
                    )
                except StorageError as error:
                    # As where its directory had failed before: the topic goes, and what lies there is nobody's.
                    logger.error("%s-%d is not removed from the disk: %s", topic.name, index, error)
                    continue
                gone += [] if renamed is None else [renamed]
                left.setdefault(directory.path, (directory, []))[1].append((topic.name, index))
        for directory, partitions in left.values():
            try:
                await self._forget(directory, partitions)
            except StorageError as error:
                logger.error("the checkpoints of %s still speak of %s: %s", directory.path, topic.name, error)
        node.partitions.forget_topic(UUID(bytes=topic.id))
        node.transactions.topic_deleted(topic.name)
        await change(lambda image: remove_topic(image, topic.name))
        node.encoded_topics.pop(topic.name, None)
        node.counters.forget_topic(topic.name)
        self.remove_later(gone, delay_ms)

    def remove_later(self, paths: Iterable[str], delay_ms: int) -> None:
        """Remove directories that are out of service; readers that still hold their files finish first."""
        node = self._node
        for path in paths:
            directory = next(other for other in node.directories if path.startswith(other.path + "/"))
            node.loop.call_later(
                delay_ms / 1000,
                lambda p=path, d=directory: node.threads.run_then(lambda: d.disk.remove_tree(p), _removed),  # type: ignore[misc]
            )


def _make_files(
    directory: LogDirectory, wanted: list[tuple[Topic, int]], configs: Mapping[str, LogConfig], now_ms: int
) -> list[PartitionLog]:
    directory.make_partitions((topic.name, index, topic.id) for topic, index in wanted)
    return directory.open_made(((topic.name, index, configs[topic.name]) for topic, index in wanted), now_ms)


def _removed(error: OSError | None) -> None:
    if error is not None:
        logger.warning("a deleted partition could not be removed: %s", error)
