"""The future log of a partition: the copy of it that a move fills in another log directory (KIP-113, R70).

Owns its directory, ``topic-partition.<uuid>-future``: how it is made, opened, given the partition's own name, or
removed. A copy with that name and a mark from where it comes counts as much as the log that it copies: whichever
reaches further is used (``copies``). So the name comes last, when the copy is flushed, and the old log goes only when
nothing is written to it any more. All of this may run on any thread. Must not know who fills it.
"""

import logging
from typing import NamedTuple
from uuid import uuid4

from lamina.errors import StorageError
from lamina.log.copies import mark_moved
from lamina.log.directory import LogDirectory
from lamina.log.flushing import close_cleanly
from lamina.log.identity import IdentityError, read_topic_id, write_topic_id
from lamina.log.names import deleted_directory, future_directory, parse_future_directory, partition_directory
from lamina.log.partition_log import PartitionLog
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class FutureLog(NamedTuple):
    """A directory that holds one."""

    directory: LogDirectory
    partition: TopicPartition
    name: str
    """Of its directory; the partition's own once it has that."""

    @property
    def path(self) -> str:
        return f"{self.directory.path}/{self.name}"

    @property
    def topic_id(self) -> bytes | None:
        """Whose it is; ``None`` if it does not say so."""
        try:
            return read_topic_id(self.directory.disk, self.path)
        except IdentityError:
            return None


def future_logs(directory: LogDirectory) -> list[FutureLog]:
    """Those that are there. Raises OSError."""
    entries = [entry for entry in directory.disk.scan(directory.path) if entry.is_dir]
    found = ((parse_future_directory(entry.name), entry.name) for entry in entries)
    return [FutureLog(directory, partition, name) for partition, name in found if partition is not None]


def make_future_log(directory: LogDirectory, partition: TopicPartition, topic_id: bytes) -> FutureLog:
    """Make an empty directory for a copy."""
    if directory.failure is not None:
        raise StorageError(directory.failure)
    future = FutureLog(directory, partition, future_directory(*partition, uuid4().hex))
    try:
        directory.disk.make_dir(future.path)
        write_topic_id(directory.disk, future.path, topic_id)
        directory.disk.sync_dir(directory.path)
    except OSError as error:
        raise directory.fail(error) from error
    return future


def give_name(future: FutureLog, log: PartitionLog, source: LogDirectory) -> FutureLog:
    """Close a copy and give it the partition's own name. From now on it counts, if it reaches further.

    What has that name there before is nobody's: it is kept under another one.
    """
    directory, name = future.directory, partition_directory(*future.partition)
    close_cleanly(log)
    if future.name == name:
        return future
    try:
        if directory.disk.exists(f"{directory.path}/{name}"):
            directory.set_aside(*future.partition)
        mark_moved(directory, future.name, source)
        directory.disk.rename(future.path, f"{directory.path}/{name}")
        directory.disk.sync_dir(directory.path)
    except OSError as error:
        raise directory.fail(error) from error
    return future._replace(name=name)


def rename_discarded(future: FutureLog) -> str:
    """Give a copy that is not wanted the name of one that waits for its removal. Returns its path."""
    directory = future.directory
    gone = f"{directory.path}/{deleted_directory(*future.partition, uuid4().hex)}"
    try:
        directory.disk.rename(future.path, gone)
        directory.disk.sync_dir(directory.path)
    except OSError as error:
        raise directory.fail(error) from error
    return gone
