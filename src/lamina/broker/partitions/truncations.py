"""Truncating the logs of followers: in steps, those that wait for the disk on threads.

Owns which logs are being truncated, so that one follows the other whoever asks, and that no cleaning pass is open
meanwhile: its result would bring back what is cut. Must not know why a log is truncated.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from lamina.broker.partitions.follower import Follower
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.tasks import to_its_end
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.errors import StorageError
from lamina.log.directory import LogDirectory
from lamina.log.steps import Steps
from lamina.topic_partition import TopicPartition


class CleaningPauses(Protocol):
    """The cleaner, as far as a truncation has to know it."""

    async def pause(self, key: TopicPartition) -> None:
        """Abort an open pass, wait for one that is being installed, and begin none until `resume`."""

    def resume(self, key: TopicPartition) -> None: ...


class Truncations:
    def __init__(
        self,
        clocks: Clocks,
        threads: Threads,
        directories: LogDirectories,
        partitions: Partitions,
        cleaning: CleaningPauses,
    ) -> None:
        self._clocks = clocks
        self._threads = threads
        self._directories = directories
        self._partitions = partitions
        self._cleaning = cleaning
        self._running: dict[TopicPartition, asyncio.Task[None]] = {}

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Have the log end at ``offset``; one that starts above it starts anew there. Raises :class:`StorageError`."""
        await self._run(partition, lambda directory: directory.truncate(partition.log, offset, self._clocks.now_ms()))

    async def start_anew(self, partition: Partition, offset: int) -> None:
        """Have the log be empty and start at ``offset``. Raises :class:`StorageError`."""
        now_ms = self._clocks.now_ms()
        await self._run(partition, lambda directory: directory.truncate_fully(partition.log, offset, now_ms))

    def is_pending(self, partition: Partition) -> bool:
        """Whether its log is being truncated, or a truncation has failed before its end."""
        return (partition.topic, partition.index) in self._running or partition.log.is_truncating

    async def finish_all(self) -> None:
        """Wait for all that are under way."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def wait_for(self, topic: str, index: int) -> None:
        """Wait until none is under way, whatever becomes of it: no step comes after the log is closed."""
        while (topic, index) in self._running:
            await asyncio.wait((self._running[topic, index],))

    async def finish(self, partition: Partition) -> None:
        """Wait for the one that is under way, and do what one has left that failed. Raises :class:`StorageError`."""
        running = self._running.get((partition.topic, partition.index))
        if running is not None:
            await asyncio.wait((running,))
        if partition.log.is_truncating:
            await self.truncate(partition, partition.log.log_end_offset)

    async def _run(self, partition: Partition, begin: Callable[[LogDirectory], Steps]) -> None:
        key, follower = (partition.topic, partition.index), partition.follower
        while key in self._running:
            await asyncio.wait((self._running[key],))
        task = self._running[key] = asyncio.create_task(self._take_steps(partition, follower, begin))
        task.add_done_callback(lambda _: self._running.pop(key))
        # Whoever gives up does not leave a log half cut.
        await to_its_end(task)

    async def _take_steps(
        self, partition: Partition, follower: Follower | None, begin: Callable[[LogDirectory], Steps]
    ) -> None:
        """In the role in which it was asked for."""
        key = (partition.topic, partition.index)
        if not self._is_served(partition):
            raise StorageError(f"{partition.log.name} was deleted")
        await self._cleaning.pause(key)
        try:
            # Meanwhile this broker may have come to lead: what it acknowledges since then must not be cut.
            is_in_role = partition.leader is None and partition.follower is follower
            if self._is_served(partition) and is_in_role:
                for step in begin(self._directories.of[key]):
                    partition.was_truncated()
                    await self._threads.run(step)
                partition.was_truncated()
        finally:
            if self._is_served(partition):
                self._cleaning.resume(key)

    def _is_served(self, partition: Partition) -> bool:
        return self._partitions.find(partition.topic, partition.index) is partition
