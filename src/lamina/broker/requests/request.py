"""One request as its handler sees it: what was asked, by whom, and what becomes of it.

Owns the context that every handler gets beside its message. Must not know any API, nor sockets.
"""

from collections.abc import Callable, Sized
from typing import TYPE_CHECKING, Protocol

from lamina.broker.counters import RequestCounters
from lamina.broker.waits import Waits
from lamina.security.acls import Operation, ResourceType
from lamina.security.hosts import rule_host

if TYPE_CHECKING:
    from lamina.broker.requests.client_quotas import Charge


def host_of(peer: str) -> str:
    """The address in ``host:port`` as Java writes it, and with it access rules: IPv6 without ``::``."""
    host = peer.rpartition(":")[0].strip("[]")
    return host if ":" not in host else rule_host(host) or host


Response = list[Sized] | None
"""Pieces to send in order, bytes or leased file ranges; ``None`` when the client expects no response."""

ANONYMOUS = "User:ANONYMOUS"
"""Everybody on a listener without authentication."""


class CloseConnection(Exception):
    """The client did what a connection does not survive; the sentence goes to the log."""


class Client(Protocol):
    """Who asks: what a request knows of its connection."""

    @property
    def id(self) -> int: ...
    @property
    def peer(self) -> str:
        """``host:port``."""

    @property
    def host(self) -> str:
        """Its address, in the form in which access rules name it."""

    @property
    def listener_name(self) -> str: ...
    @property
    def principal(self) -> str:
        """Who this is, in Kafka's words."""

    client_software: str

    def when_gone(self, told: Callable[[], None]) -> None:
        """Call once when it has hung up, or at once if it has."""


class Request:
    """Also notes when its connection did what with it."""

    __slots__ = (
        "_is_abandoned",
        "_stop_waiting",
        "api_key",
        "api_version",
        "arrived_ns",
        "began_ns",
        "charge",
        "client",
        "client_id",
        "correlation_id",
        "counters",
        "denials_told",
        "ended_ns",
        "error_code",
        "holds_frame",
        "is_exempt",
        "received_ns",
        "size_bytes",
        "throttle_ms",
        "waits",
    )

    arrived_ns: int
    """When its first bytes came, and the next ones: its last byte, its handler's turn, its response."""
    received_ns: int
    began_ns: int
    ended_ns: int
    size_bytes: int

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        client: Client,
        counters: RequestCounters,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.client = client
        self.counters = counters
        self.throttle_ms = 0
        """How long the client is told to wait before it asks again, as far as that is known; then it is muted."""
        self.is_exempt = False
        """Whether a broker asks, by itself: it has no quotas."""
        self.charge: Charge | None = None
        """What it costs its client, until its response is made; ``None`` where nobody has a quota, or it is exempt."""
        self.error_code = 0
        self.denials_told: set[tuple[Operation, ResourceType, str | None]] | None = None
        """What the audit was told that its client may not do."""
        self.holds_frame = False
        """Whether the handler, while it waits, still reads the bytes that the client sent."""
        self._is_abandoned = False
        self._stop_waiting: Callable[[], None] | None = None
        self.waits: Waits | None = None

    @property
    def listener_name(self) -> str:
        return self.client.listener_name

    @property
    def principal(self) -> str:
        """Who asks: also where another broker has forwarded the request."""
        return self.client.principal

    def park(self, stop_waiting: Callable[[], None]) -> None:
        """It waits for news, and changes nothing meanwhile: ``stop_waiting`` is called when its client is gone."""
        self._stop_waiting = stop_waiting
        if self._is_abandoned:
            stop_waiting()

    def unpark(self) -> None:
        """It does not wait for news any more, or not for the same."""
        self._stop_waiting = None

    def abandon(self) -> None:
        """Its client is gone. It is carried out all the same, but waits for no news, now or later."""
        self._is_abandoned = True
        if self._stop_waiting is not None:
            self._stop_waiting()

    def throttled_ms(self) -> int:
        """How long the client is told to wait: asked where responses are encoded, which settles what it cost.

        That is in the router, in ``encoded_entries``, and in Produce, Fetch and Metadata, which encode their own; on
        the loop, before it is asked on a thread.
        """
        charge = self.charge
        if charge is not None:
            self.charge = None
            charge.settle(self)
        return self.throttle_ms

    def failed(self, error_code: int, times: int = 1) -> None:
        """Its response tells this error, perhaps among others."""
        self.error_code = error_code
        self.counters.errors[error_code] = self.counters.errors.get(error_code, 0) + times
