"""Connections whose clients have not logged in yet: how many there may be, and for how long (S85).

Owns the bound and the deadline. Beyond the bound the oldest goes: who means to log in does so within a few round trips.
Must not know how anybody logs in.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

LOGIN_SECONDS = 30.0


class Stranger(Protocol):
    """A connection before its login."""

    def when_gone(self, told: Callable[[], None]) -> None:
        """Call once when it has hung up, or at once if it has."""

    def refuse(self, reason: str) -> None:
        """End it; the reason goes to the log."""


class Strangers:
    def __init__(self, loop: asyncio.AbstractEventLoop, most: int, seconds: float = LOGIN_SECONDS) -> None:
        self._loop = loop
        self._most = most
        self._seconds = seconds
        self._deadlines: dict[Stranger, float] = {}
        """The oldest first."""
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._deadlines)

    def came(self, stranger: Stranger) -> None:
        if len(self._deadlines) >= self._most:
            oldest = next(iter(self._deadlines))
            self.left(oldest)
            oldest.refuse(f"more than {self._most} connections have not logged in, and this one is the oldest of them")
        self._deadlines[stranger] = self._loop.time() + self._seconds
        stranger.when_gone(lambda: self.left(stranger))
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._look)

    def left(self, stranger: Stranger) -> None:
        """It has logged in, or is gone."""
        self._deadlines.pop(stranger, None)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        for stranger, deadline in list(self._deadlines.items()):
            if deadline > now:
                self._timer = self._loop.call_at(deadline, self._look)
                return
            self.left(stranger)
            stranger.refuse(f"it did not log in within {self._seconds:g} s")
