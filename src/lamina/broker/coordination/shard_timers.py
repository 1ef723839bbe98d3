"""The timers of one machine, by name.

Owns when each is due. A timer that is put off is left to run early and looks at the clock then: sessions are always
renewed. Must not know what a timer is for.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context

from lamina.coordinators.decision import TimerName


class ShardTimers:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, monotonic_ms: Callable[[], int], due: Callable[[TimerName], None]
    ) -> None:
        """``due`` is told of each timer at its time."""
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._due = due
        self._timers: dict[TimerName, tuple[int, asyncio.TimerHandle]] = {}
        self._context = Context()
        """What a timer does is no part of the request that happened to set it."""

    def __len__(self) -> int:
        return len(self._timers)

    def set(self, name: TimerName, at_ms: int) -> None:
        """Set a timer, or set it to another time."""
        known = self._timers.get(name)
        if known is not None:
            due_ms, handle = known
            if due_ms <= at_ms:
                self._timers[name] = (at_ms, handle)
                return
            handle.cancel()
        self._arm(name, at_ms)

    def _arm(self, name: TimerName, at_ms: int) -> None:
        delay_ms = max(at_ms - self._monotonic_ms(), 0)
        self._timers[name] = (at_ms, self._loop.call_later(delay_ms / 1000, self._fire, name, context=self._context))

    def _fire(self, name: TimerName) -> None:
        at_ms, _ = self._timers[name]
        if self._monotonic_ms() < at_ms:
            self._arm(name, at_ms)
            return
        del self._timers[name]
        self._due(name)

    def cancel(self, name: TimerName) -> None:
        known = self._timers.pop(name, None)
        if known is not None:
            known[1].cancel()

    def cancel_all(self) -> None:
        for _, handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
