"""A fetch that found too little and waits for more.

Must not know how the fetch reads; it is told of growth and wakes its owner.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context

from lamina.broker.partitions.partition import Partition


class ParkedFetch:
    __slots__ = ("_future", "_is_committed", "_loop", "_missing_bytes")

    def __init__(self, loop: asyncio.AbstractEventLoop, missing_bytes: int, *, is_committed: bool) -> None:
        """``is_committed`` where only committed records are read: then the end of a transaction is worth a look."""
        self._loop = loop
        self._missing_bytes = missing_bytes
        self._is_committed = is_committed
        self._future: asyncio.Future[bool] = loop.create_future()

    async def wait(self, partitions: Sequence[tuple[Partition, int]], deadline: float) -> bool:
        """Return when enough has come, when the loop's time is over, or when waiting has become pointless.

        Each partition comes with the ``grown_bytes`` that it had when it was read: what came since then counts, though
        nobody was parked. Says whether more may come.
        """
        for partition, seen_bytes in partitions:
            partition.park(self)
            if not partition.may_grow:
                self.stop_waiting()
            elif partition.grown_bytes != seen_bytes:
                self.changed(partition.grown_bytes - seen_bytes)
                # One of the batches may have ended a transaction.
                self.look_again()
        # The loop drops a timer that was cancelled late; until then it is not to hold on to the request's own context.
        timer = self._loop.call_at(deadline, self.stop_waiting, context=Context())
        try:
            return await self._future
        finally:
            timer.cancel()
            for partition, _ in partitions:
                partition.unpark(self)

    def changed(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self._wake()

    def look_again(self) -> None:
        if self._is_committed:
            self._wake()

    def _wake(self) -> None:
        if not self._future.done():
            self._future.set_result(True)

    def stop_waiting(self) -> None:
        if not self._future.done():
            self._future.set_result(False)
