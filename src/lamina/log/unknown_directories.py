"""Directories that have the name of a new partition and belong to another topic, or to an unknown one.

A disk that was away while its topic was deleted brings them back. A new topic must not take their records over, and
they may hold what somebody needs: they are kept, under the kind of name that Kafka gives to strays. Must not know when.
"""

import logging
from uuid import uuid4

from lamina.log.files import Disk
from lamina.log.identity import IdentityError, read_topic_id
from lamina.log.names import partition_directory, stray_directory
from lamina.log.segment import LOG

logger = logging.getLogger(__name__)


def set_unknown_directory_aside(disk: Disk, directory: str, topic: str, partition: int, topic_id: bytes) -> None:
    """Make the name of a partition of this topic free. What an interrupted attempt to make it left may stay."""
    path = f"{directory}/{partition_directory(topic, partition)}"
    if disk.exists(path) and _is_strange(disk, path, topic_id):
        aside = set_aside(disk, directory, topic, partition)
        logger.warning("%s holds records of no topic that is known: it is kept as %s", path, aside)


def set_aside(disk: Disk, directory: str, topic: str, partition: int) -> str:
    """Rename a partition's directory to a stray's. Returns its path."""
    aside = f"{directory}/{stray_directory(topic, partition, uuid4().hex)}"
    disk.rename(f"{directory}/{partition_directory(topic, partition)}", aside)
    return aside


def _is_strange(disk: Disk, path: str, topic_id: bytes) -> bool:
    try:
        found = read_topic_id(disk, path)
    except IdentityError:
        found = None
    if found is None:
        return any(entry.name.endswith(LOG) and entry.size_bytes for entry in disk.scan(path))
    return found != topic_id
