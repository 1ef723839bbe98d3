"""From settings to a node that may serve: directories, store, image, logs, in this order.

Owns what happens once, at start: logs recovered, interrupted creations and deletions finished, the new leader
epochs made durable. Must not listen.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.node import Node
from lamina.broker.threads import Threads
from lamina.errors import StorageError
from lamina.image.changes import begin_leader_epochs, mark_made, remove_topic
from lamina.image.features import finalize_new
from lamina.image.image import ConfigResource, ResourceType
from lamina.image.topic import Topic, TopicPartition
from lamina.log.directory import LogDirectory
from lamina.log.names import partition_directory
from lamina.settings.broker import (
    NODE_ID,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
    PRODUCER_ID_EXPIRATION_MS,
)
from lamina.settings.definition import SettingError
from lamina.settings.listeners import Listener
from lamina.settings.resolve import with_dynamic
from lamina.settings.values import BrokerSettings
from lamina.storage import StartError, Storage, open_storage
from lamina.store.metadata import MetadataStore
from lamina.store.producer_ids import ProducerIds

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Opened:
    """A node with its logs open, and what a person should be told of it."""

    node: Node
    storage: Storage
    unknown: list[str] = field(default_factory=list)
    """Partition directories that the metadata does not know; they are left alone."""
    open_files_limit: int = 0
    admin: tuple[Listener, ...] = ()
    """Where the admin listener is, with the ports that it got."""


def open_node(
    loop: asyncio.AbstractEventLoop, settings: BrokerSettings, progress: Callable[[int, int], None] | None = None
) -> Opened:
    storage = open_storage(settings)
    node_id = settings[NODE_ID]
    image = storage.metadata.image
    try:
        settings = with_dynamic(
            settings,
            dynamic_default=image.configs_of(ConfigResource(ResourceType.BROKER, "")),
            dynamic_broker=image.configs_of(ConfigResource(ResourceType.BROKER, str(node_id))),
        )
    except SettingError as error:
        storage.close()
        raise StartError(f"with what was set while the broker ran, {error}") from error
    threads = Threads(loop)
    producer_ids = ProducerIdBlock(ProducerIds(storage.database), threads)
    node = Node(loop, node_id, settings, storage.directories, storage.metadata, producer_ids, threads)
    opened = Opened(node, storage)
    try:
        _open_partitions(opened, storage.metadata, progress)
    except BaseException:
        threads.close()
        storage.release()
        raise
    node.image = node.decided
    return opened


def _open_partitions(opened: Opened, store: MetadataStore, progress: Callable[[int, int], None] | None) -> None:
    node = opened.node
    found = _find(opened, store)
    _finish_deletions(node, store, found)
    total = sum(len(keys) for keys in found.values())
    done = 0

    def count(_: int, __: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    for directory in node.directories:
        try:
            directory.open_partitions(
                node.config_of,
                node.now_ms(),
                partitions=found[directory.path],
                producer_expiration_ms=node.settings[PRODUCER_ID_EXPIRATION_MS],
                threads=node.settings[NUM_RECOVERY_THREADS_PER_DATA_DIR],
                opened=count,
            )
        except StorageError as error:
            logger.error("%s", error)
    _lose_unopened(node, store)
    _make_unmade(node, store)
    if all(directory.failure is not None for directory in node.directories):
        raise StartError(f"no log directory can be used: {node.directories[0].failure}")
    _lead(node, store)


def _find(opened: Opened, store: MetadataStore) -> dict[str, list[TopicPartition]]:
    """The partitions of each log directory that the metadata knows, by the directory's path."""
    found: dict[str, list[TopicPartition]] = {}
    nameless: list[tuple[LogDirectory, Topic, int]] = []
    publisher = opened.node.publisher
    for directory in opened.node.directories:
        mine = found[directory.path] = []
        try:
            for key in directory.partitions():
                path = f"{directory.path}/{partition_directory(*key)}"
                other = publisher.directory_of.get(key)
                topic = store.image.topics.get(key[0])
                topic_id = directory.topic_id_of(*key)
                if topic is not None and topic_id is None and key[1] < len(topic.partitions):
                    nameless.append((directory, topic, key[1]))
                    continue
                if topic is None or key[1] >= len(topic.partitions) or topic_id != topic.id:
                    opened.unknown.append(path)
                    continue
                if other is not None:
                    if not _was_made_in(directory, other, key):
                        opened.unknown.append(path)
                        continue
                    found[other.path].remove(key)
                    opened.unknown.append(f"{other.path}/{partition_directory(*key)}")
                mine.append(key)
                publisher.directory_of[key] = directory
        except OSError as error:
            directory.fail(error)
    for directory, topic, index in nameless:
        # Only where no other directory has it: a disk that was away may bring back an old one.
        if (topic.name, index) not in publisher.directory_of and directory.takes_back(topic.name, index, topic.id):
            found[directory.path].append((topic.name, index))
            publisher.directory_of[topic.name, index] = directory
        else:
            opened.unknown.append(f"{directory.path}/{partition_directory(topic.name, index)}")
    return found


def _was_made_in(directory: LogDirectory, other: LogDirectory, key: TopicPartition) -> bool:
    """Whether a partition that two directories have is this one's: the other failed before it was made there."""
    return key in directory.remembered.recovery_points and key not in other.remembered.recovery_points


def _finish_deletions(node: Node, store: MetadataStore, found: dict[str, list[TopicPartition]]) -> None:
    """A topic whose deletion was interrupted goes now; so do directories that wait for their removal."""
    image = store.image
    for topic in [topic for topic in image.topics.values() if topic.is_being_deleted]:
        for index in range(len(topic.partitions)):
            directory = node.publisher.directory_of.pop((topic.name, index), None)
            if directory is not None:
                found[directory.path].remove((topic.name, index))
                try:
                    directory.delete_partition(topic.name, index)
                except StorageError as error:
                    logger.error("%s", error)
        image = remove_topic(image, topic.name)
    store.save(image)
    for directory in node.directories:
        try:
            node.publisher.remove_later(directory.deleted_directories(), 0)
        except OSError as error:
            directory.fail(error)


def _lose_unopened(node: Node, store: MetadataStore) -> None:
    """Partitions that were found in a directory which then failed."""
    for key, directory in node.publisher.directory_of.items():
        if key not in directory.logs:
            node.publisher.lose(store.image.topics[key[0]], key[1], f"{directory.failure}")


def _make_unmade(node: Node, store: MetadataStore) -> None:
    """Partitions that the metadata knows and that have no directory: lost, if it was made once; else made now."""
    made: list[TopicPartition] = []
    for topic in store.image.topics.values():
        for index, partition in enumerate(topic.partitions):
            key = (topic.name, index)
            if key in node.publisher.directory_of or node.id not in partition.replicas:
                continue
            if node.id in partition.made_on:
                node.publisher.lose(topic, index, "it has no directory: is a disk not mounted?")
            elif _make(node, topic, index):
                made.append(key)
    if made:
        store.save(mark_made(store.image, node.id, made))


def _make(node: Node, topic: Topic, index: int) -> bool:
    """Make a partition in the first directory that can; without one it is lost until the next start."""
    key = (topic.name, index)
    while directories := node.publisher.emptiest_first(1):
        directory = directories[0]
        try:
            directory.create_partition(topic.name, index, topic.id, node.config_of(topic.name), node.now_ms())
        except StorageError as error:
            logger.error("%s", error)
        # One that is open may be in the checkpoint, though writing it failed: it stays here, offline.
        if key in directory.logs:
            node.publisher.directory_of[key] = directory
            return True
    node.publisher.lose(topic, index, "every log directory is offline")
    return False


def _lead(node: Node, store: MetadataStore) -> None:
    """Begin a new leader epoch for every partition, and decide the features, durable before anybody can connect.

    New producer ids begin above every id in any snapshot or log tail. Ids from the ceiling on do not count: a
    client made them up.
    """
    logs = {key: log for directory in node.directories for key, log in directory.logs.items()}
    image = begin_leader_epochs(store.image, {key: log.epochs.latest for key, log in logs.items()})
    store.save(finalize_new(image))
    highest = max((log.producers.highest_id for log in logs.values()), default=-1)
    node.producer_ids.start_above(highest)
    for log in logs.values():
        if log.producers.invented_id is not None:
            logger.warning("%s: no broker gave producer id %d: it is not counted", log.name, log.producers.invented_id)
    for (name, _), log in logs.items():
        node.publisher.lead(log, store.image.topics[name])
