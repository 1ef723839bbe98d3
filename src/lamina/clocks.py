"""The three clocks: wall time, monotonic time, and the time since boot.

Records, retention and horizons go by wall time; sessions, timeouts and measured durations go by monotonic time, which
never goes back. The time since boot goes on while the machine sleeps: it says how long others have not heard of us. No
other module asks the system for the time (a contract in pyproject.toml), and the clocks of the system are named only
where a program begins, or as the default of an argument (tests/test_clocks.py): so a test or a simulation can drive
everything that is given other clocks. An event loop's own ``time()`` is the clock of its timers
and of the deadlines that they keep; whoever drives time drives the loop as well.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

# Elsewhere than on Linux, this one goes on in sleep (macOS) or is the nearest there is.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _boottime_ns() -> int:
    return time.clock_gettime_ns(_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Clocks:
    wall_ns: Callable[[], int]
    monotonic_ns: Callable[[], int]
    boottime_ns: Callable[[], int] = _boottime_ns

    def now_ms(self) -> int:
        """Wall time, in milliseconds since the epoch."""
        return self.wall_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return self.monotonic_ns() // 1_000_000

    def boottime_ms(self) -> int:
        return self.boottime_ns() // 1_000_000

    def monotonic_seconds(self) -> float:
        return self.monotonic_ns() / 1_000_000_000


SYSTEM_CLOCKS = Clocks(time.time_ns, time.monotonic_ns)


def pause(seconds: float) -> None:
    """Block this thread: for commands and jobs, never on an event loop."""
    time.sleep(seconds)
