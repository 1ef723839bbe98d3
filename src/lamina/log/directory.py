"""One log directory: its lock and identity, the checkpoints of its partitions, online or offline.

Owns which partition logs are open in it and the files that speak of all of them. A disk error in any of them
takes the directory offline with every partition in it, for good; other directories go on. Must not know topics
beyond their names: settings and ids are given.
"""

import errno
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from uuid import uuid4

from lamina.errors import StorageError
from lamina.log.clean_shutdown import NO_BROKER_EPOCH, read_clean_shutdown, remove_clean_shutdown, write_clean_shutdown
from lamina.log.descriptors import is_temporary
from lamina.log.entries import OpenMaps
from lamina.log.epochs import LeaderEpochs
from lamina.log.files import Disk, File, make_durable_dir
from lamina.log.flushing import close_cleanly
from lamina.log.identity import Identity, IdentityError, identify, read_topic_id, write_topic_id
from lamina.log.index_pair import IndexRebuilds, IndexShape
from lamina.log.leftovers import remove_temporary_files
from lamina.log.lending import remove_lent
from lamina.log.names import (
    deleted_directory,
    is_deleted_directory,
    parse_future_directory,
    parse_partition_directory,
    partition_directory,
)
from lamina.log.offset_checkpoints import Checkpoints, OffsetCheckpoints
from lamina.log.partition_log import PartitionLog
from lamina.log.recovery import Opening, latest_unflushed_epoch, open_log
from lamina.log.rolling import initial_segment_bytes
from lamina.log.steps import Steps
from lamina.log.unknown_directories import set_aside, set_unknown_directory_aside
from lamina.settings.log_config import DAY_MS, LogConfig
from lamina.topic_partition import TopicPartition

LOCK = ".lock"
KRAFT_METADATA = "__cluster_metadata"
"""The log of Kafka's own controller, which lies among the partitions and is none."""

T = TypeVar("T")
R = TypeVar("R")

logger = logging.getLogger(__name__)


class DirectoryError(Exception):
    """A directory that cannot be used; the sentence says why and what to do."""


class DiskUnusable(DirectoryError):
    """The disk refuses: a broker that has other directories goes on with those."""


class LogDirectory:
    def __init__(
        self,
        disk: Disk,
        path: str,
        lock: File | None,
        identity: Identity,
        broker_epoch: int | None,
        failure: str | None = None,
    ) -> None:
        self.disk = disk
        self.path = path
        self.identity = identity
        self.was_clean = broker_epoch is not None
        """Whether the last stop was clean, so that nothing has to be recovered."""
        self.broker_epoch = NO_BROKER_EPOCH if broker_epoch is None else broker_epoch
        """That of the run which ended with the mark (KIP-966), NO_BROKER_EPOCH where it tells none."""
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.failure = failure
        self.on_failure: Callable[[LogDirectory], None] | None = None
        """Told once when the directory goes offline, on whichever thread found out."""
        self._failing = threading.Lock()
        self.offset_checkpoints = OffsetCheckpoints(disk, path, is_readable=failure is None)
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
            path = disk.absolute(path)
            make_durable_dir(disk, path)
            lock = disk.lock(f"{path}/{LOCK}")
            if lock is None:
                raise DirectoryError(f"{path} is in use by another broker: stop that one, or choose another directory")
            try:
                remove_temporary_files(disk, path)
                remove_lent(disk, path)
                identity = identify(disk, path, node_id, cluster_id)
                broker_epoch = read_clean_shutdown(disk, path)
                if broker_epoch is not None:
                    remove_clean_shutdown(disk, path)
                return cls(disk, path, lock, identity, broker_epoch)
            except BaseException:
                lock.close()
                raise
        except IdentityError as error:
            raise DirectoryError(str(error)) from None
        except OSError as error:
            raise DiskUnusable(f"{path} cannot be used: {error.strerror}") from error

    @classmethod
    def unusable(cls, path: str, reason: str, disk: Disk | None = None) -> "LogDirectory":
        """One that could not be opened: offline from the start, and whose it is nobody knows."""
        disk = disk or Disk()
        path = disk.absolute(path)
        failure = f"the log directory {path} is offline: {reason}"
        logger.error("%s", failure)
        return cls(disk, path, None, Identity(None, None, None), None, failure)

    def partitions(self) -> list[TopicPartition]:
        """The partitions that have a directory here, open or not. The log of a Kafka controller is left alone."""
        found = (parse_partition_directory(entry.name) for entry in self.disk.scan(self.path) if entry.is_dir)
        return [partition for partition in found if partition is not None and partition[0] != KRAFT_METADATA]

    def future_partitions(self) -> list[TopicPartition]:
        """The partitions whose logs are copied here from other log directories, open or not."""
        found = (parse_future_directory(entry.name) for entry in self.disk.scan(self.path) if entry.is_dir)
        return [partition for partition in found if partition is not None]

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
        try:
            partitions = self.partitions() if partitions is None else partitions
        except OSError as error:
            raise self.fail(error) from error
        logs: list[PartitionLog] = []

        def open_log(key: TopicPartition) -> PartitionLog:
            return self.open_log(key[0], key[1], config_of(key[0]), now_ms, producer_expiration_ms)

        for log in _several_at_a_time(open_log, partitions, threads, "lamina-recovery"):
            self.adopt(log)
            logs.append(log)
            if opened is not None:
                opened(len(logs), len(partitions))
        return logs

    def open_partition(
        self, topic: str, partition: int, config: LogConfig, now_ms: int, producer_expiration_ms: int = DAY_MS
    ) -> PartitionLog:
        """Open one partition that has a directory here; one without raises :class:`StorageError`."""
        self._require_online()
        return self.adopt(self.open_log(topic, partition, config, now_ms, producer_expiration_ms))

    def create_partition(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, now_ms: int
    ) -> PartitionLog:
        """Make a new, empty partition and open it."""
        self._require_online()
        self.write_checkpoints(self.forget([(topic, partition)]))
        self.make_partitions([(topic, partition, topic_id)])
        log = self.open_partition(topic, partition, config, now_ms)
        self.write_recovery_points()
        return log

    def make_partitions(self, partitions: Iterable[tuple[str, int, bytes]]) -> None:
        """Make the directories of new partitions: topic, partition and topic id of each. May run on any thread.

        What an interrupted attempt left is taken over; what another topic left is set aside. The names of the
        directories are durable when this returns, by one sync for all of them. What is in them is not: an empty
        partition needs nothing but its name, and its first flush brings the topic id to the disk
        (:meth:`takes_back`).
        """
        self._require_online()
        try:
            for topic, partition, topic_id in partitions:
                set_unknown_directory_aside(self.disk, self.path, topic, partition, topic_id)
                path = f"{self.path}/{partition_directory(topic, partition)}"
                self.disk.make_dir(path)
                write_topic_id(self.disk, path, topic_id, sync=False)
            self.disk.sync_dir(self.path)
        except OSError as error:
            raise self.fail(error) from error

    def open_made(self, partitions: Iterable[tuple[str, int, LogConfig]], now_ms: int) -> list[PartitionLog]:
        """Open new partitions, all or none. May run on any thread: they are not counted here before ``adopt``."""
        logs: list[PartitionLog] = []
        try:
            for topic, partition, config in partitions:
                logs.append(self.open_log(topic, partition, config, now_ms, DAY_MS))
        except StorageError:
            for log in logs:
                log.close()
            raise
        return logs

    def topic_id_of(self, topic: str, partition: int) -> bytes | None:
        """Whose the directory of that name is; ``None`` if it does not say so."""
        try:
            return read_topic_id(self.disk, f"{self.path}/{partition_directory(topic, partition)}")
        except IdentityError:
            return None

    def latest_epoch_of(self, topic: str, partition: int) -> int:
        """The newest leader epoch that a log here has been written under, which is not opened; -1 if nothing tells.

        After an unclean stop its checkpoint may not have what its batches above the recovery point tell.
        """
        path = f"{self.path}/{partition_directory(topic, partition)}"
        checkpointed = LeaderEpochs.load(self.disk, path).latest
        if self.was_clean:
            return checkpointed
        recovery_point = self.offset_checkpoints.recovery_points.get((topic, partition), 0)
        return max(checkpointed, latest_unflushed_epoch(self.disk, path, recovery_point))

    def was_never_flushed(self, topic: str, partition: int) -> bool:
        """Whether a directory was made here and nothing in it is proven: a power cut may have taken its topic id."""
        return self.failure is None and self.offset_checkpoints.recovery_points.get((topic, partition)) == 0

    def takes_back(self, topic: str, partition: int, topic_id: bytes) -> bool:
        """Give a directory that does not say whose it is its topic id again, if a power cut may have taken it."""
        if not self.was_never_flushed(topic, partition):
            return False
        try:
            write_topic_id(self.disk, f"{self.path}/{partition_directory(topic, partition)}", topic_id)
        except OSError as error:
            self.fail(error)
            return False
        return True

    def open_log(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        now_ms: int,
        producer_expiration_ms: int,
        name: str | None = None,
    ) -> PartitionLog:
        """Open and recover a log. May run on any thread: it is not counted here before ``adopt``.

        ``name`` is that of its directory where it is not the partition's own.
        """
        path = f"{self.path}/{name or partition_directory(topic, partition)}"
        key = (topic, partition)
        log_start_offset = self.offset_checkpoints.log_starts.get(key, 0)
        opening = Opening(
            clean=self.was_clean,
            recovery_point=self.offset_checkpoints.recovery_points.get(key, log_start_offset),
            log_start_offset=log_start_offset,
            high_watermark=self.offset_checkpoints.high_watermarks.get(key),
            may_have_gaps=self._may_have_gaps(key, config),
            now_ms=now_ms,
            producer_expiration_ms=producer_expiration_ms,
            initial_segment_bytes=initial_segment_bytes(config),
        )
        shape = IndexShape(config.segment_index_bytes, config.index_interval_bytes, OpenMaps(), IndexRebuilds())
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

    def _may_have_gaps(self, key: TopicPartition, config: LogConfig) -> bool:
        """Whether a gap may be a cleaner's work: the log is compacted, or was, as a cleaner's checkpoint tells.

        Without any checkpoint nothing says that a gap was not there when the batches were flushed.
        """
        known = self.offset_checkpoints
        return config.compact or key in known.cleaner_offsets or key not in known.recovery_points

    def adopt(self, log: PartitionLog) -> PartitionLog:
        """Count an open log among those of the directory."""
        log.on_failure = self.fail
        self.logs[log.topic, log.partition] = log
        # Only now: a failure on another thread sees the log, or the log sees the failure.
        if self.failure is not None:
            log.take_offline(self.failure)
        return log

    # Truncating

    def truncate(self, log: PartitionLog, offset: int, now_ms: int) -> Steps:
        """Cut the end of a log, or empty one that begins above ``offset``. Above the end it only forgets empty epochs.

        Checkpoints go down on disk before the log is cut, because what is written again above the cut is unproven.
        """
        log.require_online()
        if offset < log.segments.first.base_offset:
            yield from self.truncate_fully(log, offset, now_ms)
            return
        log.begin_truncation(offset)
        if log.is_truncating:
            yield from self._finish_truncation(log, now_ms)
        else:
            yield from log.forget_empty_epochs()
            yield from self._lower_checkpoints(log)

    def truncate_fully(self, log: PartitionLog, offset: int, now_ms: int) -> Steps:
        """Empty a log and begin it at ``offset``, which is written down first: without segments nothing else tells."""
        log.require_online()
        log.begin_truncation(offset, fully=True)
        yield from self._finish_truncation(log, now_ms)

    def _finish_truncation(self, log: PartitionLog, now_ms: int) -> Steps:
        yield from self._lower_checkpoints(log)
        # While a step was taken the partition may have been deleted, and made again: the checkpoints speak of that one.
        log.require_online()
        if log.is_starting_anew:
            key = (log.topic, log.partition)
            yield partial(self.write_checkpoints, self.offset_checkpoints.log_start_at(key, log.log_start_offset))
        yield from log.finish_truncation(now_ms)
        # The cut is at the start of a batch, which may lie below the offset that was asked for.
        yield from self._lower_checkpoints(log)

    def _lower_checkpoints(self, log: PartitionLog) -> Steps:
        """Make sure that no checkpoint on disk speaks of anything above the end of a log."""
        changed = self.offset_checkpoints.lowered_to(log)
        if changed:
            yield partial(self.write_checkpoints, changed)

    # Deleting

    def delete_partition(self, topic: str, partition: int) -> str | None:
        """Take a partition out of the directory; returns the renamed directory, whose removal may take its time."""
        self.close_partition(topic, partition)
        renamed: dict[TopicPartition, str] = {}
        self.rename_deleted([(topic, partition)], renamed)
        self.write_checkpoints(self.forget([(topic, partition)]))
        return renamed.get((topic, partition))

    def close_partition(self, topic: str, partition: int, why: str = "was deleted") -> None:
        """Stop using a partition that goes away."""
        log = self.logs.pop((topic, partition), None)
        if log is not None:
            log.close()
            log.take_offline(f"{log.name} {why}")

    def rename_deleted(self, partitions: Iterable[TopicPartition], renamed: dict[TopicPartition, str]) -> None:
        """Rename the directories of partitions that were closed, with one sync. May run on any thread.

        ``renamed`` is told each new path, also where this fails later; a partition without a directory is left out.
        """
        try:
            for topic, partition in partitions:
                path = f"{self.path}/{partition_directory(topic, partition)}"
                if self.disk.exists(path):
                    gone = f"{self.path}/{deleted_directory(topic, partition, uuid4().hex)}"
                    self.disk.rename(path, gone)
                    renamed[topic, partition] = gone
            self.disk.sync_dir(self.path)
        except OSError as error:
            raise self.fail(error) from error

    def set_aside(self, topic: str, partition: int) -> None:
        """Keep what is here of a partition that is elsewhere, under a name that nobody uses. May run on any thread."""
        try:
            aside = set_aside(self.disk, self.path, topic, partition)
            self.disk.sync_dir(self.path)
            logger.warning(
                "%s-%d is in another log directory, where it reaches further: kept as %s", topic, partition, aside
            )
        except OSError as error:
            raise self.fail(error) from error

    def remove_deleted(self, path: str, *, syncs: bool) -> None:
        """Remove a directory that was renamed; ``syncs`` makes its new name durable first. May run on any thread."""
        if syncs:
            try:
                self.disk.sync_dir(self.path)
            except OSError as error:
                self.fail(error)
                raise
        self.disk.remove_tree(path)

    def forget(self, partitions: Iterable[TopicPartition]) -> Checkpoints:
        """Drop what the checkpoints say of partitions that are gone or new; what has to be written for it."""
        return self.offset_checkpoints.without(partitions)

    def deleted_directories(self) -> list[str]:
        """Directories that were renamed away and not removed yet."""
        return [
            f"{self.path}/{entry.name}"
            for entry in self.disk.scan(self.path)
            if entry.is_dir and is_deleted_directory(entry.name)
        ]

    # Checkpoints

    def write_recovery_points(self) -> None:
        self.write_checkpoints(self.collect_recovery_points())

    def collect_recovery_points(self) -> Checkpoints:
        self._require_online()
        return self.offset_checkpoints.of_recovery_points(self.logs)

    def write_log_starts(self) -> None:
        self.write_checkpoints(self.collect_log_starts())

    def collect_log_starts(self) -> Checkpoints:
        self._require_online()
        return self.offset_checkpoints.of_log_starts(self.logs)

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self.write_checkpoints(self.offset_checkpoints.of_high_watermarks(high_watermarks))

    def write_cleaner_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.write_checkpoints(self.offset_checkpoints.of_cleaner_offsets(offsets, self.logs))

    def write_checkpoints(self, changed: Checkpoints) -> None:
        """Write some of the four files whole. May run on any thread."""
        if not changed:
            return
        self._require_online()
        try:
            self.offset_checkpoints.write(changed)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                # The old file is whole. What it must not say any more is owed: whoever relies on that writes it first.
                raise StorageError(f"a checkpoint of {self.path} cannot be written: {error}") from error
            raise self.fail(error) from error

    # Going offline and closing

    def _require_online(self) -> None:
        if self.failure is not None:
            raise StorageError(self.failure)

    def fail(self, error: OSError) -> StorageError:
        """Take the directory and all its partitions offline, the first time. May run on any thread.

        Not where only descriptors are missing: that goes by.
        """
        if is_temporary(error):
            logger.warning("%s: %s: it can be tried again", self.path, error)
            return StorageError(f"the log directory {self.path} cannot open files for now: {error}")
        failure = f"the log directory {self.path} is offline: {error}"
        with self._failing:
            is_first = self.failure is None
            self.failure = self.failure or failure
        if is_first:
            logger.error("%s", failure)
            # A copy: the loop may open and close partitions meanwhile.
            for log in list(self.logs.values()):
                log.take_offline(failure)
            if self.on_failure is not None:
                self.on_failure(self)
        return StorageError(self.failure)

    def close(self, threads: int = 1, *, is_marked: bool = True, broker_epoch: int | None = None) -> None:
        """Stop cleanly: every log flushed, the checkpoints written, and last of all the mark that says so.

        Logs are flushed several at a time: what takes long is waiting for the disk. After an unclean stop a
        partition that was not opened is still unproven, as is one that failed, and there is no mark. Nor is there one
        unless it ``is_marked``: then the next start counts as one after an unclean stop, with nothing to recover.

        The mark tells the ``broker_epoch`` of the run that ends. Who was not registered leaves the one that was there:
        Kafka's controller takes a mark with another epoch for an unclean stop, and so do members of a cluster.
        """
        if broker_epoch is not None:
            self.broker_epoch = broker_epoch
        try:
            for _ in _several_at_a_time(close_cleanly, list(self.logs.values()), threads, "lamina-closing"):
                pass
            if self.failure is None:
                self.write_recovery_points()
                self.write_log_starts()
                if is_marked:
                    self._mark_clean()
        finally:
            self.release()

    def _mark_clean(self) -> None:
        try:
            is_proven = self.was_clean or self.logs.keys() >= set(self.partitions())
            # Whoever was filling one may have left it.
            is_proven = is_proven and self.logs.keys() >= set(self.future_partitions())
            if is_proven and not any(log.failure for log in self.logs.values()):
                write_clean_shutdown(self.disk, self.path, self.broker_epoch)
        except OSError as error:
            raise self.fail(error) from error

    def release(self) -> None:
        """Give up the logs and the lock without any mark: the next start recovers."""
        for log in self.logs.values():
            log.close()
        if self._lock is not None:
            self._lock.close()


def _several_at_a_time(work: Callable[[T], R], items: Sequence[T], threads: int, name: str) -> Iterator[R]:
    """What the work on each item gives, in order; without threads where there is only one to use."""
    if threads == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix=name) as pool:
        yield from pool.map(work, items)
