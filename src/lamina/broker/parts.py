"""The parts of a broker, and what they do together: start without a socket, stop, close.

Owns the order of the start: what is stored is applied, producer ids begin above all that logs speak of, then this
broker registers and leads. Must not listen, nor know how the parts are made.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import Counters
from lamina.broker.metadata.alone import Alone
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.publisher import Publisher
from lamina.broker.moving.moves import Moves
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.read_leases import ReadLeases
from lamina.broker.partitions.removal import Removal
from lamina.broker.partitions.upkeep import Upkeep
from lamina.broker.readiness import Readiness
from lamina.broker.requests.fetch_sessions import FetchSessions
from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.requests.router import Router
from lamina.broker.requests.transaction_verification import TransactionVerification
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.controller.election import LogEnd
from lamina.errors import StorageError
from lamina.image.image import Broker
from lamina.log.directory import LogDirectory
from lamina.settings.broker import (
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
)
from lamina.storage import MemberStorage, StartError, Storage
from lamina.topic_partition import TopicPartition

if TYPE_CHECKING:
    from lamina.broker.member_parts import MemberParts
    from lamina.broker.metadata.member import Member
    from lamina.broker.replication.replica_fetchers import ReplicaFetchers

logger = logging.getLogger(__name__)

_CLOSING_FACTOR = 8


@dataclass(slots=True, kw_only=True)
class Parts:
    loop: asyncio.AbstractEventLoop
    clocks: Clocks
    storage: Storage | MemberStorage
    threads: Threads
    counters: Counters
    readiness: Readiness
    directories: LogDirectories
    partitions: Partitions
    read_leases: ReadLeases
    removal: Removal
    upkeep: Upkeep
    publisher: Publisher
    participant: "Alone | Member"
    member_parts: "MemberParts | None"
    """Those of a member of a cluster."""
    fetchers: "ReplicaFetchers | None"
    metadata: Metadata
    producer_ids: ProducerIdBlock
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verification: TransactionVerification
    cleaner: Cleaner
    moves: Moves
    request_watch: RequestWatch
    kernel_loading: KernelLoading
    fetch_sessions: FetchSessions
    router: Router
    actual_values: dict[str, str]
    unknown: list[str] = field(default_factory=list)
    """Partition directories that the metadata does not know; they are left alone."""

    async def start(self, broker: Broker, opened: Callable[[int, int], None] | None = None) -> None:
        """Open the logs and take the roles that the metadata gives this broker. Raises :class:`StartError`."""

        def progress(done: int, total: int) -> None:
            self.readiness.opened(done, total)
            if opened is not None:
                opened(done, total)

        self.unknown = list((await self.participant.start(broker, progress)).unknown)
        if not self.directories.online:
            raise StartError(f"no log directory can be used: {self.directories[0].failure}")
        highest_id, ends = -1, dict[TopicPartition, LogEnd]()
        async for partition in in_turns(list(self.partitions), self.clocks):
            log = partition.log
            if self.member_parts is not None:
                self.member_parts.check_leader_epoch(self.metadata.image, log)
            highest_id = max(highest_id, log.producers.highest_id)
            if log.producers.invented_id is not None:
                logger.warning(
                    "%s: no broker gave producer id %d: it is not counted", log.name, log.producers.invented_id
                )
            ends[partition.topic, partition.index] = LogEnd(log.epochs.latest, log.log_end_offset)
        self.producer_ids.start_above(highest_id)
        if self.member_parts is not None:
            await self.producer_ids.fill()
        await self.participant.serve(ends)

    def watch_directories(self, on_none_left: Callable[[str], None]) -> None:
        """Have partitions go offline with their directory; ``on_none_left`` is told why the broker cannot go on."""

        def failed(directory: LogDirectory) -> None:
            self.loop.call_soon_threadsafe(took_offline, directory)

        def took_offline(directory: LogDirectory) -> None:
            self.partitions.directory_failed()
            if not self.directories.online:
                on_none_left(f"no log directory is left: {directory.failure}")

        for directory in self.directories:
            directory.on_failure = failed

    async def stop(self) -> None:
        """End what works by itself, and answer whoever waits."""
        await self.verification.close()
        await self.transactions.close()
        self.groups.runtime.close()
        await self.cleaner.stop()
        await self.moves.stop()
        await self.kernel_loading.stop()
        if self.fetchers is not None:
            await self.fetchers.stop()
        await self.partitions.release_all(self.clocks)
        if self.member_parts is not None:
            self.member_parts.member.release_followers()

    async def close(self) -> list[str]:
        """Finish changes, flush and close the logs. Returns why the stop was not clean, if it was not."""
        await self.participant.finish_changes()
        if self.member_parts is not None:
            await self.member_parts.leave()
        # While the directories are still locked.
        await self.read_leases.close()
        self.removal.stop()
        failures = []
        await self.upkeep.note_high_watermarks()
        for directory in self.directories:
            try:
                await self._close(directory)
            except StorageError as error:
                failures.append(f"the stop was not clean: {error}")
        self.storage.database.close()
        self.threads.close()
        return failures

    async def _close(self, directory: LogDirectory) -> None:
        """Raises :class:`StorageError` where its disk fails; whatever happens, it is let go of."""
        count = closing_threads(self.metadata.settings[NUM_RECOVERY_THREADS_PER_DATA_DIR])
        # Else the next start would not tell that an unclean stop may have cost committed records.
        is_marked = self.member_parts is None or not self.member_parts.following.is_stop_unanswered
        epoch = None if self.member_parts is None else self.member_parts.member.broker_epoch
        try:
            if directory.failure is None:
                await self.upkeep.write_noted_high_watermarks(directory)
        finally:
            await self.threads.run(partial(directory.close, count, is_marked=is_marked, broker_epoch=epoch))


def closing_threads(recovery_threads: int) -> int:
    """Recovery computes; who closes logs waits for the disk, which syncs many files about as fast as one."""
    return 1 if recovery_threads == 1 else recovery_threads * _CLOSING_FACTOR
