"""What another broker sends back, in pieces of any size: responses in order or one error, in bounded memory."""

from typing import Any

from fuzz.choices import Choices
from lamina.errors import MalformedResponse
from lamina.peer.call import Call, MessageCall
from lamina.peer.exchange import Exchange
from lamina.peer.fetching import fetch_one
from lamina.peer.incoming import STAGING_BYTES
from lamina.peer.listing import list_one
from lamina.peer.producing import produce_one
from lamina.peer.routes import metadata_call
from lamina.peer.versions import ApiVersionsCall

_MAX_RESPONSE_BYTES = 100_000

ASKED: tuple[tuple[Call[Any], int], ...] = (
    (ApiVersionsCall(), 4),
    (metadata_call(["orders"]), 13),
    (MessageCall(10, range(4, 7), key_type=0, coordinator_keys=["group"]), 6),
    (fetch_one("orders", None, 0, 1, 2, max_bytes=3, max_wait_ms=4, min_bytes=5, isolation_level=1), 12),
    (fetch_one("orders", None, 0, 1, 2, max_bytes=3, max_wait_ms=4, min_bytes=5, isolation_level=1), 4),
    (produce_one("orders", None, 0, b"batch", acks=-1, timeout_ms=1), 12),
    (list_one("orders", 0, 1, -1, 0), 9),
)


def one(data: bytes) -> None:
    choices = Choices(data)
    piece_sizes = choices.take(4) or b"\0"
    exchange = Exchange("fuzz", _MAX_RESPONSE_BYTES)
    asked = [choices.one_of(ASKED) for _ in range(1 + choices.number() % 3)]
    for call, version in asked:
        exchange.send(call, version, due=1.0)
    stream = choices.rest()
    responses: list[Any] = []
    at = turn = 0
    try:
        while at < len(stream):
            buffer = exchange.buffer_for_recv()
            assert 0 < len(buffer) <= max(_MAX_RESPONSE_BYTES, STAGING_BYTES)
            piece = stream[at : at + min(len(buffer), 1 + piece_sizes[turn % len(piece_sizes)])]
            buffer[: len(piece)] = piece
            responses += exchange.received(len(piece))
            at += len(piece)
            turn += 1
    except MalformedResponse as error:
        assert str(error)
    else:
        assert len(responses) + exchange.in_flight == len(asked)
    for (call, _), response in zip(asked, responses, strict=False):
        assert all(isinstance(code, int) for code in call.errors(response))
