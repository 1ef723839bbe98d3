"""The two clocks: wall time and monotonic time.

Records, retention and horizons go by wall time; sessions, timeouts and measured durations go by monotonic time, which
never goes back. No other module asks the system for the time (a contract in pyproject.toml), so that a test or a
simulation can drive everything that is given other clocks. An event loop's own ``time()`` is the clock of its timers
and of the deadlines that they keep; whoever drives time drives the loop as well.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clocks:
    wall_ns: Callable[[], int]
    monotonic_ns: Callable[[], int]

    def now_ms(self) -> int:
        """Wall time, in milliseconds since the epoch."""
        return self.wall_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return self.monotonic_ns() // 1_000_000

    def monotonic_seconds(self) -> float:
        return self.monotonic_ns() / 1_000_000_000


SYSTEM_CLOCKS = Clocks(time.time_ns, time.monotonic_ns)


def pause(seconds: float) -> None:
    """Block this thread: for commands and jobs, never on an event loop."""
    time.sleep(seconds)
