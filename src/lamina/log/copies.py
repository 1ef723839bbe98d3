"""The same partition in two log directories: an interrupted move leaves that, and a disk that was away and is back.

Owns which one is used: the one that reaches further, by its newest leader epoch, then by its end. What either has up to
the end of the other is the same, for every batch came from the same leaders. Must not know why there are two.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lamina.log.directory import LogDirectory
from lamina.log.files import read_file, write_new_file
from lamina.log.flushing import flush
from lamina.log.names import partition_directory
from lamina.log.partition_log import PartitionLog
from lamina.settings.log_config import LogConfig
from lamina.topic_partition import TopicPartition

MOVED_FROM = "lamina-moved-from"
"""A file in a partition's directory: its log is being moved here from the log directory of that id."""


class Opened(NamedTuple):
    directory: LogDirectory
    log: PartitionLog
    others: list[LogDirectory]
    """Where the other copies are, closed."""


def open_furthest(
    directories: Iterable[LogDirectory],
    partition: TopicPartition,
    config: LogConfig,
    now_ms: int,
    producer_expiration_ms: int,
) -> Opened:
    """Open the copy that reaches furthest, and flush it: the others may go.

    Raises :class:`StorageError` where one cannot be opened, for it may be that, and where it cannot be flushed.
    """
    opened: list[tuple[LogDirectory, PartitionLog]] = []
    try:
        opened.extend(
            (directory, directory.open_log(*partition, config, now_ms, producer_expiration_ms))
            for directory in directories
        )
        directory, log = max(opened, key=lambda one: _reach(partition, *one))
        # A killed process leaves what it wrote on no disk yet; of that another copy may have more there.
        flush(log)
    except BaseException:
        for _, log in opened:
            log.close()
        raise
    for _, other in opened:
        if other is not log:
            other.close()
    return Opened(directory, log, [one for one, _ in opened if one is not directory])


def _reach(partition: TopicPartition, directory: LogDirectory, log: PartitionLog) -> tuple[int, int, int, bool, bool]:
    is_known = partition in directory.offset_checkpoints.recovery_points
    is_moved = moved_from(directory, partition) is not None
    return log.epochs.latest, log.log_end_offset, log.log_start_offset, is_moved, is_known


def is_interrupted_move(partition: TopicPartition, one: LogDirectory, other: LogDirectory) -> bool:
    """Whether one of two copies was being made of the other."""
    return any(
        source.identity.directory_id is not None and moved_from(target, partition) == source.identity.directory_id
        for source, target in ((one, other), (other, one))
    )


def moved_from(directory: LogDirectory, partition: TopicPartition) -> str | None:
    try:
        return read_file(directory.disk, _mark(directory, partition_directory(*partition))).decode(errors="replace")
    except OSError:
        return None


def mark_moved(directory: LogDirectory, name: str, source: LogDirectory) -> None:
    """Say in a partition's directory, whatever its name is now, from where its log comes. Raises OSError."""
    write_new_file(directory.disk, _mark(directory, name), (source.identity.directory_id or "").encode())


def forget_move(directory: LogDirectory, partition: TopicPartition) -> None:
    """There is no other copy any more. Raises OSError."""
    directory.disk.unlink(_mark(directory, partition_directory(*partition)))


def _mark(directory: LogDirectory, name: str) -> str:
    return f"{directory.path}/{name}/{MOVED_FROM}"
