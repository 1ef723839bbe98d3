"""From settings to a node that may serve: directories, store, image, logs, in this order.

Owns what happens once, at start: logs recovered, interrupted creations and deletions finished, the new leader
epochs made durable. Must not listen.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from lamina.broker.node import Node
from lamina.broker.producer_ids import ProducerIdBlock
from lamina.broker.storage import StartError, Storage, open_storage
from lamina.broker.threads import Threads
from lamina.errors import StorageError
from lamina.image.changes import begin_leader_epochs, mark_made, remove_topic
from lamina.image.image import ConfigResource, ResourceType
from lamina.image.topic import Topic, TopicPartition
from lamina.log.directory import LogDirectory
from lamina.log.identity import IdentityError, read_topic_id
from lamina.log.names import partition_directory
from lamina.settings.broker import (
    NODE_ID,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
    PRODUCER_ID_EXPIRATION_MS,
)
from lamina.settings.definition import SettingError
from lamina.settings.resolve import with_dynamic
from lamina.settings.values import BrokerSettings
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
    _open_partitions(opened, storage.metadata, progress)
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
    _make_unmade(node, store)
    _lead(node, store)


def _find(opened: Opened, store: MetadataStore) -> dict[str, list[TopicPartition]]:
    """The partitions of each log directory that the metadata knows, by the directory's path."""
    found: dict[str, list[TopicPartition]] = {}
    publisher = opened.node.publisher
    for directory in opened.node.directories:
        mine: list[TopicPartition] = []
        for key in directory.partitions():
            topic = store.image.topics.get(key[0])
            path = f"{directory.path}/{partition_directory(*key)}"
            known = topic is not None and key[1] < len(topic.partitions) and _is_of(directory, path, topic)
            if not known or key in publisher.directory_of:
                opened.unknown.append(path)
            else:
                mine.append(key)
                publisher.directory_of[key] = directory
        found[directory.path] = mine
    return found


def _is_of(directory: LogDirectory, path: str, topic: Topic) -> bool:
    try:
        return read_topic_id(directory.disk, path) == topic.id
    except IdentityError:
        return False


def _finish_deletions(node: Node, store: MetadataStore, found: dict[str, list[TopicPartition]]) -> None:
    """A topic whose deletion was interrupted goes now; so do directories that wait for their removal."""
    image = store.image
    for topic in [topic for topic in image.topics.values() if topic.is_being_deleted]:
        for index in range(len(topic.partitions)):
            directory = node.publisher.directory_of.pop((topic.name, index), None)
            if directory is not None:
                found[directory.path].remove((topic.name, index))
                directory.delete_partition(topic.name, index)
        image = remove_topic(image, topic.name)
    store.save(image)
    for directory in node.directories:
        node.publisher.remove_later(directory.deleted_directories(), 0)


def _make_unmade(node: Node, store: MetadataStore) -> None:
    """Partitions that the metadata knows and that have no directory: lost, if it was made once; else made now."""
    made: list[TopicPartition] = []
    for topic in store.image.topics.values():
        for index, partition in enumerate(topic.partitions):
            key = (topic.name, index)
            if key in node.publisher.directory_of or node.id not in partition.replicas:
                continue
            if node.id in partition.made_on:
                reason = f"{topic.name}-{index} has no directory: is a disk not mounted?"
                logger.error("%s", reason)
                node.partitions.add_lost(topic.name, index, UUID(bytes=topic.id), reason)
                continue
            directory = node.directories[0]
            node.publisher.directory_of[key] = directory
            directory.create_partition(topic.name, index, topic.id, node.config_of(topic.name), node.now_ms())
            made.append(key)
    if made:
        store.save(mark_made(store.image, node.id, made))


def _lead(node: Node, store: MetadataStore) -> None:
    """Begin a new leader epoch for every partition, durable before anybody can connect.

    New producer ids begin above every id in any snapshot or log tail. Ids from the ceiling on do not count: a
    client made them up.
    """
    logs = {key: log for directory in node.directories for key, log in directory.logs.items()}
    store.save(begin_leader_epochs(store.image, {key: log.epochs.latest for key, log in logs.items()}))
    highest = max((log.producers.highest_id for log in logs.values()), default=-1)
    node.producer_ids.start_above(highest)
    for log in logs.values():
        if log.producers.invented_id is not None:
            logger.warning("%s: no broker gave producer id %d: it is not counted", log.name, log.producers.invented_id)
    for (name, _), log in logs.items():
        node.publisher.lead(log, store.image.topics[name])
