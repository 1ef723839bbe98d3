"""A fetch that found too little and waits for more.

Must not know how the fetch reads; it is told of growth and wakes its owner.
"""

import asyncio
from collections.abc import Iterable
from contextvars import Context

from lamina.broker.partitions.partition import Partition


class ParkedFetch:
    __slots__ = ("_future", "_loop", "_missing_bytes")

    def __init__(self, loop: asyncio.AbstractEventLoop, missing_bytes: int) -> None:
        self._loop = loop
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[bool] = loop.create_future()

    async def wait(self, partitions: Iterable[Partition], deadline: float) -> bool:
        """Return when enough has come, when the loop's time is over, or when waiting has become pointless.

        Says whether more may come.
        """
        waited_for = list(partitions)
        for partition in waited_for:
            partition.park(self)
        # The loop drops a timer that was cancelled late; until then it is not to hold on to the request's own context.
        timer = self._loop.call_at(deadline, self.stop_waiting, context=Context())
        try:
            return await self._future
        finally:
            timer.cancel()
            for partition in waited_for:
                partition.unpark(self)

    def changed(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.look_again()

    def look_again(self) -> None:
        if not self._future.done():
            self._future.set_result(True)

    def stop_waiting(self) -> None:
        if not self._future.done():
            self._future.set_result(False)
