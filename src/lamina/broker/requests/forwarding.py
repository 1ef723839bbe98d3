"""Requests that only the controller answers: served here while this broker is it, else sent to it in an Envelope (R41).

Owns the attempts: where no controller answers, or the one that was asked is not it any more, the next is asked until
the client's time is over. A request may then be done twice, as in Kafka. An answer from elsewhere comes with the
client's own correlation id and goes to it as it is, but for how long the client is to wait. Must not know any API.
"""

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any

from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, KafkaError, NetworkError, NotController, RequestTimedOut, error_from_code
from lamina.peer.call import MessageCall
from lamina.wire.api_keys import ENVELOPE
from lamina.wire.principal_data import encode_principal
from lamina.wire.throttle_time import read_throttle_ms, write_throttle_ms

AskController = Callable[[MessageCall], Awaitable[Any]]
"""Of whoever is the controller now; raises `KafkaError` where nobody can be asked."""

_SIZE_BYTES = 4
_RETRY_SECONDS = 0.1
_SHORTEST_SECONDS = 1.0
"""How long a controller is looked for at least: some clients give no time at all."""
_LONGEST_SECONDS = 25.0
"""A client waits thirty seconds by default."""


class Forwarding:
    def __init__(
        self, is_controller: Callable[[], bool], is_session_proven: Callable[[], bool], ask: AskController
    ) -> None:
        self._is_controller = is_controller
        self._is_session_proven = is_session_proven
        self._ask = ask

    async def decide(
        self, request: Request, frame: bytes, timeout_seconds: float | None, here: Callable[[], Awaitable[Any]]
    ) -> Any:
        """What the handler answers, called by ``here``, or the whole frame of another broker's answer.

        Raises the error that stood in the way; within the client's own time, if it gives one.
        """
        call = MessageCall(
            ENVELOPE,
            range(1),
            request_data=frame,
            request_principal=encode_principal(request.principal),
            client_host_address=_address_of(request),
        )
        loop = asyncio.get_running_loop()
        looks_seconds = _LONGEST_SECONDS if timeout_seconds is None else max(timeout_seconds, _SHORTEST_SECONDS)
        last_attempt = loop.time() + looks_seconds
        failure: KafkaError = RequestTimedOut("no controller answered")
        try:
            # What is under way is not given up as early as the search for a controller.
            async with asyncio.timeout(_LONGEST_SECONDS):
                while loop.time() < last_attempt:
                    try:
                        if self._is_controller():
                            return await here()
                        return [_throttled(request, _framed(await self._ask(call)))]
                    except (NetworkError, NotController) as error:
                        failure = error
                    await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            pass
        if not self._is_session_proven():
            raise RequestTimedOut("metadata cannot be changed now: ZooKeeper does not answer")
        raise RequestTimedOut(f"no controller answered in time: {failure}")


def _throttled(request: Request, frame: bytearray) -> bytearray:
    """With the longest wait: the controller has told that of the changes, and here the request's own time is known."""
    told_ms = read_throttle_ms(request.api_key, request.api_version, frame)
    request.throttle_ms = max(request.throttled_ms(), told_ms)
    if request.throttle_ms > told_ms:
        write_throttle_ms(request.api_key, request.api_version, frame, request.throttle_ms)
    return frame


def _address_of(request: Request) -> bytes:
    try:
        return ip_address(request.client.host).packed
    except ValueError:
        return request.client.peer.encode()


def _framed(response: Any) -> bytearray:
    if response.error_code != ErrorCode.NONE:
        raise error_from_code(response.error_code, "the controller did not take the request")
    data: bytes = bytes(response.response_data)
    return bytearray(len(data).to_bytes(_SIZE_BYTES, "big") + data)
