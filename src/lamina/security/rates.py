"""How fast somebody is, and how long he has to wait until he is within a limit again (S61, S64).

Owns the two measures that Kafka has: a rate over a few windows of time, for bytes and for time; and a bucket of tokens,
for changes, of which many may come at once after a pause. Time is an argument, in milliseconds that never go back. Must
not know what is measured.
"""

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class _Sample:
    began_ms: int
    last_ms: int
    amount: float = 0.0


class SampledRate:
    """Amounts by the second, over the last ``window_count`` windows. A window begins with the first amount after the
    one before it, and is forgotten once all of it is too old."""

    __slots__ = ("_kept_ms", "_samples", "_total", "_window_count", "_window_ms")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._window_count = window_count
        self._window_ms = window_ms
        self._kept_ms = window_count * window_ms
        self._samples: deque[_Sample] = deque()
        self._total = 0.0

    def record(self, amount: float, now_ms: int) -> None:
        self._forget(now_ms)
        samples = self._samples
        if not samples or now_ms - samples[-1].began_ms >= self._window_ms:
            samples.append(_Sample(now_ms, now_ms))
        samples[-1].amount += amount
        samples[-1].last_ms = now_ms
        self._total += amount

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing counts any more: it measures what a new one would."""
        self._forget(now_ms)
        return not self._samples

    def per_second(self, now_ms: int) -> float:
        self._forget(now_ms)
        return self._total * 1000 / self._lasted_ms(now_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long nothing more may come, so that the rate is at the limit then; 0 where it is not above it."""
        self._forget(now_ms)
        # (rate - limit) / limit * lasted_ms, with the rate put in.
        return max(0, round(self._total * 1000 / limit - self._lasted_ms(now_ms)))

    def _lasted_ms(self, now_ms: int) -> int:
        """Since the oldest window began; of the windows that there could be, only the last one may have just begun."""
        elapsed_ms = now_ms - self._samples[0].began_ms if self._samples else 0
        missing = max(0, self._window_count - 1 - elapsed_ms // self._window_ms)
        return max(1, elapsed_ms + missing * self._window_ms)

    def _forget(self, now_ms: int) -> None:
        samples = self._samples
        while samples and now_ms - samples[0].last_ms >= self._kept_ms:
            self._total -= samples.popleft().amount
        if not samples:
            self._total = 0.0


class TokenBucket:
    """Tokens that come at a rate and go at once: below 0 there are none, until the debt is paid."""

    __slots__ = ("_tokens", "_updated_ms")

    def __init__(self) -> None:
        """Full."""
        self._tokens = float("inf")
        self._updated_ms = 0

    def take(self, amount: float, rate: float, burst_seconds: float, now_ms: int) -> None:
        self._fill(rate, burst_seconds, now_ms)
        self._tokens -= amount

    def throttle_ms(self, rate: float, burst_seconds: float, now_ms: int) -> int:
        """How long until the debt is paid; 0 without one."""
        self._fill(rate, burst_seconds, now_ms)
        return max(0, round(-self._tokens / rate * 1000))

    def is_full(self, rate: float, burst_seconds: float, now_ms: int) -> bool:
        """Whether it is as good as a new one."""
        self._fill(rate, burst_seconds, now_ms)
        return self._tokens >= rate * burst_seconds

    def _fill(self, rate: float, burst_seconds: float, now_ms: int) -> None:
        came = (now_ms - self._updated_ms) / 1000 * rate
        self._tokens = min(rate * burst_seconds, self._tokens + came)
        self._updated_ms = now_ms
