"""Retention on one partition of a running broker: what expired goes, with the names synced on threads (fact 95).

Owns the order of the steps; what expired is the log room's decision. Must not know when it is asked.
"""

import logging

from lamina.broker.partitions.partition import Partition
from lamina.broker.threads import Threads
from lamina.log.retention import delete_expired

logger = logging.getLogger(__name__)


async def expire_segments(threads: Threads, partition: Partition, now_ms: int) -> None:
    """Raises :class:`StorageError` when the disk does not take it."""
    log = partition.log
    before = len(log.segments)
    for step in delete_expired(log, now_ms, partition.high_watermark):
        await threads.run(step)
    if len(log.segments) < before:
        logger.info("%s: %d segments expired", log.name, before - len(log.segments))
