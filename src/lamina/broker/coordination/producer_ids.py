"""Producer ids for this broker's clients, from blocks that the store hands out.

Owns the block in hand. Must not know who uses an id.
"""

import asyncio
import logging

from lamina.broker.threads import Threads
from lamina.errors import CoordinatorLoadInProgress
from lamina.store.interface import StoreError
from lamina.store.producer_ids import ProducerIds

logger = logging.getLogger(__name__)


class ProducerIdBlock:
    def __init__(self, ids: ProducerIds, threads: Threads) -> None:
        self._ids = ids
        self._threads = threads
        self._at_least = 0
        self._block = range(0)
        self._refill: asyncio.Future[range] | None = None

    def start_above(self, highest: int) -> None:
        """No id up to this one is given: a log speaks of it."""
        self._at_least = highest + 1

    async def fill(self) -> None:
        """Take a block before anybody asks, so that new producers are served while the store is away."""
        try:
            if not self._block:
                await self._await_block()
        except CoordinatorLoadInProgress as error:
            logger.warning("no producer ids were taken at start, they are when somebody asks: %s", error)

    async def next(self) -> int:
        """A new id, never given out before. Raises COORDINATOR_LOAD_IN_PROGRESS while the store gives none."""
        while not self._block:
            await self._await_block()
        next_id, self._block = self._block[0], self._block[1:]
        return next_id

    async def _await_block(self) -> None:
        refill = self._refill
        if refill is None:
            refill = self._refill = self._threads.run(lambda: self._ids.next_block(self._at_least))
        try:
            # All who wait share one block; one who goes away does not take it from the others.
            block = await asyncio.shield(refill)
        except Exception as error:
            self._take(refill, range(0))
            if isinstance(error, StoreError):
                raise CoordinatorLoadInProgress(f"the store gives no producer ids now: {error}") from error
            raise
        self._take(refill, block)

    def _take(self, refill: "asyncio.Future[range]", block: range) -> None:
        """The first who comes back with a block takes it for all. A future that is done is waited for without a pause,
        so do not count on a callback of it."""
        if self._refill is refill:
            self._refill, self._block = None, block
