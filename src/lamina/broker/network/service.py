"""What answers the requests of a connection, as the connection sees it.

Owns the form of an answer and what may go wrong instead of one. Must not know sockets, nor any API.
"""

from collections.abc import Awaitable, Callable, Sequence, Sized
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lamina.broker.network.connection import Connection
    from lamina.broker.requests.router import Request

Answer = list[Sized] | None
"""Pieces to send in order, bytes or leased file ranges; ``None`` when the client expects no answer."""


class ConnectionRefused(Exception):
    """The client did what a connection does not survive; the sentence goes to the log."""


class Service(Protocol):
    """What answers requests."""

    def serve(self, connection: "Connection", frame: memoryview) -> "Answer | Awaitable[Answer]":
        """May raise :class:`MalformedRequest` or :class:`ConnectionRefused`; leaves the request at the connection."""

    @property
    def settle(self) -> "Callable[[Sequence[Request], int], None]":
        """Told of requests whose answers went out, and when."""

    def count_unexpected(self) -> None:
        """Told of a fault of ours that cost a connection."""
