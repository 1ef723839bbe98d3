"""The log directories of this broker: which partition lives in which, how much space each has, their checkpoints.

Owns where new partitions go and to where others move, and that an older checkpoint never overtakes a newer one. Must
not know what is in a log.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heapreplace

from lamina.broker.partitions.free_space import FreeSpace
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns
from lamina.errors import LogDirNotFound, PolicyViolation
from lamina.log.directory import LogDirectory
from lamina.log.offset_checkpoints import Checkpoints
from lamina.topic_partition import TopicPartition

_FORGOTTEN_AT_A_TIME = 500
"""Within a millisecond, and as long again for a copy of all that is left."""


class LogDirectories:
    def __init__(self, directories: Iterable[LogDirectory], threads: Threads) -> None:
        self._directories = list(directories)
        self._threads = threads
        self._checkpointing = asyncio.Lock()
        self.free_space = {directory.path: FreeSpace(directory.path) for directory in self._directories}
        """By the path of a directory."""
        self.of: dict[TopicPartition, LogDirectory] = {}
        """Where each partition of this broker lives."""
        self.futures: dict[TopicPartition, LogDirectory] = {}
        """Where partitions are moved to."""
        self.asked: dict[TopicPartition, LogDirectory] = {}
        """Where partitions are to live that this broker does not have yet (R66)."""

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._directories)

    def __getitem__(self, number: int) -> LogDirectory:
        return self._directories[number]

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory.failure is None]

    @property
    def are_all_online(self) -> bool:
        return all(directory.failure is None for directory in self._directories)

    def at(self, path: str) -> LogDirectory:
        """The one with this path; raises LOG_DIR_NOT_FOUND."""
        for directory in self._directories:
            if path == directory.path or (path.startswith("/") and directory.disk.absolute(path) == directory.path):
                return directory
        paths = ", ".join(directory.path for directory in self._directories)
        raise LogDirNotFound(f"this broker has no log directory {path}: it has {paths}")

    # Space

    def free_space_of(self, partition: TopicPartition) -> FreeSpace:
        return self.free_space[self.of[partition].path]

    @property
    def low(self) -> list[FreeSpace]:
        """Of the directories to which nothing is written now, because their disks are nearly full."""
        return [space for directory in self.online if (space := self.free_space[directory.path]).is_low]

    def check_free_space(self) -> None:
        """Raise POLICY_VIOLATION if no log directory has space for more partitions."""
        spaces = [self.free_space[directory.path] for directory in self.online]
        if spaces and all(space.is_low for space in spaces):
            raise PolicyViolation(spaces[0].sentence)

    def places_for(self, partitions: Sequence[TopicPartition]) -> list[LogDirectory]:
        """A directory for each new partition: the one that was asked for, else the one that has fewest by then.

        Those whose disk is nearly full are left out as long as there are others. None at all when every directory
        is offline.
        """
        online = self.online
        if not online:
            return []
        online = [directory for directory in online if not self.free_space[directory.path].is_low] or online
        held = Counter(id(directory) for directory in (*self.of.values(), *self.futures.values()))
        heap = [(held[id(directory)], number) for number, directory in enumerate(online)]
        heapify(heap)
        chosen = []
        for partition in partitions:
            asked = self.asked.get(partition)
            if asked is not None and asked.failure is None:
                chosen.append(asked)
                continue
            count, number = heap[0]
            heapreplace(heap, (count + 1, number))
            chosen.append(online[number])
        return chosen

    # Checkpoints

    async def checkpoint(self, directory: LogDirectory, collect: Callable[[], Checkpoints]) -> None:
        """Write checkpoints of a directory as they are when its turn comes."""
        async with self._checkpointing:
            changed = collect()
            await self._threads.run(lambda: directory.write_checkpoints(changed))

    async def forget(self, directory: LogDirectory, partitions: Sequence[TopicPartition], turns: Turns) -> None:
        """Drop what the checkpoints say of partitions that are gone or new, in turns of the loop."""
        async with self._checkpointing:
            for start in range(0, len(partitions), _FORGOTTEN_AT_A_TIME):
                directory.forget(partitions[start : start + _FORGOTTEN_AT_A_TIME])
                await turns.step()
            owed = directory.forget(())
            await self._threads.run(lambda: directory.write_checkpoints(owed))
