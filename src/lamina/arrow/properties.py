"""Kafka's client properties, as far as they mean something to a reader or a writer here.

Owns their names, defaults and ranges. What has no meaning here is accepted, as Java's client accepts what it does not
know; what touches security and cannot be honoured, or looks as if it should touch it, is refused, never ignored. Must
not know how connections are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from lamina.arrow.errors import ReadError
from lamina.peer.addresses import Address, parse_bootstrap
from lamina.peer.limits import Limits
from lamina.peer.properties import MAX_INT, one_of, whole_number
from lamina.peer.security_properties import SecurityProperties, SecurityPropertyError, parse_security
from lamina.wire.fetch_request import READ_COMMITTED, READ_UNCOMMITTED

BOOTSTRAP_SERVERS = "bootstrap.servers"
DEFAULT_CLIENT_ID = "lamina-arrow"

_ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}

_MIB = 1024 * 1024

_number = partial(whole_number, ReadError)


@dataclass(frozen=True, slots=True)
class ClientProperties:
    bootstrap: tuple[Address, ...]
    client_id: str = DEFAULT_CLIENT_ID
    isolation_level: int = READ_UNCOMMITTED
    fetch_max_bytes: int = 8 * _MIB
    """``max.partition.fetch.bytes``, or ``fetch.max.bytes`` where that is smaller: one response."""
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    limits: Limits = field(default_factory=Limits)
    security: SecurityProperties = field(default_factory=SecurityProperties)

    @property
    def is_committed_only(self) -> bool:
        return self.isolation_level == READ_COMMITTED


def parse_properties(given: Mapping[str, str]) -> ClientProperties:
    """Raises `ReadError`, with the property's name, for what cannot be honoured."""
    try:
        security = parse_security(given)
    except SecurityPropertyError as error:
        raise ReadError(str(error)) from None
    servers = given.get(BOOTSTRAP_SERVERS, "").strip()
    if not servers:
        raise ReadError(f"{BOOTSTRAP_SERVERS} is missing: name at least one broker as HOST:PORT")
    try:
        bootstrap = parse_bootstrap(servers)
    except ValueError as error:
        raise ReadError(f"{BOOTSTRAP_SERVERS}: {error}") from None
    default = Limits()
    per_partition = _number(given, "max.partition.fetch.bytes", 8 * _MIB, least=1)
    return ClientProperties(
        bootstrap=bootstrap,
        client_id=given.get("client.id") or DEFAULT_CLIENT_ID,
        isolation_level=one_of(ReadError, given, "isolation.level", "read_uncommitted", _ISOLATION_LEVELS),
        fetch_max_bytes=min(per_partition, _number(given, "fetch.max.bytes", 50 * _MIB, least=1)),
        fetch_min_bytes=_number(given, "fetch.min.bytes", 1),
        fetch_max_wait_ms=_number(given, "fetch.max.wait.ms", 500),
        limits=Limits(
            connect_timeout_ms=_number(
                given, "socket.connection.setup.timeout.ms", default.connect_timeout_ms, least=1
            ),
            request_timeout_ms=_number(given, "request.timeout.ms", default.request_timeout_ms, least=1),
            api_timeout_ms=_number(given, "default.api.timeout.ms", default.api_timeout_ms, least=1),
            retry_backoff_ms=_number(given, "retry.backoff.ms", default.retry_backoff_ms),
            retry_backoff_max_ms=_number(given, "retry.backoff.max.ms", default.retry_backoff_max_ms),
            # A batch may be larger than what was asked for: it comes whole, as the first of its response.
            max_response_bytes=MAX_INT,
        ),
        security=security,
    )
