"""How late a broker's loop was, as its own histogram tells: ``lamina_event_loop_lag_seconds`` of ``/metrics``.

Must not know why.
"""

from __future__ import annotations

import re
import urllib.request
from collections import Counter
from itertools import accumulate

_BUCKET = re.compile(r'^lamina_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)', re.MULTILINE)
_ANSWER_SECONDS = 30


class LoopLags:
    """Of any number of processes: how many timers came within each bound, in seconds, and not within the one before."""

    def __init__(self, counts: Counter[float] | None = None) -> None:
        self._counts = counts or Counter()

    @classmethod
    def of(cls, metrics: str) -> LoopLags:
        """Of one broker since its start."""
        bounds = sorted((float(bound), float(count)) for bound, count in _BUCKET.findall(metrics))
        before = [0.0, *(count for _, count in bounds)]
        return cls(Counter({bound: int(count - before[at]) for at, (bound, count) in enumerate(bounds)}))

    def __add__(self, other: LoopLags) -> LoopLags:
        return LoopLags(self._counts + other._counts)

    def __sub__(self, earlier: LoopLags) -> LoopLags:
        """Since an earlier look at the same process."""
        return LoopLags(self._counts - earlier._counts)

    def within_seconds(self, share: float) -> float:
        """The bound within which this share of all timers came; 1 for the last."""
        bounds = sorted(self._counts)
        wanted = share * self._counts.total()
        reached = accumulate(self._counts[bound] for bound in bounds)
        return next((bound for bound, count in zip(bounds, reached, strict=True) if count >= wanted), 0.0)


def metrics_of(admin_address: str) -> str:
    with urllib.request.urlopen(f"http://{admin_address}/metrics", timeout=_ANSWER_SECONDS) as response:
        return str(response.read().decode())
