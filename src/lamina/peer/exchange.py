"""One connection's requests and responses, without its socket.

Owns correlation ids, the order of what is in flight, and the time by which each response is due. A broker answers in
the order in which it was asked, so a response belongs to the oldest request in flight or the connection is of no use
any more: every error here is one of the whole connection. Time is an argument (`now`, in seconds of a monotonic
clock). Must not know sockets, nor what any message means.
"""

from collections import deque
from struct import Struct
from typing import Any, NamedTuple

from lamina.errors import MalformedResponse
from lamina.peer.call import Call
from lamina.peer.incoming import IncomingFrames
from lamina.wire.primitives import Buffer, MalformedRequest

_unpack_correlation_id = Struct(">i").unpack_from
_CORRELATION_IDS = 2**31


class _InFlight(NamedTuple):
    correlation_id: int
    call: Call[Any]
    version: int
    due: float


class Exchange:
    """Requests in, bytes out; bytes in, responses out, in the order of the requests."""

    __slots__ = ("_client_id", "_frames", "_in_flight", "_next_correlation_id")

    def __init__(self, client_id: str, max_response_bytes: int) -> None:
        self._client_id = client_id
        self._frames = IncomingFrames(max_response_bytes)
        self._in_flight: deque[_InFlight] = deque()
        self._next_correlation_id = 0

    # Out

    def send(self, call: Call[Any], version: int, due: float) -> Buffer:
        """The bytes to send for a call whose response is due at a time."""
        correlation_id = self._next_correlation_id
        frame = call.encode(version, correlation_id, self._client_id)
        self._next_correlation_id = (correlation_id + 1) % _CORRELATION_IDS
        self._in_flight.append(_InFlight(correlation_id, call, version, due))
        return frame

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def answered(self) -> int:
        """How many requests have got their responses."""
        return self._next_correlation_id - len(self._in_flight)

    @property
    def next_due(self) -> float | None:
        """The earliest time at which a response is late."""
        return min((one.due for one in self._in_flight), default=None)

    def is_late(self, now: float) -> bool:
        due = self.next_due
        return due is not None and due <= now

    # In

    def buffer_for_recv(self) -> memoryview:
        """Where to receive into; never empty."""
        return self._frames.buffer_for_recv()

    def received(self, count: int) -> list[Any]:
        """The responses that `count` bytes more have completed. Raises `MalformedResponse`; then nothing is usable."""
        if count and not self._in_flight:
            raise MalformedResponse("it sent what nobody asked for")
        return [self._read(frame) for frame in self._frames.received(count)]

    def _read(self, frame: memoryview) -> Any:
        if not self._in_flight:
            raise MalformedResponse("it sent what nobody asked for")
        expected, call, version, _ = self._in_flight.popleft()
        (correlation_id,) = _unpack_correlation_id(frame)
        if correlation_id != expected:
            raise MalformedResponse(f"it answered request {correlation_id} where {expected} was due")
        try:
            return call.decode(version, frame)
        except MalformedRequest as error:
            raise MalformedResponse(f"its response cannot be read: {error}") from error
