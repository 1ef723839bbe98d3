"""The headers in front of a message, by hand: they are on every request.

Owns request headers v1 and v2 and response headers v0 and v1. Must not know any body.
"""

from struct import Struct
from typing import NamedTuple

from lamina.wire.primitives import MAX_ELEMENTS, UNREADABLE, Buffer, MalformedRequest, malformed, skip_tags
from lamina.wire.versions import is_flexible, response_header_version

_REQUEST_HEADER = Struct(">hhih")
_REQUEST_FRAME = Struct(">ihhih")
_RESPONSE_FRAME = (Struct(">ii"), Struct(">iix"))
_CORRELATION_ID = Struct(">i")

_MOST_TAGS = 256
"""In a request's header. Nobody sends any, as yet; a stranger could send thousands, and each takes a microsecond."""

_unpack_request_header = _REQUEST_HEADER.unpack_from
_FIXED_BYTES = _REQUEST_HEADER.size
_new_tuple = tuple.__new__


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_at: int
    """Where the body starts in the frame. For an unknown API or version: a guess."""


def parse_request_header(frame: Buffer) -> RequestHeader:
    """Reads the header in front of a request; the header's own version follows from API key and version.

    `client_id` has a two-byte length in both header versions (facts: protocol.md §2.3). What is not UTF-8 in it is
    replaced, as in Kafka: it is a name for people, and no reason to end a connection.
    """
    frame_bytes = len(frame)
    if frame_bytes < _FIXED_BYTES:
        raise MalformedRequest(f"A request of {frame_bytes} bytes is too short for a request header.")
    api_key, api_version, correlation_id, length = _unpack_request_header(frame)
    at = _FIXED_BYTES
    client_id = None
    if length >= 0:
        at += length
        if at > frame_bytes:
            raise MalformedRequest("A request header ends before its client id does.")
        client_id = str(frame[_FIXED_BYTES:at], "utf-8", "replace")
    elif length != -1:
        raise MalformedRequest(f"The client id in a request header has length {length}.")
    if is_flexible(api_key, api_version):
        try:
            at = skip_tags(frame, at, [_MOST_TAGS])
        except UNREADABLE as error:
            raise malformed("A request header", error) from None
        if at > frame_bytes:
            raise MalformedRequest("A request header ends before its tagged fields do.")
    return _new_tuple(RequestHeader, (api_key, api_version, correlation_id, client_id, at))


def start_request(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytearray:
    """A frame with room for its size and the header written."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    out = bytearray(_REQUEST_FRAME.pack(0, api_key, api_version, correlation_id, length))
    out += name
    if is_flexible(api_key, api_version):
        out.append(0)
    return out


def start_response(api_key: int, api_version: int, correlation_id: int) -> bytearray:
    """A frame with room for its size and the header written."""
    return bytearray(_RESPONSE_FRAME[response_header_version(api_key, api_version)].pack(0, correlation_id))


def response_header_bytes(api_key: int, api_version: int) -> int:
    """Of a frame as ``start_response`` begins it, with its size."""
    return _RESPONSE_FRAME[response_header_version(api_key, api_version)].size


def parse_response_header(api_key: int, api_version: int, frame: Buffer) -> tuple[int, int]:
    """(correlation id, where the body starts)."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        at = _CORRELATION_ID.size
        if response_header_version(api_key, api_version) == 1:
            at = skip_tags(frame, at, [MAX_ELEMENTS])
        if at > len(frame):
            raise IndexError
    except UNREADABLE as error:
        raise malformed("A response header", error) from None
    return correlation_id, at
