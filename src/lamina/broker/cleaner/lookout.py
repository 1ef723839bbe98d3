"""Looking at every compacted log in turn: how dirty it is, and what the last look found.

Owns the figures of the last look (facts 23 and 100). Logs are visited for a moment at a time, so that the loop goes on.
Must not decide what is cleaned.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lamina.broker.cleaner.sight import Sight, see
from lamina.broker.partitions.partition import Partition
from lamina.log.checkpoints import TopicPartition

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)

_TURN_MS = 1


class Unseen(Exception):
    """A log that cannot be looked at."""

    def __init__(self, key: TopicPartition, error: Exception) -> None:
        super().__init__(f"it cannot be looked at: {error}")
        self.key = key


class Lookout:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self.max_dirty_ratio = 0.0
        """Over all logs that hold anything, eligible or not."""
        self.max_overdue_ms = 0
        self._cleanable = self._overdue = 0
        self.looked_at_ms = node.now_ms()

    def compacted(self) -> list[Partition]:
        """The partitions that are to be compacted and can be used."""
        return [one for one in self._node.partitions if one.log.config.compact and one.log.failure is None]

    def is_served(self, partition: Partition) -> bool:
        return self._node.partitions.find(partition.topic, partition.index) is partition

    def look(self, partition: Partition) -> Sight:
        """What could be cleaned of a partition now. Raises for one whose files cannot be looked at."""
        key = (partition.topic, partition.index)
        checkpoint = self._node.directories.of[key].remembered.cleaner_offsets.get(key)
        return see(partition, checkpoint, self._node.now_ms())

    async def look_at_all(self, may_be_cleaned: Callable[[TopicPartition], bool]) -> list[Sight]:
        """Every log that may be cleaned now. Raises :class:`Unseen` at one that cannot be looked at (fact 24)."""
        sights: list[Sight] = []
        began_ms = self._node.monotonic_ms()
        self.looked_at_ms = self._node.now_ms()
        for partition in self.compacted():
            key = (partition.topic, partition.index)
            if self.is_served(partition) and may_be_cleaned(key):
                try:
                    sights.append(self.look(partition))
                except Exception as error:
                    raise Unseen(key, error) from error
            if self._node.monotonic_ms() - began_ms >= _TURN_MS:
                await asyncio.sleep(0)
                began_ms = self._node.monotonic_ms()
        filled = [one.cleanable for one in sights if one.cleanable.clean_bytes + one.cleanable.cleanable_bytes]
        self.max_dirty_ratio = max((one.dirty_ratio for one in filled), default=0.0)
        self.max_overdue_ms = max((one.overdue_ms for one in filled), default=0)
        self._cleanable = sum(one.cleanable_bytes > 0 for one in filled)
        self._overdue = sum(one.overdue_ms > 0 for one in filled)
        return sights

    def tell_delays(self) -> None:
        """Fact 101: what is said after a pass of logs that wait beyond ``max.compaction.lag.ms``."""
        if self._overdue:
            logger.info(
                "logs that could be cleaned: %d; of them overdue: %d, the longest by %d ms",
                self._cleanable,
                self._overdue,
                self.max_overdue_ms,
            )
