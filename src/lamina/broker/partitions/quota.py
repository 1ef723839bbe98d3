"""How fast bytes may pass, measured over the last few windows of time (R77).

Owns the windows and what passed in them. The rate is what passed in all of them by the time since the first of them
began, which is a whole window at least: the first bytes after a pause may pass at once. Must not know what passes.
"""

from collections import deque
from dataclasses import dataclass

from lamina.clocks import Clocks


@dataclass(slots=True)
class _Window:
    began_ms: int
    size_bytes: int = 0


class Quota:
    def __init__(self, window_count: int, window_ms: int, clocks: Clocks, bytes_per_second: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._count = window_count
        self._window_ms = window_ms
        self._clocks = clocks
        self._windows: deque[_Window] = deque()
        """Each begins with the first bytes after the one before it."""
        self._total_bytes = 0

    def record(self, size_bytes: int) -> None:
        now_ms = self._clocks.monotonic_ms()
        self._forget(now_ms)
        if not self._windows or now_ms - self._windows[-1].began_ms >= self._window_ms:
            self._windows.append(_Window(now_ms))
        self._windows[-1].size_bytes += size_bytes
        self._total_bytes += size_bytes

    def is_exceeded(self) -> bool:
        return self.over_ms() > 0

    def over_ms(self) -> int:
        """How long nothing may pass until the rate is within the quota again; 0 where it is.

        One window at most: what was measured first may be forgotten then.
        """
        now_ms = self._clocks.monotonic_ms()
        self._forget(now_ms)
        if not self._windows:
            return 0
        lasted_ms = max(now_ms - self._windows[0].began_ms, self._window_ms)
        over = self._total_bytes * 1000 - self.bytes_per_second * lasted_ms
        return min(-(-over // max(self.bytes_per_second, 1)), self._window_ms) if over > 0 else 0

    def _forget(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0].began_ms >= self._count * self._window_ms:
            self._total_bytes -= self._windows.popleft().size_bytes
