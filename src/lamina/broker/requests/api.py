"""What the router knows of an API: its number, its versions, how its errors are told.

Must not know what any API does.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from lamina.broker.requests.request import Request
from lamina.errors import KafkaError

Handler = Callable[[Request, Any], Any]
"""Returns the response message, or an awaitable of it; for an API with a parser of its own, the pieces to send."""

Check = Callable[[Request, Any], Awaitable[Any]]
"""Returns the response to a request that is not to be sent on to the controller, or ``None``."""

ErrorResponse = Callable[[Request, Any, KafkaError], Any]

UNSUPPORTED_VERSION = -1
"""What a handler of ApiVersions is told when the client asked in an unknown version."""


class Api(NamedTuple):
    key: int
    name: str
    versions: range
    error_response: ErrorResponse
    """The response that tells every part of the request this error."""
    parse: Callable[[int, Any], Any] | None = None
    """From version and body, for APIs that read their requests by hand; such a handler also writes its own frames."""
    refers_to_frame: bool = False
    """Whether its messages refer to the bytes that the client sent."""
    advertised_from: int | None = None
    """The lowest version to advertise where that is not the lowest accepted."""
    is_for_controller: bool = False
    """Whether only the controller answers it: another broker of a cluster sends it on (R41)."""
    stays_here: Callable[[Any], bool] | None = None
    """Which of such messages are not sent on, because they concern this broker alone."""
    is_for_brokers: bool = False
    """Whether only brokers of a cluster may ask it, on the listener between brokers."""
