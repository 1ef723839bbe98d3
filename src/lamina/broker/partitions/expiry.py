"""Retention on one partition of a running broker: what expired goes, with the names synced on threads (fact 95).

Owns the order of the steps; what expired is the log room's decision. Must not know when it is asked.
"""

import logging
from functools import partial

from lamina.broker.partitions.partition import Partition
from lamina.broker.threads import Threads
from lamina.log.retention import begin_expiry, expire, sync_names

logger = logging.getLogger(__name__)


async def expire_segments(threads: Threads, partition: Partition, now_ms: int) -> None:
    """Raises :class:`StorageError` when the disk does not take it."""
    log = partition.log
    expired = begin_expiry(log, now_ms, partition.high_watermark)
    if not expired:
        return
    await threads.run(partial(sync_names, log))
    for segment in expired:
        expire(log, segment, now_ms)
        await threads.run(partial(sync_names, log))
    logger.info("%s: %d segments expired", log.name, len(expired))
