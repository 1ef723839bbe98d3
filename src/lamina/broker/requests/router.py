"""Which request goes to which handler: one table, and ApiVersions derived from it.

Owns the list of APIs and versions that this broker speaks. A request for anything else ends its connection, as
Kafka does, except that ApiVersions always gets an answer. An unexpected exception in a handler answers
UNKNOWN_SERVER_ERROR to that request alone. Must not know what any API does.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lamina.broker.counters import Place, RequestCounters
from lamina.broker.network.connection import Connection
from lamina.broker.network.service import Answer, ConnectionRefused
from lamina.broker.waits import WAITS, Waits
from lamina.errors import KafkaError, UnknownServerError
from lamina.wire.answer_errors import error_codes
from lamina.wire.codec import encode_response, parse_request
from lamina.wire.headers import parse_request_header

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)


class Request:
    """What a handler knows of a request besides its message, and when its connection did what with it."""

    __slots__ = (
        "api_key",
        "api_version",
        "arrived_ns",
        "began_ns",
        "client_id",
        "connection",
        "correlation_id",
        "counters",
        "ended_ns",
        "error_code",
        "received_ns",
        "size_bytes",
        "waits",
    )

    arrived_ns: int
    """When its first bytes came, and the next ones: its last byte, its handler's turn, its answer."""
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
        connection: Connection,
        counters: RequestCounters,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.counters = counters
        self.error_code = 0
        self.waits: Waits | None = None

    def failed(self, error_code: int) -> None:
        """Its answer tells this error, perhaps among others."""
        self.error_code = error_code
        self.counters.errors[error_code] = self.counters.errors.get(error_code, 0) + 1


Handler = Callable[["Node", Request, Any], Any]
"""Returns the response message, or an awaitable of it; for a ``raw`` API the pieces of the answer."""

ErrorAnswer = Callable[[Request, Any, KafkaError], Any]


class Api(NamedTuple):
    key: int
    name: str
    versions: range
    handle: Handler
    error_answer: ErrorAnswer
    """The answer that tells every part of the request this error."""
    parse: Callable[[int, memoryview], Any] | None = None
    """For APIs that read their requests by hand; such a handler also writes its own frames."""
    advertised_from: int | None = None
    """The lowest version to advertise where that is not the lowest accepted."""


class Router:
    """The table, bound to a node. Serves frames of any connection."""

    def __init__(self, node: "Node", apis: Iterable[Api]) -> None:
        self._node = node
        self.apis = {api.key: api for api in apis}
        self._offered: dict[tuple[int, int], tuple[Api, RequestCounters]] = {}
        for api in self.apis.values():
            for version in api.versions:
                counters = RequestCounters(api.name, version)
                self._offered[api.key, version] = (api, counters)
                node.counters.requests[api.key, version] = counters
        self.settle: Callable[[Sequence[Request], int], None] = node.request_watch.settle

    def serve(self, connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
        api_key, api_version, correlation_id, client_id, body_at = parse_request_header(frame)
        offered = self._offered.get((api_key, api_version))
        if offered is None:
            return self._refuse(connection, api_key, api_version, correlation_id, client_id)
        api, counters = offered
        request = Request(api_key, api_version, correlation_id, client_id, connection, counters)
        connection.request = request
        connection.client_id = client_id
        body = frame[body_at:]
        message = api.parse(api_version, body) if api.parse else parse_request(api_key, api_version, body)
        try:
            response = api.handle(self._node, request, message)
        except KafkaError as error:
            response = api.error_answer(request, message, error)
        except ConnectionRefused:
            raise
        except Exception as error:
            response = self._unexpected(api, request, message, error)
        if type(response) is list or response is None:
            return response
        if isinstance(response, Awaitable):
            return self._wait(api, request, message, response)
        return _pieces(request, response)

    def _refuse(
        self, connection: Connection, api_key: int, api_version: int, correlation_id: int, client_id: str | None
    ) -> Answer:
        """What is not offered ends the connection, save that ApiVersions is answered in any version."""
        api = self.apis.get(api_key)
        if api is None:
            raise ConnectionRefused(f"asked for API key {api_key}, which is not offered")
        if api_key != API_VERSIONS:
            raise ConnectionRefused(
                f"asked for {api.name} version {api_version}; versions {api.versions[0]} to "
                f"{api.versions[-1]} are offered"
            )
        known = self._node.counters.requests
        counters = known.setdefault((api_key, UNSUPPORTED_VERSION), RequestCounters(api.name, UNSUPPORTED_VERSION))
        request = Request(api_key, UNSUPPORTED_VERSION, correlation_id, client_id, connection, counters)
        connection.request = request
        return _pieces(request, api.handle(self._node, request, None))

    async def _wait(self, api: Api, request: Request, message: Any, response: Awaitable[Any]) -> Answer:
        request.waits = Waits()
        WAITS.set(request.waits)
        try:
            answered = await response
        except KafkaError as error:
            answered = api.error_answer(request, message, error)
        except ConnectionRefused:
            raise
        except Exception as error:
            answered = self._unexpected(api, request, message, error)
        return _pieces(request, answered)

    def count_unexpected(self) -> None:
        """A connection failed in a way that nobody expected."""
        self._node.count_unexpected(Place.CONNECTION)

    def _unexpected(self, api: Api, request: Request, message: Any, error: Exception) -> Any:
        logger.error("%s: %s version %d failed", request.connection.peer, api.name, request.api_version, exc_info=error)
        self._node.count_unexpected(Place.HANDLER)
        return api.error_answer(
            request, message, UnknownServerError("the broker failed unexpectedly; its log says how")
        )


API_VERSIONS = 18
UNSUPPORTED_VERSION = -1
"""What a handler of ApiVersions is told when the client asked in a version that nobody knows."""


def _pieces(request: Request, response: Any) -> Answer:
    if response is None or type(response) is list:
        return response
    for error_code in error_codes(response):
        request.failed(error_code)
    return [encode_response(response, request.correlation_id)]
