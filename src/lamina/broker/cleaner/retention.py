"""Retention beside compaction (facts 30, 92 and 94): no pass begins while it runs, and it leaves open passes alone.

Must not decide what has expired: ``lamina.log`` does.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from lamina.broker.cleaner.candidates import CandidateSearch
from lamina.broker.cleaner.partition_states import CleaningStates, FailedPasses
from lamina.broker.partitions.partition import Partition
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.errors import KafkaError
from lamina.log.retention import delete_expired

logger = logging.getLogger(__name__)


class Retention:
    def __init__(
        self,
        clocks: Clocks,
        threads: Threads,
        search: CandidateSearch,
        states: CleaningStates,
        failed_passes: FailedPasses,
    ) -> None:
        self._clocks = clocks
        self._threads = threads
        self._search = search
        self._states = states
        self._failed_passes = failed_passes
        self.is_stopping = False

    async def expire_compacted(self) -> None:
        """Delete segments below the log start, and of ``compact,delete`` logs also old ones and those beyond the size.

        Not while a pass is open, whose sources would go, and not where a log is uncleanable.
        """
        for partition in self._search.compacted():
            if self.is_stopping:
                return
            if not self._failed_passes.is_uncleanable((partition.topic, partition.index)):
                await self.expire(partition)
                await asyncio.sleep(0)

    async def expire_others(self, partitions: AsyncIterator[Partition]) -> None:
        """Retention of logs that are not compacted; the compacted ones are visited after a round (fact 30)."""
        async for partition in partitions:
            if not partition.log.config.compact:
                await self.expire(partition)

    async def expire(self, partition: Partition) -> None:
        """Run retention on a partition that no pass is open for, and let none begin meanwhile."""
        key = (partition.topic, partition.index)
        if not self._search.is_served(partition) or not self._states.may_begin(key):
            return
        self._states.pause(key)
        try:
            await self._delete_expired(partition)
        except KafkaError as error:
            logger.warning("%s", error)
        finally:
            if self._search.is_served(partition):
                self._states.resume(key)

    async def _delete_expired(self, partition: Partition) -> None:
        """Names are synced on threads (fact 95). Raises :class:`StorageError` when the disk does not take it."""
        log = partition.log
        before = len(log.segments)
        for step in delete_expired(log, self._clocks.now_ms(), partition.high_watermark):
            await self._threads.run(step)
        if len(log.segments) < before:
            logger.info("%s: %d segments expired", log.name, before - len(log.segments))
