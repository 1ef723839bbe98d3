"""Retention on one partition of a running broker: what expired goes, with the names synced on threads (fact 95).

Owns the order of the steps; what expired is the log room's decision. Must not know when it is asked.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING

from lamina.broker.partitions.partition import Partition
from lamina.log.retention import begin_expiry, expire, sync_names

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)


async def expire_segments(node: "Node", partition: Partition, now_ms: int) -> None:
    """Raises :class:`StorageError` when the disk does not take it."""
    log = partition.log
    expired = begin_expiry(log, now_ms, partition.high_watermark)
    if not expired:
        return
    await node.threads.run(partial(sync_names, log))
    for segment in expired:
        expire(log, segment, now_ms)
        await node.threads.run(partial(sync_names, log))
    logger.info("%s: %d segments expired", log.name, len(expired))
