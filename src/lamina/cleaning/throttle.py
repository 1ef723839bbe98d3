"""How fast a pass may read and write (fact 97).

Owns the figure of one process: bytes read to find keys, read to copy and written, together. Must not know what they
are.
"""

import time
from collections.abc import Callable
from threading import Lock

_EVALUATED_AFTER_SECONDS = 0.3


Meter = Callable[[int], None]
"""Told the bytes of every piece of work before the next is begun: may wait, and may raise to end the pass."""


def unmetered(_size_bytes: int) -> None:
    """No limit, and nobody who wants to end it."""


class Throttle:
    """Sleeps just enough to keep the average of each stretch at the limit; may be shared by threads."""

    def __init__(
        self,
        bytes_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._since = clock()
        self._bytes = 0
        self.slept_seconds = 0.0

    def __call__(self, size_bytes: int) -> None:
        with self._lock:
            self._bytes += size_bytes
            passed = self._clock() - self._since
            if passed < _EVALUATED_AFTER_SECONDS:
                return
            wanted = self._bytes / self._bytes_per_second
            if wanted > passed:
                self._sleep(wanted - passed)
                self.slept_seconds += wanted - passed
            self._since = self._clock()
            self._bytes = 0
