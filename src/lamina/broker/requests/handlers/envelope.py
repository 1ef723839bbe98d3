"""Envelope (key 58), version 0: a request of another broker's client.

Behaviour: the request inside is served as if its client had sent it here, by its own principal, and its whole answer
sent back. Only what the controller answers may be inside. NOT_CONTROLLER where this broker is not it.
"""

import re
from collections.abc import Awaitable, Callable, Sized
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from lamina.broker.requests.api import Api
from lamina.broker.requests.request import CloseConnection, Request, Response, host_of
from lamina.errors import ErrorCode, InvalidRequest, KafkaError, NotController
from lamina.wire.api_keys import ENVELOPE
from lamina.wire.building import response_shape
from lamina.wire.headers import parse_request_header
from lamina.wire.primitives import MalformedRequest
from lamina.wire.principal_data import decode_principal

_SIZE_BYTES = 4
_ADDRESS_BYTES = (4, 16)
_ADDRESS_AS_TEXT = re.compile(rb"\[?[0-9a-f.:]+\]?:[0-9]{1,5}")
"""As brokers of the version before tell it."""


@dataclass(slots=True)
class ForwardingClient:
    """Who asks: the client of another broker."""

    id: int
    peer: str
    listener_name: str
    principal: str
    host: str
    client_software: str = ""

    def when_gone(self, told: Callable[[], None]) -> None:
        """Its connection is another broker's, and nobody here waits for its end."""


Serve = Callable[[ForwardingClient, memoryview], "tuple[Request, Response | Awaitable[Response]]"]


class Envelope:
    def __init__(self, is_controller: Callable[[], bool], forwardable: frozenset[int], serve: Serve) -> None:
        """``serve`` is the router's, which has this handler in its table."""
        self._serve = serve
        self._is_controller = is_controller
        self._forwardable = forwardable

    async def handle(self, request: Request, message: Any) -> Any:
        if not self._is_controller():
            raise NotController("this broker is not the controller")
        frame = memoryview(bytes(message.request_data))
        try:
            client = _client_of(request, message)
            if parse_request_header(frame).api_key not in self._forwardable:
                raise InvalidRequest("what is in the envelope is not for the controller")
            _, served = self._serve(client, frame)
            pieces = await served if isinstance(served, Awaitable) else served
        except (MalformedRequest, CloseConnection) as error:
            raise InvalidRequest(f"what is in the envelope cannot be served: {error}") from None
        data = b"".join(_bytes(piece) for piece in pieces or [])[_SIZE_BYTES:]
        return response_shape(ENVELOPE, request.api_version)(response_data=data, error_code=ErrorCode.NONE)


def _client_of(request: Request, message: Any) -> ForwardingClient:
    """Who asked the other broker, from where. Raises :class:`MalformedRequest`: nobody is taken for somebody else."""
    principal = decode_principal(bytes(message.request_principal or b""))
    address = bytes(message.client_host_address)
    is_packed = len(address) in _ADDRESS_BYTES and not _ADDRESS_AS_TEXT.fullmatch(address)
    peer = f"{ip_address(address)}:0" if is_packed else address.decode(errors="replace")
    return ForwardingClient(request.client.id, peer, request.listener_name, principal, host_of(peer))


def _bytes(piece: Sized) -> bytes:
    assert isinstance(piece, bytes | bytearray | memoryview), "no forwarded request is answered with file ranges"
    return bytes(piece)


def error_response(request: Request, _message: Any, error: KafkaError) -> Any:
    return response_shape(ENVELOPE, request.api_version)(response_data=None, error_code=error.code)


API = Api(ENVELOPE, "Envelope", range(1), error_response, is_for_brokers=True)
