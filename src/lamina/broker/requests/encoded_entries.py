"""A response whose entries were encoded one by one, in turns of the loop.

Owns how they become one frame: that of many entries is put together on the thread for large messages. Must not know any
API.
"""

from collections.abc import Sequence

from lamina.broker.requests.request import Request, Response
from lamina.broker.threads import Threads
from lamina.wire.building import Shape
from lamina.wire.codec import encode_response_around

_ENTRIES_AT_A_TIME = 256
"""An entry may have thirty configs with their documentation: so many are a megabyte to copy."""


async def response_around(
    request: Request, shape: Shape, array: str, encoded: Sequence[bytes | bytearray], message_thread: Threads
) -> Response:
    """The response that has these in one array, and else nothing."""
    response = shape(throttle_time=request.throttled_ms(), **{array: ()})

    def encode() -> Response:
        return [encode_response_around(response, array, encoded, request.correlation_id)]

    return await message_thread.compute(encode) if len(encoded) > _ENTRIES_AT_A_TIME else encode()
