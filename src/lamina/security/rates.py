"""How fast somebody is, and how long he has to wait until he is within a limit again (S61, S64).

Owns the two measures that Kafka has: a rate over a few windows of time, for bytes and for time; and a bucket of tokens,
for changes, of which many may come at once after a pause; and those of many who come and go. Time is an argument, in
milliseconds that never go back. Must not know what is measured.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


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

    __slots__ = ("_burst", "_rate", "_tokens", "_updated_ms")

    def __init__(self) -> None:
        """Full."""
        self._tokens = self._burst = float("inf")
        self._rate = 0.0
        self._updated_ms = 0

    def take(self, amount: float, rate: float, burst_seconds: float, now_ms: int) -> None:
        self._fill(rate, burst_seconds, now_ms)
        self._tokens -= amount

    def throttle_ms(self, rate: float, burst_seconds: float, now_ms: int) -> int:
        """How long until the debt is paid; 0 without one."""
        self._fill(rate, burst_seconds, now_ms)
        return max(0, round(-self._tokens / rate * 1000))

    def is_idle(self, now_ms: int) -> bool:
        """Whether it is full, and so as good as a new one."""
        return self._tokens + (now_ms - self._updated_ms) / 1000 * self._rate >= self._burst

    def _fill(self, rate: float, burst_seconds: float, now_ms: int) -> None:
        came = (now_ms - self._updated_ms) / 1000 * rate
        self._rate, self._burst = rate, rate * burst_seconds
        self._tokens = min(self._burst, self._tokens + came)
        self._updated_ms = now_ms


class Measure(Protocol):
    def is_idle(self, now_ms: int) -> bool:
        """Whether it says what a new one would."""


K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Measure)

_FORGOTTEN_AT_A_TIME = 2
"""For each one that comes."""
MOST_MEASURES = 10_000


class Measures(Generic[K, M]):
    """Of many, by name. Those that are idle are forgotten, which changes nothing: what is remembered goes by those who
    came lately, and not by how many names there are. There is a most of them: who takes new names all the time makes
    others begin anew, those first that were not asked for longest."""

    def __init__(self, new: Callable[[], M]) -> None:
        self._new = new
        self._by_key: OrderedDict[K, M] = OrderedDict()
        """Those that were asked for last come last."""

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: K, now_ms: int) -> M:
        measure = self._by_key.get(key)
        if measure is None:
            self._forget(now_ms)
            measure = self._by_key[key] = self._new()
        else:
            self._by_key.move_to_end(key)
        return measure

    def _forget(self, now_ms: int) -> None:
        for _ in range(min(_FORGOTTEN_AT_A_TIME, len(self._by_key))):
            key, oldest = next(iter(self._by_key.items()))
            if len(self._by_key) < MOST_MEASURES and not oldest.is_idle(now_ms):
                return
            del self._by_key[key]
