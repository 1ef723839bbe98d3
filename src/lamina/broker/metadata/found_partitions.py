"""Which directory on this broker's disks is which partition, when a broker starts.

Owns the comparison of names on disk with the metadata. Looks and opens nothing; runs on a thread. Must not know what is
in a log.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lamina.broker.partitions.log_directories import LogDirectories
from lamina.image.image import Image
from lamina.image.topic import Partition, Topic
from lamina.log.directory import LogDirectory
from lamina.log.future_logs import FutureLog, future_logs
from lamina.log.names import partition_directory
from lamina.topic_partition import TopicPartition


@dataclass(slots=True)
class FoundPartitions:
    places: dict[TopicPartition, LogDirectory] = field(default_factory=dict)
    """Where each partition is that the metadata knows."""
    copies: dict[TopicPartition, list[LogDirectory]] = field(default_factory=dict)
    """Every place of those that are in more than one directory."""
    futures: list[FutureLog] = field(default_factory=list)
    """Copies that moves between the directories have begun."""
    unneeded_futures: list[FutureLog] = field(default_factory=list)
    """Those of partitions that this broker is not to have."""
    unknown: list[str] = field(default_factory=list)
    """Partition directories that the metadata does not know; they are left alone."""
    deleted: dict[bytes, list[tuple[LogDirectory, TopicPartition]]] = field(default_factory=dict)
    """By topic id, partitions of topics that were deleted while this broker was away."""
    retired: list[tuple[LogDirectory, TopicPartition]] = field(default_factory=list)
    """Partitions that other brokers keep since then, and this one does not."""
    nowhere: list[TopicPartition] = field(default_factory=list)
    """Such ones of which nothing is left here."""


def find_partitions(directories: LogDirectories, image: Image, node_id: int) -> FoundPartitions:
    """A directory that cannot be read goes offline, and nothing is found in it."""
    found = FoundPartitions()
    without_id: list[tuple[LogDirectory, Topic, int]] = []
    seen: set[TopicPartition] = set()
    for directory in directories.online:
        try:
            for partition in directory.partitions():
                seen.add(partition)
                _place(found, without_id, directory, image, node_id, partition)
            for future in future_logs(directory):
                _sort_future(found, image, node_id, future)
        except OSError as error:
            directory.fail(error)
    for directory, topic, index in without_id:
        _place_without_id(found, directory, topic, index, node_id)
    _keep_one_future(found)
    if directories.are_all_online:
        found.nowhere = [partition for partition in _all_retired(image, node_id) if partition not in seen]
    return found


def _place(
    found: FoundPartitions,
    without_id: list[tuple[LogDirectory, Topic, int]],
    directory: LogDirectory,
    image: Image,
    node_id: int,
    partition: TopicPartition,
) -> None:
    name, index = partition
    topic = image.topics.get(name)
    topic_id = directory.topic_id_of(name, index)
    state = topic.partitions[index] if topic is not None and index < len(topic.partitions) else None
    if topic is not None and topic_id is None and state is not None:
        without_id.append((directory, topic, index))
        return
    if topic_id is not None and topic_id in image.deletions:
        found.deleted.setdefault(topic_id, []).append((directory, partition))
        return
    if topic is None or state is None or topic_id != topic.id:
        found.unknown.append(_path(directory, partition))
        return
    if node_id not in state.replicas:
        # The metadata of an old copy of the store has not seen what became of it later (R57).
        if is_retired(state, node_id) and directory.latest_epoch_of(name, index) <= state.leader_epoch:
            found.retired.append((directory, partition))
        else:
            found.unknown.append(_path(directory, partition))
        return
    if partition in found.places:
        found.copies.setdefault(partition, [found.places[partition]]).append(directory)
    else:
        found.places[partition] = directory


def _sort_future(found: FoundPartitions, image: Image, node_id: int, future: FutureLog) -> None:
    """A copy is of no use without its partition. One of a topic that nobody knows is kept, as the partition is."""
    (name, index), topic_id = future.partition, future.topic_id
    topic = image.topics.get(name)
    if topic is not None and topic_id == topic.id and index < len(topic.partitions):
        is_mine = node_id in topic.partitions[index].replicas and not topic.is_being_deleted
        (found.futures if is_mine else found.unneeded_futures).append(future)
    elif topic_id is None or topic_id in image.deletions:
        found.unneeded_futures.append(future)
    else:
        found.unknown.append(future.path)


def _keep_one_future(found: FoundPartitions) -> None:
    """Of each partition, and only where it is in another directory."""
    futures, found.futures = found.futures, []
    seen: set[TopicPartition] = set()
    for future in futures:
        is_needed = future.partition not in seen and found.places.get(future.partition) is not future.directory
        seen.add(future.partition)
        (found.futures if is_needed else found.unneeded_futures).append(future)


def _place_without_id(found: FoundPartitions, directory: LogDirectory, topic: Topic, index: int, node_id: int) -> None:
    """Only where no other directory has it: a disk that was away may bring back an old one."""
    partition, state = (topic.name, index), topic.partitions[index]
    is_mine = node_id in state.replicas
    if is_mine and partition not in found.places and directory.takes_back(topic.name, index, topic.id):
        found.places[partition] = directory
    elif is_retired(state, node_id) and node_id in state.made_on and directory.was_never_flushed(*partition):
        found.retired.append((directory, partition))
    else:
        found.unknown.append(_path(directory, partition))


def is_retired(state: Partition, node_id: int) -> bool:
    """Whether a broker is to delete what it has of a partition: others keep it, and one of them may lead (R51)."""
    return node_id not in state.replicas and state.leader != node_id


def _all_retired(image: Image, node_id: int) -> Iterator[TopicPartition]:
    """As far as this broker is known to have made a directory of it."""
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if node_id in state.made_on and is_retired(state, node_id) and not topic.is_being_deleted:
                yield topic.name, index


def _path(directory: LogDirectory, partition: TopicPartition) -> str:
    return f"{directory.path}/{partition_directory(*partition)}"
