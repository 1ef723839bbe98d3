"""Whether one more connection may come: ``max.connections``, the limits by address, ``max.connection.creation.rate``.

Owns the counts, and what is refused by reason. At ``max.connections`` no connection is accepted until one closes, and
above the rate none until it is time; both wait in the system's queue. Too many from one address are turned away.
The brokers' listener, if there are others beside it, is held back by neither of the first two, only by limits that it
has itself. A rate is a bucket of one second's connections, filled steadily. Time is an argument, in seconds that never
go back. Must not know sockets.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

from lamina.security.hosts import plain_address
from lamina.settings.connection_limits import ConnectionLimits, ListenerLimits

UNTIL_ONE_LEAVES = float("inf")

_NO_LIMITS = ListenerLimits()


class ConnectionQuota:
    def __init__(self, limits: ConnectionLimits, listener_names: tuple[str, ...] = ()) -> None:
        self._listener_names = listener_names
        self._by_listener: Counter[str] = Counter()
        self._by_ip: Counter[str] = Counter()
        self._overrides: Mapping[str, int] = {}
        self._rate = _Bucket()
        self._listener_rates: defaultdict[str, _Bucket] = defaultdict(_Bucket)
        self.count = 0
        self.refused_per_ip = 0
        """Connections that were closed at once because their address had enough."""
        self.closed_as_excess = 0
        """Connections that were closed because there were more than ``max.connections``."""
        self.waits_for_room = 0
        """How often accepting stopped at ``max.connections``."""
        self.waits_for_rate = 0
        """How often accepting stopped at ``max.connection.creation.rate``."""
        self.configure(limits, {})

    def configure(self, limits: ConnectionLimits, addresses: Mapping[str, str]) -> None:
        """Take other limits; ``addresses`` says what hosts' names stand for; one without has no limit of its own."""
        self.limits = limits
        found = {host: plain_address(addresses.get(host, host)) for host in limits.per_host}
        self._overrides = {ip: limits.per_host[host] for host, ip in found.items() if ip is not None}

    def is_protected(self, listener_name: str) -> bool:
        return len(self._listener_names) > 1 and listener_name == self.limits.inter_broker_listener

    # Accepting

    def wait_seconds(self, listener_name: str, now: float) -> float:
        """How long to leave the next one in the queue; 0 to accept it now."""
        limits = self.limits.per_listener.get(listener_name, _NO_LIMITS)
        if self._by_listener[listener_name] >= limits.max_connections:
            return UNTIL_ONE_LEAVES
        wait = self._listener_rates[listener_name].wait_seconds(limits.max_creation_rate, now)
        if self.is_protected(listener_name):
            return wait
        if self.count >= self.limits.max_connections:
            return UNTIL_ONE_LEAVES
        return max(wait, self._rate.wait_seconds(self.limits.max_creation_rate, now))

    def add(self, listener_name: str, ip: str) -> int | None:
        """Count a connection that was accepted; the limit of its address, if that is reached: close it then."""
        self._listener_rates[listener_name].take()
        if not self.is_protected(listener_name):
            self._rate.take()
        ip = plain_address(ip) or ip
        limit = self._overrides.get(ip, self.limits.max_per_ip)
        if self._by_ip[ip] >= limit:
            self._forget_if_none(ip)
            self.refused_per_ip += 1
            return limit
        self._by_ip[ip] += 1
        self._by_listener[listener_name] += 1
        self.count += 1
        return None

    def remove(self, listener_name: str, ip: str) -> None:
        ip = plain_address(ip) or ip
        self._by_ip[ip] -= 1
        self._forget_if_none(ip)
        self._by_listener[listener_name] -= 1
        self.count -= 1

    def _forget_if_none(self, ip: str) -> None:
        if not self._by_ip[ip]:
            del self._by_ip[ip]

    @property
    def excess(self) -> int:
        """How many connections should go: there are more than ``max.connections``. Brokers' own do not."""
        unprotected = sum(n for name, n in self._by_listener.items() if not self.is_protected(name))
        return min(max(0, self.count - self.limits.max_connections), unprotected)


class _Bucket:
    """Connections that may be accepted now: at first, and at most, those of one second."""

    def __init__(self) -> None:
        self._filled_at: float | None = None
        self._tokens = 0.0

    def wait_seconds(self, rate: int, now: float) -> float:
        passed = 1.0 if self._filled_at is None else now - self._filled_at
        self._filled_at = now
        self._tokens = min(float(rate), self._tokens + passed * rate)
        if self._tokens >= 1:
            return 0.0
        return (1 - self._tokens) / rate if rate else UNTIL_ONE_LEAVES

    def take(self) -> None:
        self._tokens = max(0.0, self._tokens - 1)
