"""Writing down how far logs are clean (facts 88 and 89).

Owns the offsets that wait to be written: those of passes that end while a checkpoint is being written go together into
the next. Must not know passes.
"""

import asyncio
from typing import TYPE_CHECKING

from lamina.broker.partitions.partition import Partition
from lamina.log.directory import LogDirectory
from lamina.log.remembered import Checkpoints

if TYPE_CHECKING:
    from lamina.broker.node import Node


class CleanerCheckpoints:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._offsets: dict[str, dict[Partition, int]] = {}
        """By the path of a log directory."""
        self._writing: dict[str, asyncio.Task[None]] = {}

    async def write(self, partition: Partition, offset: int) -> None:
        """Returns when it is on disk, or the partition is gone; raises :class:`StorageError`."""
        directory = self._node.directories.of.get((partition.topic, partition.index))
        if directory is None:
            return
        self._offsets.setdefault(directory.path, {})[partition] = offset
        if directory.path not in self._writing:
            self._writing[directory.path] = self._node.loop.create_task(self._write(directory))
        await asyncio.shield(self._writing[directory.path])

    async def _write(self, directory: LogDirectory) -> None:
        def collect() -> Checkpoints:
            # Who comes from now on waits for the next one.
            del self._writing[directory.path]
            offsets = {
                (partition.topic, partition.index): offset
                for partition, offset in self._offsets.pop(directory.path).items()
                if self._node.partitions.find(partition.topic, partition.index) is partition
            }
            return directory.remembered.of_cleaner_offsets(offsets, directory.logs)

        try:
            await self._node.checkpoint(directory, collect)
        finally:
            # Where it failed before it came to that.
            if self._writing.get(directory.path) is asyncio.current_task():
                del self._writing[directory.path]
                del self._offsets[directory.path]
