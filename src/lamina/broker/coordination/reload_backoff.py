"""When a machine that failed is loaded again.

Owns how long it waits. Must not know why it failed.
"""

from lamina.broker.backoff import doubled_ms

_RELOAD_BACKOFF_MS = 100
_RELOAD_BACKOFF_MAX_MS = 30_000
_RELOADS_ARE_RELATED_MS = 60_000
"""A machine that worked this long before it failed is loaded again at once."""


class ReloadBackoff:
    """How long a machine that failed waits before it is loaded again: not at all, unless it has failed just before."""

    def __init__(self) -> None:
        self._related = 0
        self._last_ms: int | None = None

    def next_delay_ms(self, now_ms: int) -> int:
        if self._last_ms is None or now_ms - self._last_ms > _RELOADS_ARE_RELATED_MS:
            self._related = 0
        delay_ms = doubled_ms(_RELOAD_BACKOFF_MS, self._related, _RELOAD_BACKOFF_MAX_MS) if self._related else 0
        self._related += 1
        self._last_ms = now_ms
        return delay_ms
