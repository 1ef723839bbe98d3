"""What readers in other processes have been lent: ranges of the files of partitions that this broker leads.

Owns which leases there are and when each ends: given back, not renewed in time, or revoked because the disk is nearly
full and the files are kept by the lease alone. Leases are in memory; the folders of a broker that was killed are
removed when it starts again. Must not know how a reader is told.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from uuid import UUID, uuid4

from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.errors import PolicyViolation, ResourceNotFound, StorageError
from lamina.log.directory import LogDirectory
from lamina.log.lending import LentFile, are_unchanged, find_ranges, held_bytes, link_files, remove_lent
from lamina.log.names import READING_FOLDER
from lamina.log.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)

LEASE_MS = 30_000
"""How long a lease holds unless it is renewed."""
MOST_SEGMENTS = 16
"""In one lease: who reads on asks for the next ones, so that retention frees what has been read."""
_TRIES = 3


class Ended(StrEnum):
    """How a lease ended."""

    GIVEN_BACK = "given_back"
    LAPSED = "lapsed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    start: int
    end: int
    isolation_level: int
    boot_id: str
    """Of the reader's machine."""
    reader: str
    """What people are told of who reads."""
    principal: str
    """Who may say that it still reads, or no more."""


@dataclass(slots=True, eq=False)
class ReadLease:
    id: UUID
    reader: str
    principal: str
    topic: str
    index: int
    leader_epoch: int
    start_offset: int
    end_offset: int
    """There is no more in the log up to there than in the files."""
    aborted: list[AbortedTransaction]
    """Whose records a reader of committed ones has to skip."""
    directory: LogDirectory
    folder: str
    began_ms: int
    files: list[LentFile]
    due_ms: int
    """On the monotonic clock."""
    number: int = 0
    """What people know it by: the id is for the reader alone, who ends it by that."""
    held_bytes: int = 0
    """What only this lease keeps on the disk, as of the last look."""


class ReadLeases:
    def __init__(
        self,
        clocks: Clocks,
        threads: Threads,
        directories: LogDirectories,
        partitions: Partitions,
        most: Callable[[], int],
    ) -> None:
        self._clocks = clocks
        self._threads = threads
        self._directories = directories
        self._partitions = partitions
        self._most = most
        self._leases: dict[UUID, ReadLease] = {}
        self._being_made = 0
        self._boot_id = ""
        """Of this machine, once it was asked for; empty where the system does not tell."""
        self._is_closed = False
        self.granted = 0
        self.ended: Counter[Ended] = Counter()

    def __iter__(self) -> Iterator[ReadLease]:
        return iter(self._leases.values())

    def __len__(self) -> int:
        return len(self._leases)

    # Lending

    async def lend(self, partition: Partition, asked: LeaseRequest) -> ReadLease:
        """One without files, which need not be given back, where there is nothing to lend.

        Raises POLICY_VIOLATION where files are not lent, and what a leader tells who fetches.
        """
        self._check_allowed(partition)
        self._being_made += 1
        try:
            is_near = await self._is_near(partition, asked.boot_id)
            for _ in range(_TRIES):
                lease = await self._try_to_lend(partition, asked, is_near=is_near)
                if lease is not None:
                    return lease
        finally:
            self._being_made -= 1
        raise StorageError(f"the segments of {partition.log.name} were replaced again and again meanwhile")

    def _check_allowed(self, partition: Partition) -> None:
        most = self._most()
        if not most or self._is_closed:
            raise PolicyViolation("this broker lends no files: lamina.read.leases.max is 0")
        if len(self._leases) + self._being_made >= most:
            raise PolicyViolation(f"this broker has lent files {most} times, and not more: lamina.read.leases.max")
        space = self._directories.free_space_of((partition.topic, partition.index))
        if space.is_low:
            raise PolicyViolation(f"no files are lent: {space.sentence}")

    async def _is_near(self, partition: Partition, boot_id: str) -> bool:
        """Whether a reader sees the page cache of this machine: on another one it sees what a shared disk has."""
        if not self._boot_id:
            self._boot_id = await self._threads.run(partition.log.disk.boot_id)
        return bool(boot_id) and boot_id == self._boot_id

    async def _try_to_lend(self, partition: Partition, asked: LeaseRequest, *, is_near: bool) -> ReadLease | None:
        """``None`` where segments went or were replaced before they had their links."""
        log, leader = partition.log, partition.require_leader()
        epoch = leader.epoch
        bound = partition.bound(asked.isolation_level)
        if not is_near:
            bound = min(bound, log.recovery_point)
        ranges = find_ranges(log, asked.start, asked.end, bound, MOST_SEGMENTS)
        directory = self._directories.of[partition.topic, partition.index]
        lease_id = uuid4()
        lease = ReadLease(
            lease_id,
            asked.reader,
            asked.principal,
            partition.topic,
            partition.index,
            epoch,
            asked.start,
            ranges.end_offset,
            ranges.aborted,
            directory,
            f"{directory.path}/{READING_FOLDER}/{lease_id.hex}",
            self._clocks.now_ms(),
            [],
            0,
        )
        if not ranges.found:
            return lease
        try:
            lease.files = await self._threads.run(partial(link_files, directory.disk, lease.folder, ranges))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PolicyViolation(f"no files of {directory.path} can be lent: {error.strerror}") from error
        is_there = self._partitions.find(partition.topic, partition.index) is partition
        # Only a log that is not led is cut, and what is cut is what no reader was shown.
        is_led = partition.leader is not None and partition.leader.epoch == epoch
        if self._is_closed or not (is_there and is_led and are_unchanged(log, ranges)):
            await self._remove(lease)
            partition.require_leader()
            return None
        lease.due_ms = self._clocks.monotonic_ms() + LEASE_MS
        self._leases[lease.id] = lease
        self.granted += 1
        lease.number = self.granted
        return lease

    # Holding and giving back

    def topic_of(self, lease_id: UUID | None, principal: str) -> str:
        """Raises RESOURCE_NOT_FOUND for one that has ended, or is another's; so do the two below."""
        return self._find(lease_id, principal).topic

    def renew(self, lease_id: UUID | None, principal: str) -> None:
        self._find(lease_id, principal).due_ms = self._clocks.monotonic_ms() + LEASE_MS

    async def give_back(self, lease_id: UUID | None, principal: str) -> None:
        await self._end(self._find(lease_id, principal), Ended.GIVEN_BACK)

    def _find(self, lease_id: UUID | None, principal: str) -> ReadLease:
        """The id of zeros, which the wire reads as none, is nobody's."""
        lease = None if lease_id is None else self._leases.get(lease_id)
        if lease is None or lease.principal != principal:
            raise ResourceNotFound(
                f"there is no such lease: it was not renewed for {LEASE_MS} ms, was revoked, or the broker "
                "has restarted"
            )
        return lease

    async def end_due(self) -> None:
        """End what was not renewed, see what leases keep on the disk, and revoke that where it is nearly full."""
        now_ms = self._clocks.monotonic_ms()
        for lease in list(self._leases.values()):
            if lease.due_ms <= now_ms:
                await self._end(lease, Ended.LAPSED)
        leases = list(self._leases.values())
        found = await self._threads.run(partial(_measure, leases)) if leases else []
        for lease, size_bytes in zip(leases, found, strict=True):
            lease.held_bytes = size_bytes
            if size_bytes and self._directories.free_space[lease.directory.path].is_low:
                logger.warning(
                    "%s takes back what it lent %s of %s-%d, %d bytes: its disk is nearly full",
                    lease.directory.path,
                    lease.reader,
                    lease.topic,
                    lease.index,
                    lease.held_bytes,
                )
                await self._end(lease, Ended.REVOKED)

    async def close(self) -> None:
        """Take all back: the broker stops."""
        self._is_closed = True
        self.ended[Ended.REVOKED] += len(self._leases)
        self._leases.clear()
        for directory in self._directories.online:
            try:
                await self._threads.run(partial(remove_lent, directory.disk, directory.path))
            except OSError as error:
                logger.warning("what was lent of %s stays until the next start: %s", directory.path, error)

    async def _end(self, lease: ReadLease, how: Ended) -> None:
        if self._leases.pop(lease.id, None) is not None:
            self.ended[how] += 1
            await self._remove(lease)

    async def _remove(self, lease: ReadLease) -> None:
        try:
            await self._threads.run(partial(lease.directory.disk.remove_tree, lease.folder))
        except OSError as error:
            logger.warning("%s stays until the next start: %s", lease.folder, error)


def _measure(leases: list[ReadLease]) -> list[int]:
    """What each keeps, on a thread; nothing of one that has just ended, or whose disk does not say."""
    found = []
    for lease in leases:
        try:
            found.append(held_bytes(lease.directory.disk, lease.folder))
        except OSError:
            found.append(0)
    return found
