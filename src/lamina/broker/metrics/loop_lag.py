"""How late the event loop is: a timer that is due ten times a second and notes when it came.

Must not know what holds the loop up.
"""

import asyncio

from lamina.broker.counters import Histogram
from lamina.clocks import Clocks

INTERVAL_SECONDS = 0.1
_INTERVAL_NS = int(INTERVAL_SECONDS * 1_000_000_000)


class LoopLag:
    def __init__(self, loop: asyncio.AbstractEventLoop, clocks: Clocks, lags: Histogram) -> None:
        self._loop = loop
        self._clocks = clocks
        self._lags = lags
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._timer = self._loop.call_later(INTERVAL_SECONDS, self._came, self._clocks.monotonic_ns() + _INTERVAL_NS)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _came(self, due_ns: int) -> None:
        self._lags.observe(max(self._clocks.monotonic_ns() - due_ns, 0))
        self.start()
