"""Retention beside compaction (facts 30, 92 and 94): no pass begins while it runs, and it leaves open passes alone.

Must not decide what expired: the log room does.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from lamina.broker.cleaner.lookout import Lookout
from lamina.broker.cleaner.states import CleaningStates
from lamina.broker.cleaner.troubles import Troubles
from lamina.broker.partitions.expiry import expire_segments
from lamina.broker.partitions.partition import Partition
from lamina.errors import KafkaError

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)


class Trimmer:
    def __init__(self, node: "Node", lookout: Lookout, states: CleaningStates, troubles: Troubles) -> None:
        self._node = node
        self._lookout = lookout
        self._states = states
        self._troubles = troubles

    async def trim(self) -> None:
        """Remove what lies below the log start, and of ``compact,delete`` logs also what is old or too much.

        Not while a pass is open, whose sources would go, and not where a log is uncleanable.
        """
        for partition in self._lookout.compacted():
            if self._node.is_stopping:
                return
            if not self._troubles.is_uncleanable((partition.topic, partition.index)):
                await self.expire(partition)
                await asyncio.sleep(0)

    async def retain(self, partitions: AsyncIterator[Partition]) -> None:
        """Retention of all other logs (fact 30: compacted ones are trimmed after they were cleaned)."""
        async for partition in partitions:
            if not partition.log.config.compact:
                await self.expire(partition)

    async def expire(self, partition: Partition) -> None:
        """Run retention on a partition that no pass is open for, and let none begin meanwhile."""
        key = (partition.topic, partition.index)
        if not self._lookout.is_served(partition) or not self._states.may_begin(key):
            return
        self._states.pause(key)
        try:
            await expire_segments(self._node.threads, partition, self._node.now_ms())
        except KafkaError as error:
            logger.warning("%s", error)
        finally:
            if self._lookout.is_served(partition):
                self._states.resume(key)
