"""Which request goes to which handler: one table, and ApiVersions derived from it.

Owns the list of APIs and versions that this broker speaks. A request for anything else ends its connection, as
Kafka does, except that ApiVersions always gets an answer. An unexpected exception in a handler answers
UNKNOWN_SERVER_ERROR to that request alone. Must not know what any API does.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from lamina.broker.connection import Answer, Connection, ConnectionRefused
from lamina.errors import KafkaError, UnknownServerError
from lamina.wire.codec import encode_response, parse_request
from lamina.wire.headers import parse_request_header

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)


class Request(NamedTuple):
    """What a handler knows of a request besides its message."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    connection: Connection


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

    def serve(self, connection: Connection, frame: memoryview) -> Answer | Awaitable[Answer]:
        header = parse_request_header(frame)
        api_key, api_version, correlation_id, client_id, body_at = header
        request = Request(api_key, api_version, correlation_id, client_id, connection)
        api = self.apis.get(api_key)
        if api is None:
            raise ConnectionRefused(f"asked for API key {api_key}, which is not offered")
        body = frame[body_at:]
        if api_version not in api.versions:
            if api_key != API_VERSIONS:
                raise ConnectionRefused(
                    f"asked for {api.name} version {api_version}; versions {api.versions[0]} to "
                    f"{api.versions[-1]} are offered"
                )
            request, body = request._replace(api_version=UNSUPPORTED_VERSION), frame[:0]
            return _pieces(api.handle(self._node, request, None), correlation_id)
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
        return _pieces(response, correlation_id)

    async def _wait(self, api: Api, request: Request, message: Any, response: Awaitable[Any]) -> Answer:
        try:
            answered = await response
        except KafkaError as error:
            answered = api.error_answer(request, message, error)
        except ConnectionRefused:
            raise
        except Exception as error:
            answered = self._unexpected(api, request, message, error)
        return _pieces(answered, request.correlation_id)

    def _unexpected(self, api: Api, request: Request, message: Any, error: Exception) -> Any:
        logger.error("%s: %s version %d failed", request.connection.peer, api.name, request.api_version, exc_info=error)
        self._node.unexpected_errors += 1
        return api.error_answer(
            request, message, UnknownServerError("the broker failed unexpectedly; its log says how")
        )


API_VERSIONS = 18
UNSUPPORTED_VERSION = -1
"""What a handler of ApiVersions is told when the client asked in a version that nobody knows."""


def _pieces(response: Any, correlation_id: int) -> Answer:
    if response is None or type(response) is list:
        return response
    return [encode_response(response, correlation_id)]
