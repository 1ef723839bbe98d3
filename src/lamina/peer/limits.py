"""How long and how much one client waits for, with Kafka's names for it where Kafka has one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    connect_timeout_ms: int = 10_000
    """``socket.connection.setup.timeout.ms``; the version exchange is part of it."""
    request_timeout_ms: int = 30_000
    """``request.timeout.ms``: from sending a request to its whole response."""
    api_timeout_ms: int = 60_000
    """``default.api.timeout.ms``: over all attempts at one call."""
    retry_backoff_ms: int = 100
    """``retry.backoff.ms``"""
    retry_backoff_max_ms: int = 1_000
    """``retry.backoff.max.ms``"""
    max_in_flight: int = 5
    """``max.in.flight.requests.per.connection``"""
    max_response_bytes: int = 100 * 1024 * 1024
