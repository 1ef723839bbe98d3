"""Work that is done again and again while the broker runs.

Owns when it is due, and that a failure is told and counted, and ends nothing. Must not know what the work does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lamina.broker.counters import Counters, Place
from lamina.errors import StorageError
from lamina.settings.log_config import LONG_MAX

logger = logging.getLogger(__name__)


class Timers:
    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    def every(self, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        """Repeat ``work`` with so long a pause; 0 and the largest number mean never."""
        if 0 < interval_ms < LONG_MAX:
            self._tasks.append(asyncio.get_running_loop().create_task(self._repeat(interval_ms, work)))

    async def stop(self) -> None:
        """End all timers. Work that is under way is finished: a thread may be writing for it."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def _repeat(self, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        while not await self._stops_within(interval_ms / 1000):
            try:
                await work()
            except StorageError as error:
                logger.warning("%s", error)
            except Exception as error:
                self._counters.count_unexpected(Place.TIMER)
                logger.error("a timer failed", exc_info=error)

    async def _stops_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True
