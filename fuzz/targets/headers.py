"""Request headers: refused in one sentence, or the body begins inside the frame."""

from lamina.wire.headers import parse_request_header, start_request
from lamina.wire.primitives import MalformedRequest


def one(data: bytes) -> None:
    try:
        header = parse_request_header(memoryview(data))
    except MalformedRequest:
        return
    assert 0 < header.body_at <= len(data)
    written = bytes(start_request(*header[:4]))[4:]
    again = parse_request_header(written)
    assert again[:4] == header[:4]
    assert again.body_at == len(written)
    # A client id that is no UTF-8 is read with a replacement for each of its bytes, which takes three.
    assert len(written) <= header.body_at or "\ufffd" in (header.client_id or "")
