"""A broker's end of a simulated connection: one request at a time, responses in order.

Does what `lamina.broker.network.connection` does, without a socket: what a client sent before it went away is served to
the end, but waits for no news any more. Ranges of files are read. Must not know any API.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from lamina.broker.requests.later_response import LaterResponse
from lamina.broker.requests.request import ANONYMOUS, Client, CloseConnection, Request, Response, host_of
from lamina.errors import StorageError
from lamina.log.lease import Lease
from lamina.wire.codec import SIZE_BYTES
from lamina.wire.primitives import MalformedRequest
from tests.simulation.links import Pipe


class Service(Protocol):
    """What answers requests: the router."""

    def serve(self, client: Client, frame: memoryview) -> "tuple[Request, Response | Awaitable[Response]]": ...


class ServedConnection:
    principal = ANONYMOUS
    client_software = ""

    def __init__(
        self, number: int, peer: str, listener_name: str, service: Service, on_close: Callable[[], None]
    ) -> None:
        self.id = number
        self.peer = peer
        self.host = host_of(peer)
        self.listener_name = listener_name
        self.outgoing: Pipe
        self._service = service
        self._on_close = on_close
        self._frames: deque[bytearray] = deque()
        self._request: Request | None = None
        self._task: asyncio.Future[Response] | None = None
        self._is_abandoned = False
        self._is_draining = False
        self.is_closed = False
        self._when_gone: list[Callable[[], None]] = []

    def when_gone(self, told: Callable[[], None]) -> None:
        self._when_gone.append(told)
        if self._is_abandoned or self.is_closed:
            self._tell_gone()

    def _tell_gone(self) -> None:
        waiting, self._when_gone = self._when_gone, []
        for told in waiting:
            told()

    def received(self, frame: bytes) -> None:
        """A whole frame; without any bytes, the client is gone."""
        if self.is_closed:
            return
        if frame:
            self._frames.append(bytearray(frame[SIZE_BYTES:]))
        else:
            self._is_abandoned = True
            self._tell_gone()
            if self._task is not None and self._request is not None:
                self._request.abandon()
        self._go_on()

    def drain(self) -> None:
        """Close as soon as what is under way is answered."""
        self._is_draining = True
        self._go_on()

    def _go_on(self) -> None:
        try:
            while self._task is None and self._frames and not self._is_draining and not self.is_closed:
                self._serve(self._frames.popleft())
        except (MalformedRequest, CloseConnection):
            self.close()
        if self._task is None and (self._is_draining or self._is_abandoned):
            self.close()

    def _serve(self, frame: bytearray) -> None:
        self._request, response = self._service.serve(self, memoryview(frame))
        if self._is_abandoned:
            self._request.abandon()
        if isinstance(response, LaterResponse):
            self._task = response
            response.tell(self._responded_at_once)
        elif isinstance(response, Awaitable):
            self._task = asyncio.ensure_future(response)
            self._task.add_done_callback(self._responded)
        else:
            self._send(response)

    def _responded_at_once(self, response: LaterResponse) -> None:
        self._respond(response)
        # In the midst of another request, in which no other is served.
        asyncio.get_running_loop().call_soon(self._go_on)

    def _responded(self, task: "asyncio.Future[Response]") -> None:
        self._respond(task)
        self._go_on()

    def _respond(self, task: "asyncio.Future[Response]") -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or isinstance(error, MalformedRequest | CloseConnection):
            self.close()
        elif error is not None:
            raise error
        else:
            self._send(task.result())

    def _send(self, response: Response) -> None:
        try:
            data = b"".join(_read(piece) for piece in response or ())
        except StorageError:
            # What came next would be taken for records.
            self.close()
            return
        if data:
            self.outgoing.send(data)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._tell_gone()
            self.outgoing.end()
            self._on_close()


def _read(piece: object) -> bytes:
    if not isinstance(piece, Lease):
        return bytes(cast(bytes, piece))
    with piece:
        return piece.read()
