"""What is done for every partition again and again: flushes, checkpoints, old producers, deleted files, free space.

Owns the work; when it is due is the timers' business. Partitions are visited for a moment at a time, so that the loop
goes on. Retention is the cleaner's: no pass may begin meanwhile.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import StorageError
from lamina.log.directory import LogDirectory
from lamina.log.files import Disk
from lamina.log.offset_checkpoints import Checkpoints
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Upkeep:
    def __init__(self, clocks: Clocks, threads: Threads, directories: LogDirectories, partitions: Partitions) -> None:
        self._clocks = clocks
        self._threads = threads
        self._directories = directories
        self._partitions = partitions
        self._flushed_ms: dict[TopicPartition, int] = {}
        """When nothing was left to be flushed, of the partitions that there were at the last visit."""

    def in_turns(self) -> AsyncIterator[Partition]:
        """Every partition, giving way to requests in between, until the broker stops."""
        return in_turns(self._until_closing(), self._clocks)

    def _until_closing(self) -> Iterator[Partition]:
        for partition in list(self._partitions):
            if self._partitions.is_closing:
                return
            yield partition

    async def _visit(self, work: Callable[[Partition], None]) -> None:
        """Do ``work`` with every partition that is online. One that fails is passed over."""
        async for partition in self.in_turns():
            if partition.log.failure is None:
                try:
                    work(partition)
                except StorageError as error:
                    logger.warning("%s", error)

    async def remove_due(self) -> None:
        now_ms = self._clocks.now_ms()
        for partition in list(self._partitions):
            log = partition.log
            paths = log.take_due_paths(now_ms)
            if paths:
                try:
                    await self._threads.run(partial(_unlink, log.disk, paths))
                except OSError as error:
                    logger.warning("%s", log.fail(error))

    async def expire_producers(self, expiration_ms: int) -> None:
        now_ms = self._clocks.now_ms()
        await self._visit(lambda partition: partition.log.producers.expire(now_ms, expiration_ms))

    async def shrink_in_sync(self) -> None:
        """``replica.lag.time.max.ms``: have followers that are behind leave the in-sync sets of led partitions."""
        await self._visit(Partition.shrink_in_sync)

    async def flush_due(self) -> None:
        """``flush.ms``: what has been in the log that long is flushed, whatever wrote it."""
        now_ms, before_ms = self._clocks.monotonic_ms(), self._flushed_ms
        self._flushed_ms = {}

        def visit(partition: Partition) -> None:
            log = partition.log
            key = (partition.topic, partition.index)
            is_flushed = log.log_end_offset <= log.recovery_point
            since_ms = now_ms if is_flushed else before_ms.get(key, now_ms)
            if not is_flushed and now_ms - since_ms >= log.config.flush_ms:
                since_ms = now_ms
                partition.flush_in_background()
            self._flushed_ms[key] = since_ms

        await self._visit(visit)

    # Checkpoints

    async def write_recovery_points(self) -> None:
        await self._checkpoint(LogDirectory.collect_recovery_points)

    async def write_log_starts(self) -> None:
        await self._checkpoint(LogDirectory.collect_log_starts)

    async def write_high_watermarks(self) -> None:
        await self.note_high_watermarks()
        await self._checkpoint(_noted_high_watermarks)

    async def note_high_watermarks(self) -> None:
        """In turns of the loop, each noted as soon as it is read: what is cut meanwhile is noted lower after it."""
        async for partition in in_turns(list(self._partitions), self._clocks):
            key = (partition.topic, partition.index)
            directory = self._directories.of.get(key)
            if directory is not None and directory.logs.get(key) is partition.log:
                directory.offset_checkpoints.high_watermarks[key] = partition.high_watermark

    async def write_noted_high_watermarks(self, directory: LogDirectory) -> None:
        """Raises :class:`StorageError`."""
        await self._directories.checkpoint(directory, partial(_noted_high_watermarks, directory))

    async def _checkpoint(self, collect: Callable[[LogDirectory], Checkpoints]) -> None:
        """One directory that cannot take them keeps no other from its own."""
        for directory in self._directories.online:
            try:
                await self._directories.checkpoint(directory, partial(collect, directory))
            except StorageError as error:
                logger.warning("%s", error)

    # Free space

    async def measure_free_space(self, min_bytes: int) -> None:
        """``lamina.disk.free.min.bytes``: see what is free. A disk that cannot say has failed."""
        for directory in self._directories.online:
            space = self._directories.free_space[directory.path]
            taken_bytes = space.taken_bytes
            try:
                free_bytes = await self._threads.run(partial(directory.disk.free_bytes, directory.path))
            except OSError as error:
                directory.fail(error)
                continue
            space.measured(free_bytes, taken_bytes, min_bytes)


def _noted_high_watermarks(directory: LogDirectory) -> Checkpoints:
    return directory.offset_checkpoints.of_high_watermarks({})


def _unlink(disk: Disk, paths: list[str]) -> None:
    for path in paths:
        disk.unlink(path)
