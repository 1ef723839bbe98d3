"""Clocks that a test sets; they show the system's time until then."""

from collections.abc import Callable

from lamina.clocks import SYSTEM_CLOCKS, Clocks

_MS = 1_000_000


class DrivenClock:
    def __init__(self) -> None:
        self.wall_ms: int | Callable[[], int] | None = None
        self.monotonic_ms: int | Callable[[], int] | None = None

    @property
    def clocks(self) -> Clocks:
        return Clocks(
            lambda: _shown_ns(self.wall_ms, SYSTEM_CLOCKS.wall_ns),
            lambda: _shown_ns(self.monotonic_ms, SYSTEM_CLOCKS.monotonic_ns),
            lambda: _shown_ns(self.monotonic_ms, SYSTEM_CLOCKS.boottime_ns),
        )


def _shown_ns(set_ms: int | Callable[[], int] | None, system_ns: Callable[[], int]) -> int:
    if set_ms is None:
        return system_ns()
    return (set_ms if isinstance(set_ms, int) else set_ms()) * _MS
