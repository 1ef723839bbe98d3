"""A fetch that found too little and waits for more.

Must not know how the fetch reads; it is told of growth and wakes its owner.
"""

import asyncio
from collections.abc import Iterable

from lamina.broker.partition import Partition


class ParkedFetch:
    __slots__ = ("_future", "_loop", "_missing_bytes")

    def __init__(self, loop: asyncio.AbstractEventLoop, missing_bytes: int) -> None:
        self._loop = loop
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[None] = loop.create_future()

    async def wait(self, partitions: Iterable[Partition], max_wait_ms: int) -> None:
        """Return when enough has come, when the time is over, or when waiting has become pointless."""
        waited_for = list(partitions)
        for partition in waited_for:
            partition.park(self)
        timer = self._loop.call_later(max_wait_ms / 1000, self.stop_waiting)
        try:
            await self._future
        finally:
            timer.cancel()
            for partition in waited_for:
                partition.unpark(self)

    def changed(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.stop_waiting()

    def stop_waiting(self) -> None:
        if not self._future.done():
            self._future.set_result(None)
