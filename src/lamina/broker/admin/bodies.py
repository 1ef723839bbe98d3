"""A request's body: small, or refused."""

from starlette.requests import ClientDisconnect, Request

from lamina.broker.admin.answers import Refused, bad_request

_LARGEST_BYTES = 16 * 1024


async def read_body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_BYTES:
                # What follows is not read: the connection ends with the answer.
                raise Refused(413, "too_large", f"a body may have {_LARGEST_BYTES} bytes", {"Connection": "close"})
    except ClientDisconnect:
        raise bad_request("the body did not come whole") from None
    return bytes(body)
