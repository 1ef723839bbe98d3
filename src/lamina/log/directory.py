"""One log directory: its lock and identity, the checkpoints of its partitions, online or offline.

Owns which partition logs are open in it and the files that speak of all of them. A disk error in any of them
takes the directory offline with every partition in it, for good; other directories go on. Must not know topics
beyond their names: settings and ids are given.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from lamina.errors import StorageError
from lamina.log import checkpoints
from lamina.log.checkpoints import CheckpointError, TopicPartition, read_offsets, write_offsets
from lamina.log.entries import OpenMaps
from lamina.log.files import Disk, File, read_file, write_new_file
from lamina.log.flushing import close_cleanly
from lamina.log.identity import (
    Identity,
    IdentityError,
    new_id,
    read_meta_properties,
    write_meta_properties,
    write_topic_id,
)
from lamina.log.index_pair import IndexShape
from lamina.log.names import (
    deleted_directory,
    is_deleted_directory,
    parse_partition_directory,
    partition_directory,
)
from lamina.log.partition_log import PartitionLog, initial_segment_bytes
from lamina.log.recovery import Opening, open_log
from lamina.log.trimming import truncate_fully_and_start_at, truncate_to
from lamina.settings.log_config import DAY_MS, LogConfig

LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1
KRAFT_METADATA = "__cluster_metadata"
"""The log of Kafka's own controller, which lies among the partitions and is none."""

logger = logging.getLogger(__name__)


class DirectoryError(Exception):
    """A directory that cannot be used; the sentence says why and what to do."""


class LogDirectory:
    def __init__(self, disk: Disk, path: str, lock: File, identity: Identity, broker_epoch: int | None) -> None:
        self.disk = disk
        self.path = path
        self.identity = identity
        self.was_clean = broker_epoch is not None
        """Whether the last stop was clean, so that nothing has to be recovered."""
        self._broker_epoch = NO_BROKER_EPOCH if broker_epoch is None else broker_epoch
        """Kept for Kafka: its controller takes a mark with another epoch for an unclean stop."""
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.failure: str | None = None
        self.on_failure: Callable[[LogDirectory], None] | None = None
        """Told once when the directory goes offline."""
        self.recovery_points = self._read(checkpoints.RECOVERY_POINT)
        self.log_starts = self._read(checkpoints.LOG_START)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARK)
        self.cleaner_offsets = self._read(checkpoints.CLEANER)
        self._lock = lock

    # Opening

    @classmethod
    def open(
        cls, path: str, *, node_id: int, cluster_id: str | None = None, disk: Disk | None = None
    ) -> "LogDirectory":
        """Lock the directory and make sure that it is this node's; a new one is given an identity.

        Raises :class:`DirectoryError` with one sentence when it is in use, somebody else's or not writable.
        """
        disk = disk or Disk()
        try:
            disk.make_dir(path)
            path = disk.absolute(path)
            lock = disk.lock(f"{path}/{LOCK}")
            if lock is None:
                raise DirectoryError(f"{path} is in use by another broker: stop that one, or choose another directory")
            try:
                identity = _identify(disk, path, node_id, cluster_id)
                broker_epoch = _read_clean_shutdown(disk, path)
                if broker_epoch is not None:
                    disk.unlink(f"{path}/{CLEAN_SHUTDOWN}")
                    disk.sync_dir(path)
                return cls(disk, path, lock, identity, broker_epoch)
            except BaseException:
                lock.close()
                raise
        except OSError as error:
            raise DirectoryError(f"{path} cannot be used: {error.strerror}") from error

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self.disk, f"{self.path}/{name}")
        except CheckpointError as error:
            logger.warning("%s/%s is taken for empty: %s", self.path, name, error)
            return {}

    def partitions(self) -> list[TopicPartition]:
        """The partitions that have a directory here, open or not. The log of a Kafka controller is left alone."""
        found = (parse_partition_directory(entry.name) for entry in self.disk.scan(self.path) if entry.is_dir)
        return [partition for partition in found if partition is not None and partition[0] != KRAFT_METADATA]

    def open_partitions(
        self,
        config_of: Callable[[str], LogConfig],
        now_ms: int,
        *,
        partitions: Sequence[TopicPartition] | None = None,
        producer_expiration_ms: int = DAY_MS,
        threads: int = 1,
        opened: Callable[[int, int], None] | None = None,
    ) -> list[PartitionLog]:
        """Open and recover these partitions, or all that have a directory here, several at a time.

        ``opened`` is told after each how many of how many are open.
        """
        partitions = self.partitions() if partitions is None else partitions
        logs: list[PartitionLog] = []
        with ThreadPoolExecutor(threads, thread_name_prefix="lamina-recovery") as pool:
            for log in pool.map(
                lambda key: self._open(key[0], key[1], config_of(key[0]), now_ms, producer_expiration_ms),
                partitions,
            ):
                self._adopt(log)
                logs.append(log)
                if opened is not None:
                    opened(len(logs), len(partitions))
        return logs

    def open_partition(
        self, topic: str, partition: int, config: LogConfig, now_ms: int, producer_expiration_ms: int = DAY_MS
    ) -> PartitionLog:
        """Open one partition that has a directory here; one without raises :class:`StorageError`."""
        if self.failure is not None:
            raise StorageError(self.failure)
        return self._adopt(self._open(topic, partition, config, now_ms, producer_expiration_ms))

    def create_partition(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, now_ms: int
    ) -> PartitionLog:
        """Make a new, empty partition and open it."""
        self.make_partitions([(topic, partition, topic_id)])
        return self.open_partition(topic, partition, config, now_ms)

    def make_partitions(self, partitions: Iterable[tuple[str, int, bytes]]) -> None:
        """Make the directories of new partitions: topic, partition and topic id of each. May run on any thread.

        What an interrupted attempt left is taken over.
        """
        if self.failure is not None:
            raise StorageError(self.failure)
        try:
            for topic, partition, topic_id in partitions:
                path = f"{self.path}/{partition_directory(topic, partition)}"
                self.disk.make_dir(path)
                write_topic_id(self.disk, path, topic_id)
            self.disk.sync_dir(self.path)
        except OSError as error:
            raise self.fail(error) from error

    def _open(
        self, topic: str, partition: int, config: LogConfig, now_ms: int, producer_expiration_ms: int
    ) -> PartitionLog:
        path = f"{self.path}/{partition_directory(topic, partition)}"
        key = (topic, partition)
        log_start_offset = self.log_starts.get(key, 0)
        opening = Opening(
            clean=self.was_clean,
            recovery_point=self.recovery_points.get(key, log_start_offset),
            log_start_offset=log_start_offset,
            now_ms=now_ms,
            producer_expiration_ms=producer_expiration_ms,
            initial_segment_bytes=initial_segment_bytes(config),
        )
        shape = IndexShape(config.segment_index_bytes, config.index_interval_bytes, OpenMaps())
        try:
            state, report = open_log(self.disk, path, shape, opening)
        except OSError as error:
            raise self.fail(error) from error
        if report.reason is not None:
            logger.warning(
                "%s: cut %d bytes and %d segments behind the last good batch: %s",
                path,
                report.truncated_bytes,
                report.removed_segments,
                report.reason,
            )
        return PartitionLog(self.disk, topic, partition, path, config, shape, state)

    def _adopt(self, log: PartitionLog) -> PartitionLog:
        log.on_failure = self.fail
        self.logs[log.topic, log.partition] = log
        return log

    # Changing

    def truncate(self, log: PartitionLog, offset: int, now_ms: int) -> None:
        """Cut the end of a log. The recovery point goes down on disk first: what is written again is unproven."""
        if offset < log.log_end_offset:
            self._lower_recovery_point(log, offset)
            truncate_to(log, offset, now_ms)

    def truncate_fully(self, log: PartitionLog, offset: int, now_ms: int) -> None:
        """Empty a log and begin it at ``offset``."""
        self._lower_recovery_point(log, min(offset, log.log_start_offset))
        truncate_fully_and_start_at(log, offset, now_ms)

    def _lower_recovery_point(self, log: PartitionLog, offset: int) -> None:
        if log.recovery_point > offset:
            log.recovery_point = offset
            self.write_recovery_points()

    def delete_partition(self, topic: str, partition: int) -> str | None:
        """Take a partition out of the directory; returns the renamed directory, whose removal may take its time."""
        self.close_partition(topic, partition)
        return self.rename_deleted(topic, partition)

    def close_partition(self, topic: str, partition: int) -> None:
        """Forget a partition: its log can no longer be used, and no checkpoint speaks of it again."""
        log = self.logs.pop((topic, partition), None)
        if log is not None:
            log.close()
            log.failure = f"{log.name} was deleted"
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks, self.cleaner_offsets):
            offsets.pop((topic, partition), None)

    def rename_deleted(self, topic: str, partition: int) -> str | None:
        """Rename the directory of a partition that was closed. May run on any thread."""
        path = f"{self.path}/{partition_directory(topic, partition)}"
        gone = f"{self.path}/{deleted_directory(topic, partition, uuid4().hex)}"
        try:
            if not self.disk.exists(path):
                return None
            self.disk.rename(path, gone)
            self.disk.sync_dir(self.path)
        except OSError as error:
            raise self.fail(error) from error
        return gone

    def deleted_directories(self) -> list[str]:
        """Directories that were renamed away and not removed yet."""
        return [
            f"{self.path}/{entry.name}"
            for entry in self.disk.scan(self.path)
            if entry.is_dir and is_deleted_directory(entry.name)
        ]

    # Checkpoints

    def write_recovery_points(self) -> None:
        self.write_checkpoint(checkpoints.RECOVERY_POINT, self.collect_recovery_points())

    def collect_recovery_points(self) -> dict[TopicPartition, int]:
        self.recovery_points |= {key: log.recovery_point for key, log in self.logs.items()}
        return dict(self.recovery_points)

    def write_log_starts(self) -> None:
        self.write_checkpoint(checkpoints.LOG_START, self.collect_log_starts())

    def collect_log_starts(self) -> dict[TopicPartition, int]:
        """Only logs that start above their first segment's base need to be remembered (formats.md §2.5)."""
        for key, log in self.logs.items():
            self.log_starts.pop(key, None)
            if log.log_start_offset > log.segments.first.base_offset:
                self.log_starts[key] = log.log_start_offset
        return dict(self.log_starts)

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self.high_watermarks |= high_watermarks
        self.write_checkpoint(checkpoints.HIGH_WATERMARK, self.high_watermarks)

    def write_cleaner_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Fact 89: an update keeps only partitions that still exist."""
        known = self.cleaner_offsets | dict(offsets)
        self.cleaner_offsets = {key: offset for key, offset in known.items() if key in self.logs}
        self.write_checkpoint(checkpoints.CLEANER, self.cleaner_offsets)

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write one of the four files whole. May run on any thread, one at a time for each file."""
        if self.failure is not None:
            raise StorageError(self.failure)
        try:
            write_offsets(self.disk, f"{self.path}/{name}", offsets)
        except OSError as error:
            raise self.fail(error) from error

    # Going offline and closing

    def fail(self, error: OSError) -> StorageError:
        """Take the directory and all its partitions offline."""
        if self.failure is None:
            self.failure = f"the log directory {self.path} is offline: {error}"
            logger.error("%s", self.failure)
            for log in self.logs.values():
                log.failure = log.failure or self.failure
            if self.on_failure is not None:
                self.on_failure(self)
        return StorageError(self.failure)

    def close(self, threads: int = 1) -> None:
        """Stop cleanly: every log flushed, the checkpoints written, and last of all the mark that says so.

        Logs are flushed several at a time: what takes long is waiting for the disk. After an unclean stop a
        partition that nobody opened is still unproven, as is one that failed, and there is no mark.
        """
        with ThreadPoolExecutor(threads, thread_name_prefix="lamina-closing") as pool:
            for _ in pool.map(close_cleanly, self.logs.values()):
                pass
        if self.failure is None:
            self.write_recovery_points()
            self.write_log_starts()
            is_proven = self.was_clean or all(key in self.logs for key in self.partitions())
            if is_proven and not any(log.failure for log in self.logs.values()):
                self._mark_clean()
        self.release()

    def _mark_clean(self) -> None:
        mark = json.dumps({"version": 0, "brokerEpoch": self._broker_epoch}, separators=(",", ":")).encode()
        try:
            write_new_file(self.disk, f"{self.path}/{CLEAN_SHUTDOWN}", mark)
        except OSError as error:
            raise self.fail(error) from error

    def release(self) -> None:
        """Give up the lock without any mark: the next start recovers."""
        self._lock.close()


def _identify(disk: Disk, path: str, node_id: int, cluster_id: str | None) -> Identity:
    try:
        identity = read_meta_properties(disk, path)
    except IdentityError as error:
        raise DirectoryError(str(error)) from None
    if identity is None:
        identity = Identity(cluster_id or new_id(), node_id, new_id())
        write_meta_properties(disk, path, identity)
    if identity.node_id is not None and identity.node_id != node_id:
        raise DirectoryError(f"{path} belongs to node {identity.node_id}, this is node {node_id}")
    if cluster_id is not None and identity.cluster_id is not None and identity.cluster_id != cluster_id:
        raise DirectoryError(f"{path} belongs to cluster {identity.cluster_id}, this one is {cluster_id}")
    return identity


def _read_clean_shutdown(disk: Disk, path: str) -> int | None:
    """The broker epoch in the mark of a clean stop; ``None`` without a mark. Its presence is what counts."""
    try:
        data = read_file(disk, f"{path}/{CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return None
    try:
        return int(json.loads(data)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return NO_BROKER_EPOCH
