"""What is said on one connection until its client has logged in, and the router's doorway afterwards (KIP-43, KIP-152).

Owns the order of a login (S30-S37): ApiVersions at most once, SaslHandshake, then the mechanism's messages, bare after
version 0 of the handshake, in SaslAuthenticate after version 1. What does not belong there ends the connection: between
the messages of a login with an answer, else without. A failed login is answered late, and nothing is read meanwhile.
Where a login does not hold for ever, its client logs in again on the same connection (KIP-368), or that is closed at
its next request. Must not know any mechanism, nor sockets.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Protocol

from lamina.broker.counters import Counters, LoginOutcome
from lamina.broker.login.strangers import Strangers
from lamina.broker.requests.handlers import sasl_authenticate, sasl_handshake
from lamina.broker.requests.request import Client, CloseConnection, Request, Response
from lamina.broker.requests.router import Router
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, IllegalSaslState
from lamina.security.sasl import SaslError, SaslServer
from lamina.settings.network import SOCKET_REQUEST_MAX_BYTES
from lamina.settings.sasl_listeners import SaslListener
from lamina.wire.api_keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from lamina.wire.building import response_shape
from lamina.wire.codec import encode_response, parse_request
from lamina.wire.headers import RequestHeader, parse_request_header

_SIZE_BYTES = 4
_KEY_BYTES = 2
_BETWEEN_LOGINS_NS = 1_000_000_000
"""A client that logs in again sooner is answered as if it could not at all (S37)."""
_NS_PER_MS = 1_000_000
_MOST_ELEMENTS = 256
"""Tags, of a message that has no other elements."""
_NOT_CHOSEN = "none"
"""The mechanism of clients that never named one of those there are."""


class LoggingIn(Client, Protocol):
    """A connection, as far as a login changes it."""

    principal: str

    def limit_frames(self, max_bytes: int, setting: str) -> None:
        """Take no larger requests from now on, by the setting of that name."""

    def share_memory(self) -> None:
        """Take the memory of requests where all do that have logged in."""

    def refuse(self, reason: str) -> None:
        """End it; the reason goes to the log."""

    def refuse_after_response(self, reason: str) -> None:
        """As ``refuse``, once what is being answered is out."""


class _State(Enum):
    START = auto()
    BARE = auto()
    """The mechanism's messages come as they are."""
    FRAMED = auto()
    """They come in SaslAuthenticate."""
    AUTHENTICATED = auto()
    FAILED = auto()


Served = tuple[Request, Response | Awaitable[Response]]


class _AnotherUser(SaslError):
    told = "Authentication failed: the user of a connection cannot change"


class SaslService:
    __slots__ = (
        "_clocks",
        "_counters",
        "_expires_ns",
        "_has_asked_versions",
        "_last_again_ns",
        "_lifetime_ms",
        "_listener",
        "_loop",
        "_max_frame_bytes",
        "_mechanism",
        "_new_server",
        "_principal",
        "_router",
        "_server",
        "_state",
        "_strangers",
    )

    def __init__(
        self,
        listener: SaslListener,
        new_server: Mapping[str, Callable[[], SaslServer]],
        router: Router,
        strangers: Strangers,
        max_frame_bytes: int,
        counters: Counters,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._listener = listener
        self._new_server = new_server
        self._router = router
        self._strangers = strangers
        self._max_frame_bytes = max_frame_bytes
        self._counters = counters
        self._clocks = clocks
        self._loop = loop
        self._state = _State.START
        self._has_asked_versions = False
        self._mechanism = _NOT_CHOSEN
        self._server: SaslServer | None = None
        self._principal: str | None = None
        """Who has logged in."""
        self._expires_ns: int | None = None
        """When the client has to have logged in again; ``None`` for never."""
        self._lifetime_ms = 0
        """How long it is told that its login holds; 0 for ever, or not at all."""
        self._last_again_ns: int | None = None

    def serve(self, client: LoggingIn, frame: memoryview) -> Served:
        """May raise :class:`MalformedRequest` or :class:`CloseConnection`."""
        state = self._state
        if state is _State.AUTHENTICATED:
            if self._expires_ns is not None and self._logs_in_again(frame, self._expires_ns):
                return self._handshake(client, parse_request_header(frame), frame)
            return self._router.serve(client, frame)
        if state is _State.BARE:
            return self._bare_message(client, bytes(frame))
        if state is _State.FAILED:
            return self._request(client, SASL_AUTHENTICATE, 0), self._close_later()
        header = parse_request_header(frame)
        if state is _State.FRAMED:
            return self._framed_message(client, header, frame)
        if header.api_key == SASL_HANDSHAKE:
            return self._handshake(client, header, frame)
        if header.api_key == API_VERSIONS and not self._has_asked_versions:
            return self._tell_versions(client, frame)
        raise CloseConnection(f"asked for API key {header.api_key} before it logged in")

    def _logs_in_again(self, frame: memoryview, expires_ns: int) -> bool:
        """Whether a login begins here; raises where there should have been one before."""
        now_ns = self._clocks.monotonic_ns()
        if int.from_bytes(frame[:_KEY_BYTES], "big") == SASL_HANDSHAKE and (
            self._last_again_ns is None or now_ns - self._last_again_ns >= _BETWEEN_LOGINS_NS
        ):
            self._last_again_ns = now_ns
            return True
        if now_ns >= expires_ns:
            self._count(LoginOutcome.EXPIRED)
            raise CloseConnection("its login has expired, and it did not log in again")
        return False

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        self._router.sent(requests, sent_ns)

    def connection_failed(self) -> None:
        self._router.connection_failed()

    def _count(self, outcome: LoginOutcome) -> None:
        self._counters.logins[self._listener.name, self._mechanism, outcome] += 1

    def _request(
        self, client: Client, api_key: int, version: int, correlation_id: int = 0, client_id: str | None = None
    ) -> Request:
        counters = self._counters.requests[api_key, version]
        return Request(api_key, version, correlation_id, client_id, client, counters)

    # Before the login

    def _tell_versions(self, client: LoggingIn, frame: memoryview) -> Served:
        request, response = self._router.serve(client, frame, is_free=True)
        # A client whose version is not known, or whose software has no name, asks again.
        self._has_asked_versions = not request.error_code
        return request, response

    def _handshake(self, client: LoggingIn, header: RequestHeader, frame: memoryview) -> Served:
        api_key, version, correlation_id, client_id, body_at = header
        if version not in sasl_handshake.API.versions:
            raise CloseConnection(f"asked for SaslHandshake version {version}")
        mechanism = parse_request(api_key, version, frame[body_at:]).mechanism
        request = self._request(client, api_key, version, correlation_id, client_id)
        names = tuple(self._listener.mechanisms)
        is_known = mechanism in names
        error = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        shape = response_shape(api_key, version)
        response: Response = [encode_response(shape(error_code=error, mechanisms=names), correlation_id)]
        if not is_known:
            request.failed(error)
            return request, self._fail(client, response, f"there is no mechanism {mechanism[:40]!r} here")
        if self._principal is not None and mechanism != self._mechanism:
            self._state = _State.FAILED
            self._count(LoginOutcome.REAUTHENTICATION_FAILURE)
            reason = "it wanted to log in again by another mechanism"
            self._loop.call_later(self._listener.failed_delay_ms / 1000, client.refuse, reason)
            return request, response
        self._mechanism = mechanism
        self._server = self._new_server[mechanism]()
        self._state = _State.FRAMED if version else _State.BARE
        return request, response

    def _framed_message(self, client: LoggingIn, header: RequestHeader, frame: memoryview) -> Served:
        api_key, version, correlation_id, client_id, body_at = header
        if api_key != SASL_AUTHENTICATE:
            error = IllegalSaslState("this is no message of the login that has begun")
            request, response = self._router.refuse(client, frame, error)
            return request, self._fail(client, response, f"asked for API key {api_key} while it logged in")
        if version not in sasl_authenticate.API.versions:
            raise CloseConnection(f"asked for SaslAuthenticate version {version}")
        message = parse_request(api_key, version, frame[body_at:], _MOST_ELEMENTS)
        request = self._request(client, api_key, version, correlation_id, client_id)
        shape = response_shape(api_key, version)
        try:
            answer = self._respond(client, bytes(message.auth_bytes))
        except SaslError as failure:
            error_code = ErrorCode.SASL_AUTHENTICATION_FAILED
            request.failed(error_code)
            told = shape(error_code=error_code, error_message=self._told(failure), auth_bytes=b"")
            return request, self._fail(client, [encode_response(told, correlation_id)], str(failure))
        told = shape(
            error_code=ErrorCode.NONE,
            error_message="",
            auth_bytes=answer,
            session_lifetime=self._lifetime_ms if self._state is _State.AUTHENTICATED else 0,
        )
        return request, [encode_response(told, correlation_id)]

    def _bare_message(self, client: LoggingIn, message: bytes) -> Served:
        request = self._request(client, SASL_AUTHENTICATE, 0)
        try:
            answer = self._respond(client, message)
        except SaslError as failure:
            return request, self._fail(client, None, str(failure))
        return request, [len(answer).to_bytes(_SIZE_BYTES, "big") + answer]

    def _respond(self, client: LoggingIn, message: bytes) -> bytes:
        server = self._server
        assert server is not None, "the handshake made it"
        if len(message) > server.most_message_bytes:
            raise SaslError(
                f"its message has {len(message)} bytes, and none needs more than {server.most_message_bytes}"
            )
        answer = server.respond(message)
        if server.is_complete:
            self._logged_in(client, server)
        return answer

    def _logged_in(self, client: LoggingIn, server: SaslServer) -> None:
        principal = f"User:{server.user}"
        if self._principal is None:
            client.principal = self._principal = principal
            client.limit_frames(self._max_frame_bytes, SOCKET_REQUEST_MAX_BYTES.name)
            client.share_memory()
            self._strangers.left(client)
            outcome = LoginOutcome.SUCCESS
        elif principal == self._principal:
            outcome = LoginOutcome.REAUTHENTICATION_SUCCESS
        else:
            raise _AnotherUser("it wanted to log in again as another user")
        self._count(outcome)
        self._state = _State.AUTHENTICATED
        self._server = None
        lifetimes_ms = []
        if (max_reauth_ms := self._listener.mechanisms[self._mechanism].max_reauth_ms) > 0:
            lifetimes_ms.append(max_reauth_ms)
        if server.expires_at_ms is not None:
            lifetimes_ms.append(max(server.expires_at_ms - self._clocks.now_ms(), 0))
        self._lifetime_ms = min(lifetimes_ms, default=0)
        now_ns = self._clocks.monotonic_ns()
        self._expires_ns = now_ns + self._lifetime_ms * _NS_PER_MS if lifetimes_ms else None

    # Its end

    def _told(self, failure: SaslError) -> str:
        return failure.told or f"Authentication failed: the credentials are invalid ({self._mechanism})"

    def _fail(self, client: LoggingIn, response: Response, reason: str) -> Awaitable[Response]:
        """Answer later, then close."""
        self._state = _State.FAILED
        outcome = LoginOutcome.FAILURE if self._principal is None else LoginOutcome.REAUTHENTICATION_FAILURE
        self._count(outcome)
        return self._answer_later(client, response, f"login by {self._mechanism}: {reason}")

    async def _answer_later(self, client: LoggingIn, response: Response, reason: str) -> Response:
        await asyncio.sleep(self._listener.failed_delay_ms / 1000)
        if response is None:
            raise CloseConnection(reason)
        client.refuse_after_response(reason)
        return response

    async def _close_later(self) -> Response:
        await asyncio.sleep(self._listener.failed_delay_ms / 1000)
        raise CloseConnection("its login has failed")
