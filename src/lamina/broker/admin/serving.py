"""The application on uvicorn, on the broker's own loop.

Owns the bounds of HTTP here: how many connections, how large a header, how long a request may take; and an end that
no client can hold up. Signals, access log and lifespan are left to the broker. Must not know routes.
"""

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import Server

from lamina.broker.admin.answers import encode
from lamina.broker.admin.app import HEADER_BYTES, PRINCIPAL, build_app
from lamina.broker.admin.hosts import HostCheck, is_loopback
from lamina.broker.admin.routes import ROUTES
from lamina.broker.admin.secured_sockets import SecuredSockets
from lamina.broker.admin.subject import Subject
from lamina.broker.cleaner.record_search import SEARCH_MAX_MS
from lamina.broker.network.listener_tls import ListenerTls
from lamina.broker.network.refusal_lines import RefusalLines

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 64
REQUEST_SECONDS = SEARCH_MAX_MS / 1000 + 5
"""For the header of a request, and then again for the rest of it and its answer: also for what a search that took all
its time has found."""
_KEEP_ALIVE_SECONDS = 15
_DRAIN_SECONDS = 0.5
_POLL_SECONDS = 0.005


class Serving:
    """uvicorn's server without its main loop, which would wake the broker ten times a second.

    Made on a thread, because making it imports and compiles; started and stopped on the loop.
    """

    def __init__(
        self,
        subject: Subject,
        sockets: list[socket.socket],
        secured: Sequence[socket.socket] = (),
        tls: ListenerTls | None = None,
    ) -> None:
        """``secured`` are those that speak TLS."""
        guarded = [one.getsockname()[:2] for one in (*sockets, *secured) if is_loopback(one.getsockname()[0])]
        check = HostCheck(guarded, (*subject.listeners, *subject.advertised))
        config = Config(
            _ending_quietly(build_app(subject, ROUTES, check)),
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        config.load()
        self._sockets = sockets
        self._secured_sockets = secured
        self._tls = tls
        self._secured: SecuredSockets | None = None
        self._config = config
        self._server = Server(config)
        self._server.lifespan = config.lifespan_class(config)

    async def start(self) -> None:
        server = self._server
        await server.startup(sockets=self._sockets)
        if self._tls is not None:
            state, tls = server.server_state, self._tls
            protocol = partial(SecuredProtocol, self._config, state, server.lifespan.state, tls=tls)
            self._secured = SecuredSockets(
                self._secured_sockets, tls, protocol, MAX_CONNECTIONS, lambda: len(state.connections)
            )

    async def stop(self) -> None:
        state, loop = self._server.server_state, asyncio.get_running_loop()
        if self._secured is not None:
            self._secured.close()
        for server in self._server.servers:
            server.close()
        for connection in list(state.connections):
            connection.shutdown()
        deadline = loop.time() + _DRAIN_SECONDS
        while (state.connections or state.tasks) and loop.time() < deadline:
            await asyncio.sleep(_POLL_SECONDS)
        for connection in list(state.connections):
            connection.transport.abort()
        tasks = list(state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_KAFKA_BEGINS = b"\0"
"""A Kafka request begins with its size in four bytes, and no first request has 16 MiB; HTTP begins with a letter."""
_SECONDS_BETWEEN_LINES = 60.0
_kafka_clients = RefusalLines(logger, _SECONDS_BETWEEN_LINES)


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 for few and quick clients; errors of the protocol itself are JSON too."""

    _deadline: asyncio.TimerHandle | None = None
    _has_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            message = f"{MAX_CONNECTIONS} connections are open already"
            transport.write(_whole_response(b"503 Service Unavailable", "too_many_connections", message))
            transport.close()
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A Kafka client connects again and again, so that a line for each would flood the log."""
        if not self._has_begun and data.startswith(_KAFKA_BEGINS):
            peer = "unknown" if self.client is None else self.client[0]
            port = "" if self.server is None else f" {self.server[1]}"
            _kafka_clients.say(
                f"a Kafka client at {peer} connected to the admin port{port}, which speaks HTTP: "
                "give it the address of the broker's listener instead",
                self.loop.time(),
            )
            self.send_400_response("")
            return
        self._has_begun = True
        super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._arm()

    def on_response_complete(self) -> None:
        self._arm()
        if self.conn.their_state is h11.SEND_BODY:
            # The rest of what it sends is not read.
            self.transport.close()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        message = f"this is not HTTP/1.1, or its header is larger than {HEADER_BYTES} bytes"
        self.transport.write(_whole_response(b"400 Bad Request", "bad_request", message))
        self.transport.close()

    def _arm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)


class SecuredProtocol(BoundedProtocol):
    """The same over TLS, for clients that may have a certificate."""

    def __init__(self, *given: Any, tls: ListenerTls) -> None:
        super().__init__(*given)
        self._tls = tls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, PRINCIPAL: self._tls.principal_of(transport.get_extra_info("ssl_object"))}


def _whole_response(status: bytes, error: str, message: str) -> bytes:
    body = encode({"error": error, "message": message}) + b"\n"
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return head % (status, len(body)) + body


def _ending_quietly(app: ASGIApp) -> ASGIApp:
    """What the stop cuts short is no error, which it would be to uvicorn."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return serve
