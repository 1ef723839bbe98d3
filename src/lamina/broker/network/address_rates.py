"""How fast one address may open connections: quotas of addresses, which are set while the broker runs (S66).

Owns the rate of each address that has a quota. Time is an argument, in seconds that never go back. Must not know
sockets.
"""

from collections.abc import Mapping

from lamina.security.hosts import plain_address
from lamina.security.quota_lookup import QuotaLookup
from lamina.security.quotas import QuotaEntity
from lamina.security.rates import Measures, SampledRate

LONGEST_SECONDS = 1.0
"""How long a connection that is too many is kept before it is closed."""


class AddressRates:
    def __init__(self, window_count: int, window_ms: int) -> None:
        self._lookup = QuotaLookup()
        self._rates: Measures[str, SampledRate] = Measures(lambda: SampledRate(window_count, window_ms))
        self.refused = 0

    def set(self, entity: QuotaEntity, quotas: Mapping[str, float]) -> None:
        self._lookup.set(entity, quotas)

    def wait_seconds(self, ip: str, now: float) -> float:
        """Count one more connection, if it may come: 0. Else how long to keep it before it is closed."""
        if not self._lookup.limits_addresses:
            return 0.0
        ip = plain_address(ip) or ip
        limit = self._lookup.connections_of(ip)
        if limit is None:
            return 0.0
        now_ms = int(now * 1000)
        rate = self._rates.get(ip, now_ms)
        rate.record(1, now_ms)
        throttle_ms = rate.throttle_ms(limit, now_ms)
        if not throttle_ms:
            return 0.0
        rate.record(-1, now_ms)
        self.refused += 1
        return min(throttle_ms / 1000, LONGEST_SECONDS)
