"""One connection to one broker: an `Exchange` on a transport, with its time limits.

Owns the transport, who waits for which response, and the bound on requests in flight. Whatever ends the connection
(the broker, bytes that are no response, a late response, `close`) ends it once: everybody who waits is told the same
sentence. A response that is late ends it too, because those behind it come in order. Must not know how the connection
was made, nor any cluster.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from lamina.errors import ErrorCode, KafkaError, MalformedResponse, NetworkError, RequestTimedOut, UnsupportedVersion
from lamina.peer.addresses import Address
from lamina.peer.call import Call
from lamina.peer.exchange import Exchange
from lamina.peer.limits import Limits
from lamina.peer.tls_failures import why_tls_failed
from lamina.peer.versions import ApiVersionsCall, OfferedVersions, next_attempt

T = TypeVar("T")

FollowUp = Callable[[T], Call[T] | None]
"""Shown a response in the turn of the loop in which it came. What it returns is asked at once, in the same version, and
whoever waits for a response waits on; after ``None`` this response is the one."""


class _Waiting(NamedTuple):
    response: "asyncio.Future[Any]"
    version: int
    follow_up: FollowUp[Any] | None


class Session(Protocol):
    """What a login gave: who the connection is, for a time."""

    @property
    def is_current(self) -> bool: ...

    async def renew(self) -> None:
        """Returns when requests may be sent again. Raises `KafkaError` where the login is refused."""


class Connection(asyncio.BufferedProtocol):
    """Made by a `Connector`; `negotiate` comes before the first `request`."""

    def __init__(self, address: Address, client_id: str, limits: Limits) -> None:
        self.address = address
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._exchange = Exchange(client_id, limits.max_response_bytes)
        self._offered: OfferedVersions | None = None
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[_Waiting] = deque()
        """For the responses to what is in flight, in the same order."""
        self._free = asyncio.Semaphore(limits.max_in_flight)
        self._timer: asyncio.TimerHandle | None = None
        self._failure: KafkaError | None = None
        self._session: Session | None = None

    @property
    def is_usable(self) -> bool:
        return self._failure is None

    # Asking

    async def negotiate(self) -> None:
        """Learn which versions the broker offers, unless that is known."""
        if self._offered is not None:
            return
        call = ApiVersionsCall()
        response = await self.send(call, call.versions[-1])
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            call = next_attempt(response)
            response = await self.send(call, call.versions[-1])
        if response.error_code:
            raise UnsupportedVersion(f"{self.address} does not tell its versions (error {int(response.error_code)})")
        self._offered = OfferedVersions(response.api_keys, getattr(response, "finalized_features", ()))

    def feature_level(self, name: str) -> int:
        """At which level the cluster has a feature, as this broker told at the beginning."""
        assert self._offered is not None, "negotiate comes first"
        return self._offered.feature_level(name)

    async def request(self, call: Call[T], follow_up: FollowUp[T] | None = None) -> T:
        """The response, in the newest version that both sides know. Errors inside it are the caller's to read.

        With ``follow_up`` it is the last response of several calls, one after the other. What that raises is raised.
        """
        assert self._offered is not None, "negotiate comes first"
        return await self.send(call, self._offered.version_for(call), follow_up)

    def begin_session(self, session: Session) -> None:
        """From now on requests are sent only while it is current."""
        self._session = session

    async def send_within_login(self, call: Call[T]) -> T:
        """As `request`, for what a session is begun or renewed with."""
        assert self._offered is not None, "negotiate comes first"
        version = self._offered.version_for(call)
        await self._free.acquire()
        return await self._send(call, version)

    async def send(self, call: Call[T], version: int, follow_up: FollowUp[T] | None = None) -> T:
        """The response in a version that the caller knows to be offered."""
        await self._free.acquire()
        while self._session is not None and not self._session.is_current:
            self._free.release()
            await self._session.renew()
            await self._free.acquire()
        return await self._send(call, version, follow_up)

    async def _send(self, call: Call[T], version: int, follow_up: FollowUp[T] | None = None) -> T:
        """The response; one of the places for requests in flight is the caller's to have taken."""
        if self._failure is not None:
            self._free.release()
            raise _same(self._failure)
        response: asyncio.Future[T] = self._loop.create_future()
        try:
            self._write(call, _Waiting(response, version, follow_up))
        except BaseException:
            self._free.release()
            raise
        return await response

    def _write(self, call: Call[Any], waiting: _Waiting) -> None:
        assert self._transport is not None
        due = self._loop.time() + (self._limits.request_timeout_ms + call.wait_ms) / 1000
        frame = self._exchange.send(call, waiting.version, due)
        self._waiting.append(waiting)
        self._transport.write(frame)
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._check_late)
        elif due < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(due, self._check_late)

    # Ending

    def close(self) -> None:
        self._fail(NetworkError(f"the connection to {self.address} was closed"))

    def _check_late(self) -> None:
        self._timer = None
        if self._exchange.is_late(self._loop.time()):
            self._fail(RequestTimedOut(f"{self.address} did not answer within its time"))
        elif (due := self._exchange.next_due) is not None:
            self._timer = self._loop.call_at(due, self._check_late)

    def _fail(self, error: KafkaError) -> None:
        """The first reason holds."""
        if self._failure is not None:
            return
        self._failure = error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        while self._waiting:
            response, _, _ = self._waiting.popleft()
            if not response.done():
                response.set_exception(_same(error))
            self._free.release()

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._exchange.buffer_for_recv()

    def buffer_updated(self, nbytes: int) -> None:
        if self._failure is not None:
            return
        try:
            responses = self._exchange.received(nbytes)
        except MalformedResponse as error:
            self._fail(MalformedResponse(f"{self.address}: {error}"))
            return
        for response in responses:
            waiting = self._waiting.popleft()
            # A caller that was cancelled meanwhile does not wait any more; its place in the order is kept until here.
            if not waiting.response.done():
                if waiting.follow_up is None:
                    waiting.response.set_result(response)
                elif self._is_followed_up(waiting, waiting.follow_up, response):
                    continue
            self._free.release()

    def _is_followed_up(self, waiting: _Waiting, follow_up: FollowUp[Any], response: Any) -> bool:
        """Whether another call was sent, for which the place in flight is kept."""
        is_current = self._session is None or self._session.is_current
        try:
            call = follow_up(response) if is_current else None
            if call is None:
                waiting.response.set_result(response)
                return False
            if self._failure is not None:
                raise _same(self._failure)
            self._write(call, waiting)
        except Exception as error:
            waiting.response.set_exception(error)
            return False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError):
            # A certificate that a broker does not take is told of after the handshake in TLS 1.3 (S17).
            self._fail(why_tls_failed(self.address, exc))
            return
        reason = f" ({exc})" if exc is not None else ""
        self._fail(NetworkError(f"{self.address} ended the connection{reason}{self._advice()}"))

    def _advice(self) -> str:
        """What a listener with TLS or with a login does to a client without: it says nothing, and closes."""
        if self._exchange.answered > 1:
            return ""
        if self._transport is not None and self._transport.get_extra_info("ssl_object") is not None:
            return " before it served anything; if it wants a certificate or a login, set ssl.keystore.* or sasl.*"
        return " before it served anything; if its listener has TLS or a login, set security.protocol"


def _same(error: KafkaError) -> KafkaError:
    """One for each waiter: an exception collects the frames in which it is raised."""
    return type(error)(*error.args)
