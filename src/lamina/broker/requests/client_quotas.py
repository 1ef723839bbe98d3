"""What requests cost the clients that have quotas, and how long these are told to wait (S60 to S65).

Owns how much each user and client id has used: bytes produced and fetched, the loop's time, changes to topics. While no
quota is set, requests carry no ``Charge``, and nothing is counted. Must not know any API.
"""

from collections.abc import Callable

from lamina.broker.counters import QuotaCounters
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.requests.request import Request
from lamina.clocks import Clocks
from lamina.errors import ThrottlingQuotaExceeded
from lamina.image.diff import Changes
from lamina.security.quota_lookup import Quota, QuotaBucket, QuotaLookup
from lamina.security.quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from lamina.security.rates import Measures, SampledRate, TokenBucket
from lamina.settings.quotas import (
    CONTROLLER_QUOTA_WINDOW_NUM,
    CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS,
    QUOTA_WINDOW_NUM,
    QUOTA_WINDOW_SIZE_SECONDS,
)
from lamina.settings.values import BrokerSettings

_PERCENT_PER_NS = 100 / 1_000_000_000
_INT_MAX = 2**31 - 1


class ClientQuotas(MetadataListener):
    def __init__(self, settings: BrokerSettings, counters: QuotaCounters, clocks: Clocks) -> None:
        self._window_count = settings[QUOTA_WINDOW_NUM]
        self._window_ms = settings[QUOTA_WINDOW_SIZE_SECONDS] * 1000
        self._burst_seconds = settings[CONTROLLER_QUOTA_WINDOW_NUM] * settings[CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS]
        self._counters = counters
        self._clocks = clocks
        self._lookup = QuotaLookup()
        self._rates: Measures[QuotaBucket, SampledRate] = Measures(
            lambda: SampledRate(self._window_count, self._window_ms)
        )
        self._changes: Measures[QuotaBucket, TokenBucket] = Measures(TokenBucket)
        self.is_set = False
        """Whether there is any quota for users or client ids."""

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._rates) + len(self._changes)

    def image_changed(self, changes: Changes) -> None:
        for entity, quotas in changes.quotas.items():
            self._lookup.set(entity, quotas)
        self.is_set = bool(self._lookup.keys)

    def charge(self, request: Request) -> "Charge":
        """What the request costs from now on."""
        return Charge(self, self._clocks.monotonic_ns)

    # Rates

    def fetch_bytes(self, request: Request) -> int | None:
        """How many bytes one fetch may get at most, so that it can be allowed; ``None`` for any number."""
        quota = self._find(CONSUMER_BYTE_RATE, request)
        if quota is None:
            return None
        return max(1, min(_INT_MAX, int(quota.limit * max(1, self._window_count - 1) * self._window_ms / 1000)))

    def produced(self, request: Request) -> None:
        """By the size of the request, after the append."""
        quota = self._find(PRODUCER_BYTE_RATE, request)
        if quota is not None:
            now_ms = self._clocks.monotonic_ms()
            rate = self._rates.get(quota.bucket, now_ms)
            rate.record(request.size_bytes, now_ms)
            self._throttle(request, PRODUCER_BYTE_RATE, rate.throttle_ms(quota.limit, now_ms))

    def fetched(self, request: Request, size_bytes: int) -> bool:
        """Whether the client gets what was read for it. Else it waits, and asks again.

        A single batch that is larger than all windows may hold is given to whoever has got nothing for so long: else
        it could never be read.
        """
        quota = self._find(CONSUMER_BYTE_RATE, request)
        if quota is None:
            return not request.throttle_ms
        now_ms = self._clocks.monotonic_ms()
        rate = self._rates.get(quota.bucket, now_ms)
        is_first = rate.is_idle(now_ms) and not request.throttle_ms
        rate.record(size_bytes, now_ms)
        self._throttle(request, CONSUMER_BYTE_RATE, rate.throttle_ms(quota.limit, now_ms))
        if request.throttle_ms and not is_first:
            rate.record(-size_bytes, now_ms)
            return False
        return True

    def used_loop(self, request: Request, duration_ns: int) -> None:
        quota = self._find(REQUEST_PERCENTAGE, request)
        if quota is not None:
            now_ms = self._clocks.monotonic_ms()
            rate = self._rates.get(quota.bucket, now_ms)
            rate.record(duration_ns * _PERCENT_PER_NS, now_ms)
            throttle_ms = min(rate.throttle_ms(quota.limit, now_ms), self._window_ms)
            self._throttle(request, REQUEST_PERCENTAGE, throttle_ms)

    # Changes

    def changes(self, request: Request, *, is_strict: bool) -> "TopicChanges":
        """For the changes to topics that a request asks for. A strict one refuses those that are too many (S64)."""
        quota = None if request.is_exempt else self._find(CONTROLLER_MUTATION_RATE, request)
        return TopicChanges(self, request, quota, is_strict=is_strict)

    def take(self, request: Request, quota: Quota, count: int, *, is_strict: bool) -> None:
        """Raises THROTTLING_QUOTA_EXCEEDED where the client has no token left, and the request is strict."""
        now_ms, limit, burst = self._clocks.monotonic_ms(), quota.limit, self._burst_seconds
        bucket = self._changes.get(quota.bucket, now_ms)
        if is_strict:
            throttle_ms = bucket.throttle_ms(limit, burst, now_ms)
            self._throttle(request, CONTROLLER_MUTATION_RATE, throttle_ms)
            if throttle_ms:
                raise ThrottlingQuotaExceeded(f"{CONTROLLER_MUTATION_RATE} is exceeded: ask again in {throttle_ms} ms")
        bucket.take(count, limit, burst, now_ms)
        if not is_strict:
            self._throttle(request, CONTROLLER_MUTATION_RATE, bucket.throttle_ms(limit, burst, now_ms))

    # Both

    def _find(self, key: str, request: Request) -> Quota | None:
        return self._lookup.find(key, request.principal.partition(":")[2], request.client_id)

    def _throttle(self, request: Request, key: str, throttle_ms: int) -> None:
        """The longest wait counts."""
        if throttle_ms:
            request.throttle_ms = max(request.throttle_ms, min(throttle_ms, _INT_MAX))
            self._counters.count(key, throttle_ms)


class Charge:
    """The loop's time on one request, and who is told what it cost."""

    __slots__ = ("_clock", "_loop_ns", "_quotas", "_resumed_ns")

    def __init__(self, quotas: ClientQuotas, clock: Callable[[], int]) -> None:
        self._quotas = quotas
        self._clock = clock
        self._loop_ns = 0
        self._resumed_ns = clock()

    def paused(self) -> None:
        """The loop is left to others."""
        self._loop_ns += self._clock() - self._resumed_ns

    def resumed(self) -> None:
        self._resumed_ns = self._clock()

    def fetch_bytes(self, request: Request) -> int | None:
        return self._quotas.fetch_bytes(request)

    def produced(self, request: Request) -> None:
        self._quotas.produced(request)

    def fetched(self, request: Request, size_bytes: int) -> bool:
        return self._quotas.fetched(request, size_bytes)

    def settle(self, request: Request) -> None:
        """The response is about to be made."""
        self._quotas.used_loop(request, self._loop_ns + self._clock() - self._resumed_ns)


class TopicChanges:
    """The changes of one request, counted in partitions."""

    def __init__(self, quotas: ClientQuotas, request: Request, quota: Quota | None, *, is_strict: bool) -> None:
        self._quotas = quotas
        self._request = request
        self._quota = quota
        self._is_strict = is_strict

    def take(self, partition_count: int) -> None:
        """Raises THROTTLING_QUOTA_EXCEEDED where this change has to wait."""
        if self._quota is not None:
            self._quotas.take(self._request, self._quota, partition_count, is_strict=self._is_strict)
