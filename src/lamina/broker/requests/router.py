"""Which request goes to which handler: one table, and ApiVersions derived from it.

A request for anything that is not in the table ends its connection, as Kafka does, except that ApiVersions always gets
a response; so does what only brokers may ask, on a listener that is not theirs. What only the controller answers is
forwarded to it. An unexpected exception in a handler answers UNKNOWN_SERVER_ERROR to that request alone. Throttle time
is written here; where quotas are set, what a request costs is counted from here on. Large requests are parsed on a
thread, and responses of many entries encoded there, so that neither holds up the loop. Must not know what any API does.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lamina.broker.counters import Counters, Place, RequestCounters
from lamina.broker.readiness import Readiness
from lamina.broker.requests.api import UNSUPPORTED_VERSION, Api, Check, Handler
from lamina.broker.requests.client_quotas import ClientQuotas
from lamina.broker.requests.forwarding import Forwarding
from lamina.broker.requests.later_response import LaterResponse
from lamina.broker.requests.request import Client, CloseConnection, Request, Response
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.threads import Threads
from lamina.broker.waits import WAITS, Waits
from lamina.errors import KafkaError, UnknownServerError
from lamina.wire.answer_entries import has_entries, names_entries
from lamina.wire.answer_errors import error_codes
from lamina.wire.api_keys import ADD_PARTITIONS_TO_TXN, API_VERSIONS, WRITE_TXN_MARKERS
from lamina.wire.codec import encode_response, parse_request
from lamina.wire.headers import parse_request_header

logger = logging.getLogger(__name__)

LARGE_REQUEST_BYTES = 32 * 1024
"""The smallest structures take three bytes and a microsecond each: what is shorter is parsed within 10 ms."""
_BETWEEN_BROKERS = frozenset({ADD_PARTITIONS_TO_TXN, API_VERSIONS, WRITE_TXN_MARKERS})
LARGE_RESPONSE_ENTRIES = 1000
"""Each takes one to three microseconds to encode."""


class Router:
    """Serves frames of any connection."""

    def __init__(
        self,
        table: Iterable[tuple[Api, Handler]],
        counters: Counters,
        request_watch: RequestWatch,
        message_thread: Threads,
        readiness: Readiness,
        client_quotas: ClientQuotas,
        forwarding: Forwarding | None = None,
        broker_listener: str | None = None,
        *,
        is_broker_listener_apart: bool = False,
        checks: Mapping[int, Check] | None = None,
    ) -> None:
        """In a cluster there is ``forwarding``, and ``broker_listener`` is the name of the listener between brokers.

        That is apart where clients have listeners of their own. ``checks`` come before a request is forwarded, by API.
        """
        self._checks = checks or {}
        self._is_broker_listener_apart = is_broker_listener_apart
        self._client_quotas = client_quotas
        self._message_thread = message_thread
        self._forwarding = forwarding
        self._broker_listener = broker_listener
        self._readiness = readiness
        self._counters = counters
        self._request_watch = request_watch
        self._apis: dict[int, tuple[Api, Handler]] = {}
        self._offered: dict[tuple[int, int], tuple[Api, Handler, RequestCounters]] = {}
        for api, handle in table:
            self._apis[api.key] = (api, handle)
            for version in api.versions:
                counted = counters.requests[api.key, version] = RequestCounters(api.name, version)
                self._offered[api.key, version] = (api, handle, counted)

    @property
    def apis(self) -> list[Api]:
        return [api for api, _ in self._apis.values()]

    def handler(self, api_key: int) -> Handler:
        return self._apis[api_key][1]

    def serve(
        self, client: Client, frame: memoryview, *, is_free: bool = False
    ) -> "tuple[Request, Response | Awaitable[Response]]":
        """May raise :class:`MalformedRequest` or :class:`CloseConnection`.

        A free request counts for no quota: one that another broker has forwarded is charged there (S49), and a client
        that has not logged in yet is nobody who could have one.
        """
        api_key, api_version, correlation_id, client_id, body_at = parse_request_header(frame)
        offered = self._offered.get((api_key, api_version))
        if offered is None:
            return self._serve_unsupported(client, api_key, api_version, correlation_id, client_id)
        api, handle, counters = offered
        request = Request(api_key, api_version, correlation_id, client_id, client, counters)
        if self._client_quotas.is_set and not is_free:
            self._begin_to_charge(api, request, len(frame))
        body = frame[body_at:]
        if self._readiness.is_for_brokers_alone and not (
            api.is_for_brokers or api.is_for_controller or api_key == API_VERSIONS
        ):
            raise CloseConnection(f"asked for {api.name} while this broker starts")
        if api.is_for_brokers and self._broker_listener not in (None, client.listener_name):
            raise CloseConnection(f"asked for {api.name}, which only brokers may ask, on {client.listener_name}")
        forwarding = self._forwarding if api.is_for_controller else None
        if forwarding is not None and not _stays_here(api, request, body):
            return request, self._decide(forwarding, api, handle, request, bytes(frame), body_at)
        if len(body) > LARGE_REQUEST_BYTES and not api.refers_to_frame:
            # The parser would copy the body first: done here, the frame need not be held meanwhile.
            return request, self._serve_large(api, handle, request, bytes(body))
        message = _parsed(api, request, body)
        try:
            response = handle(request, message)
            if type(response) is LaterResponse and response.done():
                response = response.result()
        except Exception as error:
            response = self._made_from_error(api, request, message, error)
        if type(response) is list or response is None:
            return request, response
        if type(response) is LaterResponse:
            response.guard(partial(self._made_from_error, api, request, message))
            return request, response
        if isinstance(response, Awaitable):
            return request, self._wait(api, request, message, response)
        if has_entries(response, LARGE_RESPONSE_ENTRIES):
            return request, self._encode_large(request, response)
        return request, _encoded(request, response)

    def _made_from_error(self, api: Api, request: Request, message: Any, error: Exception) -> Any:
        """The response that tells an error of a handler, or what makes it; one that ends the connection is raised."""
        if isinstance(error, CloseConnection):
            raise error
        known = error if isinstance(error, KafkaError) else self._unexpected(api, request, error)
        return self._error_response(api, request, message, known)

    def refuse(self, client: Client, frame: memoryview, error: KafkaError) -> tuple[Request, Response]:
        """The response that tells this error to a request which is not served; raises as :meth:`serve`."""
        api_key, api_version, correlation_id, client_id, body_at = parse_request_header(frame)
        offered = self._offered.get((api_key, api_version))
        body = frame[body_at:]
        if offered is None or len(body) > LARGE_REQUEST_BYTES:
            raise CloseConnection(f"asked for API key {api_key} version {api_version}: {error}")
        api, _, counters = offered
        request = Request(api_key, api_version, correlation_id, client_id, client, counters)
        return request, _encoded(request, api.error_response(request, _parsed(api, request, body), error))

    def _begin_to_charge(self, api: Api, request: Request, size_bytes: int) -> None:
        """Unless a broker asks it: these have no quotas (S65). Beside clients on one listener, only what no client asks
        is known to be theirs."""
        is_on_theirs = request.listener_name == self._broker_listener
        if api.is_for_brokers or (is_on_theirs and (self._is_broker_listener_apart or api.key in _BETWEEN_BROKERS)):
            request.is_exempt = True
        else:
            request.size_bytes = size_bytes
            request.charge = self._client_quotas.charge(request)

    async def _decide(
        self, forwarding: Forwarding, api: Api, handle: Handler, request: Request, frame: bytes, body_at: int
    ) -> Response:
        """By the controller, whoever that is until there is an answer."""
        message = await self._parse_apart(api, request, frame[body_at:])
        check = self._checks.get(api.key)

        async def here() -> Any:
            response = handle(request, message)
            return await response if isinstance(response, Awaitable) else response

        async def decided() -> Any:
            if check is not None and (refusal := await check(request, message)) is not None:
                return refusal
            return await forwarding.decide(request, frame, _timeout(message), here)

        return await self._wait(api, request, message, decided())

    async def _serve_large(self, api: Api, handle: Handler, request: Request, body: bytes) -> Response:
        request.waits = Waits()
        WAITS.set(request.waits)
        message = await self._parse_apart(api, request, body)

        async def handled() -> Any:
            response = handle(request, message)
            return await response if isinstance(response, Awaitable) else response

        return await self._wait(api, request, message, handled())

    async def _parse_apart(self, api: Api, request: Request, body: bytes) -> Any:
        if len(body) <= LARGE_REQUEST_BYTES:
            return _parsed(api, request, body)

        return await self._message_thread.compute(lambda: _parsed(api, request, body))

    def _serve_unsupported(
        self, client: Client, api_key: int, api_version: int, correlation_id: int, client_id: str | None
    ) -> tuple[Request, Response]:
        """What is not offered ends the connection, save that ApiVersions is answered in any version."""
        if api_key not in self._apis:
            raise CloseConnection(f"asked for API key {api_key}, which is not offered")
        api, handle = self._apis[api_key]
        if api_key != API_VERSIONS:
            raise CloseConnection(
                f"asked for {api.name} version {api_version}; versions {api.versions[0]} to "
                f"{api.versions[-1]} are offered"
            )
        counters = self._counters.requests.setdefault(
            (api_key, UNSUPPORTED_VERSION), RequestCounters(api.name, UNSUPPORTED_VERSION)
        )
        request = Request(api_key, UNSUPPORTED_VERSION, correlation_id, client_id, client, counters)
        return request, _encoded(request, handle(request, None))

    async def _wait(self, api: Api, request: Request, message: Any, response: Awaitable[Any]) -> Response:
        if request.waits is None:
            request.waits = Waits()
            WAITS.set(request.waits)
        try:
            answered = await response
        except Exception as error:
            answered = await _awaited(self._made_from_error(api, request, message, error))
        request.unpark()
        if type(answered) is not list and answered is not None and has_entries(answered, LARGE_RESPONSE_ENTRIES):
            return await self._encode_large(request, answered)
        return _encoded(request, answered)

    def _error_response(self, api: Api, request: Request, message: Any, error: KafkaError) -> Any:
        """Made on a thread where it tells of many entries, and then awaited."""
        if api.parse is not None or not names_entries(message, LARGE_RESPONSE_ENTRIES):
            return api.error_response(request, message, error)
        return self._message_thread.compute(lambda: api.error_response(request, message, error))

    async def _encode_large(self, request: Request, response: Any) -> Response:
        response = _throttled(request, response)

        def encode() -> tuple[Counter[int], bytearray]:
            return Counter(error_codes(response)), encode_response(response, request.correlation_id)

        errors, encoded = await self._message_thread.compute(encode)
        for error_code, times in errors.items():
            request.failed(error_code, times)
        return [encoded]

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        """The responses of these went out."""
        self._request_watch.answered(requests, sent_ns)

    def connection_failed(self) -> None:
        """A fault of ours cost a connection."""
        self._counters.count_unexpected(Place.CONNECTION)

    def _unexpected(self, api: Api, request: Request, error: Exception) -> KafkaError:
        logger.error("%s: %s version %d failed", request.client.peer, api.name, request.api_version, exc_info=error)
        self._counters.count_unexpected(Place.HANDLER)
        return UnknownServerError("the broker failed unexpectedly; its log says how")


async def _awaited(answer: Any) -> Any:
    return await answer if isinstance(answer, Awaitable) else answer


def _stays_here(api: Api, request: Request, body: memoryview) -> bool:
    return api.stays_here is not None and api.stays_here(_parsed(api, request, body))


def _timeout(message: Any) -> float | None:
    """How many seconds the client gives the controller, if it says so."""
    timeout = getattr(message, "timeout", None)
    return None if timeout is None else float(timeout.total_seconds())


def _parsed(api: Api, request: Request, body: memoryview | bytes) -> Any:
    if api.parse is not None:
        return api.parse(request.api_version, body)
    return parse_request(request.api_key, request.api_version, body)


def _encoded(request: Request, response: Any) -> Response:
    if response is None or type(response) is list:
        return response
    for error_code in error_codes(response):
        request.failed(error_code)
    return [encode_response(_throttled(request, response), request.correlation_id)]


def _throttled(request: Request, response: Any) -> Any:
    throttle_ms = request.throttled_ms()
    if throttle_ms and hasattr(response, "throttle_time"):
        return response.replace(throttle_time=throttle_ms)
    return response
