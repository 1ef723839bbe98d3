"""Taking partitions in that the metadata does not know, while the broker is stopped.

Partitions that lie in one of the broker's log directories stay where they are; others are copied there, whole
before they get their names. Their topics are made known with a cleanup policy that deletes and compacts nothing,
until somebody sets one. Raises :class:`AdoptionError` with one sentence before anything is changed. Must not
open logs: the next start recovers them.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from lamina.errors import KafkaError
from lamina.image.changes import adopt_topic
from lamina.image.image import Image
from lamina.image.topic_names import check_new_topic_name
from lamina.log.directory import KRAFT_METADATA, LOCK, LogDirectory
from lamina.log.files import Disk
from lamina.log.identity import PARTITION_METADATA, IdentityError, read_topic_id, write_topic_id
from lamina.log.names import parse_partition_directory, partition_directory
from lamina.settings.broker import NODE_ID
from lamina.settings.values import BrokerSettings
from lamina.storage import Storage

_UNFINISHED = ".adopting"


class AdoptionError(Exception):
    """Why nothing was adopted, in one sentence."""


@dataclass(frozen=True, slots=True)
class Found:
    """A partition's directory that is to be adopted."""

    topic: str
    index: int
    path: str
    topic_id: bytes | None
    is_in_place: bool


def adopt(
    settings: BrokerSettings, storage: Storage, path: str, copied: Callable[[int, int], None] | None = None
) -> list[Found]:
    """Adopt a partition, or every partition of a log directory. ``copied`` is told how many of how many bytes."""
    disk = Disk()
    path = os.path.realpath(path)
    places = {directory.path for directory in storage.directories}
    found = _find(disk, path, places)
    _check_not_in_use(disk, {os.path.dirname(one.path) for one in found} - places)
    image = storage.metadata.image
    wanted: list[Found] = []
    for topic in sorted({one.topic for one in found}):
        mine = [one for one in found if one.topic == topic and not _is_served(image, one)]
        if mine:
            topic_id = _topic_id(mine)
            image = _with_topic(image, settings[NODE_ID], mine, topic_id)
            wanted += [Found(topic, one.index, one.path, topic_id, one.is_in_place) for one in mine]
    _check_free(storage, wanted)
    _bring_in(disk, storage.directories[0], wanted, copied)
    storage.metadata.save(image)
    return wanted


def _find(disk: Disk, path: str, places: set[str]) -> list[Found]:
    if not os.path.isdir(path):
        raise AdoptionError(f"{path} is not a directory")
    named = parse_partition_directory(os.path.basename(path))
    if named is not None and not any(parse_partition_directory(name) for name in os.listdir(path)):
        paths = [path]
    else:
        paths = [os.path.join(path, name) for name in sorted(os.listdir(path)) if parse_partition_directory(name)]
    found = []
    for one in paths:
        key = parse_partition_directory(os.path.basename(one))
        if key is None or key[0] == KRAFT_METADATA or not os.path.isdir(one):
            continue
        try:
            topic_id = read_topic_id(disk, one)
        except IdentityError as error:
            raise AdoptionError(f"{one}: {error}") from None
        found.append(Found(*key, one, topic_id, os.path.dirname(one) in places))
    if not found:
        raise AdoptionError(f"{path} is neither a partition's directory (topic-0) nor one that holds such directories")
    return found


def _check_not_in_use(disk: Disk, places: set[str]) -> None:
    for place in places:
        lock_path = os.path.join(place, LOCK)
        if os.path.exists(lock_path):
            lock = disk.lock(lock_path)
            if lock is None:
                raise AdoptionError(f"{place} is in use by a broker: stop it first")
            lock.close()


def _is_served(image: Image, found: Found) -> bool:
    """Whether the broker serves just this directory already."""
    topic = image.topics.get(found.topic)
    is_known = topic is not None and topic.id == found.topic_id and found.index < len(topic.partitions)
    return is_known and found.is_in_place


def _topic_id(found: list[Found]) -> bytes:
    """The id that the partitions agree on; a new one where none has any, as before Kafka 2.8."""
    topic_ids = {one.topic_id for one in found if one.topic_id is not None}
    if len(topic_ids) > 1:
        raise AdoptionError(f"the partitions of {found[0].topic} have different topic ids: adopt those of one topic")
    return topic_ids.pop() if topic_ids else uuid4().bytes


def _with_topic(image: Image, node_id: int, found: list[Found], topic_id: bytes) -> Image:
    name = found[0].topic
    topic = image.topics.get(name)
    last = max(one.index for one in found)
    if topic is not None and topic.id == topic_id and last < len(topic.partitions):
        return image
    try:
        check_new_topic_name(image, name)
    except KafkaError as error:
        raise AdoptionError(f"{found[0].path} cannot be adopted: {error}, with other data") from None
    if topic_id in image.topic_names:
        raise AdoptionError(f"{found[0].path} has the id of topic {image.topic_names[topic_id]}")
    return adopt_topic(image, name, topic_id, last + 1, node_id)


def _check_free(storage: Storage, wanted: list[Found]) -> None:
    for one in wanted:
        for directory in storage.directories:
            target = f"{directory.path}/{partition_directory(one.topic, one.index)}"
            if target != one.path and os.path.exists(target):
                raise AdoptionError(f"{target} is there already: {one.path} cannot be adopted beside it")


def _bring_in(
    disk: Disk, directory: LogDirectory, wanted: list[Found], copied: Callable[[int, int], None] | None
) -> None:
    total_bytes = sum(_size_bytes(one.path) for one in wanted if not one.is_in_place)
    done_bytes = 0
    for one in wanted:
        target = one.path
        if not one.is_in_place:
            target = f"{directory.path}/{partition_directory(one.topic, one.index)}"
            done_bytes += _copy(disk, one.path, target + _UNFINISHED)
            os.rename(target + _UNFINISHED, target)
            disk.sync_dir(directory.path)
            if copied is not None:
                copied(done_bytes, total_bytes)
        if not os.path.exists(os.path.join(target, PARTITION_METADATA)):
            assert one.topic_id is not None
            write_topic_id(disk, target, one.topic_id)


def _copy(disk: Disk, source: str, target: str) -> int:
    """Copy the files of a directory and make them durable; what an interrupted attempt left is replaced."""
    shutil.rmtree(target, ignore_errors=True)
    os.mkdir(target)
    size_bytes = 0
    for entry in os.scandir(source):
        if entry.is_file(follow_symlinks=False):
            path = os.path.join(target, entry.name)
            shutil.copyfile(entry.path, path)
            with open(path, "rb") as file:
                os.fsync(file.fileno())
            size_bytes += entry.stat().st_size
    disk.sync_dir(target)
    return size_bytes


def _size_bytes(path: str) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file(follow_symlinks=False))
