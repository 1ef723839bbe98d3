"""HTTP as the routes see it: small bodies come in; JSON, errors in one shape and lists in pages go out.

Owns the shape ``{"error": …, "message": …}`` and how a page is asked for and made, a few rows at a time so that the
loop goes on. Must not know what the rows are.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from lamina.broker.turns import in_turns
from lamina.clocks import Clocks

T = TypeVar("T")

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_LARGEST_BODY_BYTES = 16 * 1024
_USUAL_LIMIT = 100
_LARGEST_LIMIT = 1000


class Refused(Exception):
    """A request that gets no better answer than this."""

    def __init__(self, status: int, error: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = error
        self.headers = headers


def bad_request(message: str) -> Refused:
    return Refused(400, "bad_request", message)


def not_found(message: str) -> Refused:
    return Refused(404, "not_found", message)


def json_answer(value: Mapping[str, Any], status: int = 200) -> Response:
    return _answer(encode(value) + b"\n", status)


def refusal(refused: Refused) -> Response:
    response = json_answer({"error": refused.error, "message": str(refused)}, refused.status)
    response.headers.update(refused.headers or {})
    return response


def encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _answer(body: bytes, status: int = 200) -> Response:
    return Response(body, status, _HEADERS, media_type="application/json")


async def read_body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_BODY_BYTES:
                # What follows is not read: the connection ends with the answer.
                raise Refused(413, "too_large", f"a body may have {_LARGEST_BODY_BYTES} bytes", {"Connection": "close"})
    except ClientDisconnect:
        raise bad_request("the body did not come whole") from None
    return bytes(body)


# Pages


def window(request: Request) -> tuple[int, str | None]:
    """``?limit=&after=``: how many rows at most, and the key behind which they begin."""
    limit = _USUAL_LIMIT
    text = request.query_params.get("limit")
    if text is not None:
        limit = whole_number(text, "limit")
        if not 0 < limit <= _LARGEST_LIMIT:
            raise bad_request(f"limit must be between 1 and {_LARGEST_LIMIT}")
    return limit, request.query_params.get("after")


def whole_number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):
        raise bad_request(f"{name} must be a whole number")
    return int(text)


async def page(
    clocks: Clocks,
    name: str,
    items: Sequence[T],
    limit: int,
    row: Callable[[T], Mapping[str, Any]],
    key: Callable[[T], Any],
) -> Response:
    """The first ``limit`` of the items under ``name``; ``next_after`` is what to ask for more with, or null."""
    shown = items[:limit]
    rows = [encode(row(item)) async for item in in_turns(shown, clocks)]
    next_after = encode(key(shown[-1]) if len(items) > limit else None)
    return _answer(b'{"%b":[%b],"next_after":%b}\n' % (name.encode(), b",".join(rows), next_after))
