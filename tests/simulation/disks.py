"""The disks of a machine, each with one log directory: opened, without power, empty, broken and repaired.

Must not know brokers, nor when any of it happens.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from lamina.log.directory import DiskUnusable, LogDirectory
from lamina.log.names import parse_partition_directory
from lamina.topic_partition import TopicPartition
from tests.simulation.memory_disk import MemoryDisk

PATHS = ("/logs", "/more")


class Disks:
    def __init__(self, count: int, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.paths = PATHS[:count]
        self._disks = [MemoryDisk(now_ms) for _ in self.paths]

    def __len__(self) -> int:
        return len(self._disks)

    def open(self, node_id: int, cluster_id: str | None) -> list[LogDirectory]:
        """As a broker does: one that refuses is offline from the start. There is always one that does not."""
        return [self._open(path, disk, node_id, cluster_id) for path, disk in zip(self.paths, self._disks, strict=True)]

    @staticmethod
    def _open(path: str, disk: MemoryDisk, node_id: int, cluster_id: str | None) -> LogDirectory:
        try:
            return LogDirectory.open(path, node_id=node_id, cluster_id=cluster_id, disk=disk)
        except DiskUnusable as error:
            return LogDirectory.unusable(path, str(error), disk)

    def unlock(self) -> None:
        for disk in self._disks:
            disk.unlock()

    def cut_power(self, rng: Random) -> None:
        """What was not synced may be lost. What is broken stays so."""
        for number, disk in enumerate(self._disks):
            self._disks[number] = disk.after_power_cut(rng)
            self._disks[number].is_broken = disk.is_broken

    def wipe(self) -> None:
        for number in range(len(self._disks)):
            self.wipe_one(number)

    # One of them

    @property
    def broken(self) -> int | None:
        return next((number for number, disk in enumerate(self._disks) if disk.is_broken), None)

    @contextmanager
    def readable(self) -> Iterator[None]:
        """For whoever looks from outside: what is broken can be read meanwhile."""
        broken = self.broken
        if broken is not None:
            self.repair(broken)
        try:
            yield
        finally:
            if broken is not None:
                self.break_one(broken)

    def break_one(self, number: int) -> None:
        self._disks[number].is_broken = True

    def repair(self, number: int) -> None:
        self._disks[number].is_broken = False

    def wipe_one(self, number: int) -> None:
        """In place of it there is an empty one."""
        self._disks[number] = MemoryDisk(self._now_ms)

    def partitions_on(self, number: int) -> list[TopicPartition]:
        """Those that have a directory there, also where it is broken."""
        found = map(parse_partition_directory, self._disks[number].names(self.paths[number]))
        return [partition for partition in found if partition is not None]
