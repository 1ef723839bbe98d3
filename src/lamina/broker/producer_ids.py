"""Producer ids for this broker's clients, from blocks that the store hands out.

Owns the block in hand. Must not know who uses an id.
"""

import asyncio

from lamina.broker.threads import Threads
from lamina.store.producer_ids import ProducerIds


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

    async def next(self) -> int:
        """An id that nobody had before."""
        while not self._block:
            if self._refill is None:
                self._refill = self._threads.run(lambda: self._ids.next_block(self._at_least))
                self._refill.add_done_callback(self._refilled)
            # All who wait share one block; one who goes away does not take it from the others.
            await asyncio.shield(self._refill)
        next_id, self._block = self._block[0], self._block[1:]
        return next_id

    def _refilled(self, refill: "asyncio.Future[range]") -> None:
        self._refill = None
        if not refill.cancelled() and refill.exception() is None:
            self._block = refill.result()
