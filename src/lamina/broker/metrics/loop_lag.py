"""How late the event loop is: a timer that is due ten times a second and notes when it came.

Must not know what holds the loop up.
"""

import asyncio
from time import perf_counter_ns

from lamina.broker.counters import Histogram

INTERVAL_SECONDS = 0.1
_INTERVAL_NS = int(INTERVAL_SECONDS * 1_000_000_000)


class LoopLag:
    def __init__(self, loop: asyncio.AbstractEventLoop, lags: Histogram) -> None:
        self._loop = loop
        self._lags = lags
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._timer = self._loop.call_later(INTERVAL_SECONDS, self._came, perf_counter_ns() + _INTERVAL_NS)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _came(self, due_ns: int) -> None:
        self._lags.observe(max(perf_counter_ns() - due_ns, 0))
        self.start()
