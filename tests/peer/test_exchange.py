"""Requests and responses of one connection, without a socket."""

from struct import unpack_from
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import MalformedResponse
from lamina.peer.call import MessageCall
from lamina.peer.exchange import Exchange
from lamina.wire.headers import parse_request_header
from tests.peer.responses import response_frame

MAX_RESPONSE_BYTES = 100_000
FIND_COORDINATOR, VERSION = 10, 4


def test_a_request_has_the_client_id_and_a_correlation_id_of_its_own() -> None:
    exchange = Exchange("lamina-test", MAX_RESPONSE_BYTES)
    sent = [exchange.send(ask(f"group-{number}"), VERSION, due=1.0) for number in range(3)]
    headers = [parse_request_header(bytes(frame[4:])) for frame in sent]
    assert [unpack_from(">i", frame)[0] for frame in sent] == [len(frame) - 4 for frame in sent]
    assert {(header.api_key, header.api_version, header.client_id) for header in headers} == {
        (FIND_COORDINATOR, VERSION, "lamina-test")
    }
    assert len({header.correlation_id for header in headers}) == 3
    assert exchange.in_flight == 3


@given(keys=st.lists(st.text(max_size=300), min_size=1, max_size=5), data=st.data())
def test_any_chunking_of_pipelined_responses_gives_them_in_the_order_of_the_requests(
    keys: list[str], data: st.DataObject
) -> None:
    exchange = Exchange("lamina-test", MAX_RESPONSE_BYTES)
    stream = b"".join(answer_to(exchange.send(ask(key), VERSION, due=1.0), key) for key in keys)
    responses: list[Any] = []
    at = 0
    while at < len(stream):
        chunk = stream[at : at + data.draw(st.integers(1, 400))]
        at += receive(exchange, chunk, responses)
    assert [response.coordinators[0].key for response in responses] == keys
    assert exchange.in_flight == 0


@given(garbage=st.binary(min_size=1, max_size=2000), chunk_bytes=st.integers(1, 500))
def test_garbage_is_an_error_or_late_and_never_holds_more_than_a_response(garbage: bytes, chunk_bytes: int) -> None:
    exchange = Exchange("lamina-test", MAX_RESPONSE_BYTES)
    exchange.send(ask("group"), VERSION, due=1.0)
    at = 0
    try:
        while at < len(garbage):
            at += receive(exchange, garbage[at : at + chunk_bytes], [])
            assert 0 < len(exchange.buffer_for_recv()) <= MAX_RESPONSE_BYTES
    except MalformedResponse:
        return
    assert exchange.is_late(1.0), "a part of a response is late in the end"


@given(flipped=st.integers(4, 60), bit=st.integers(0, 7))
def test_a_damaged_response_is_a_response_or_one_error(flipped: int, bit: int) -> None:
    exchange = Exchange("lamina-test", MAX_RESPONSE_BYTES)
    frame = bytearray(answer_to(exchange.send(ask("group"), VERSION, due=1.0), "group"))
    frame[flipped % len(frame)] ^= 1 << bit
    try:
        receive(exchange, bytes(frame), [])
    except MalformedResponse as error:
        assert "\n" not in str(error)


def test_the_answer_to_another_request_is_an_error() -> None:
    exchange = Exchange("lamina-test", MAX_RESPONSE_BYTES)
    exchange.send(ask("group"), VERSION, due=1.0)
    with pytest.raises(MalformedResponse, match="answered request 77 where 0 was due"):
        receive(exchange, response_frame(FIND_COORDINATOR, VERSION, 77), [])


def test_what_nobody_asked_for_is_an_error() -> None:
    exchange = Exchange("lamina-test", MAX_RESPONSE_BYTES)
    with pytest.raises(MalformedResponse, match="nobody asked for"):
        receive(exchange, b"220 smtp.example.org\r\n", [])


def test_one_response_too_many_is_an_error() -> None:
    exchange = Exchange("lamina-test", MAX_RESPONSE_BYTES)
    frame = answer_to(exchange.send(ask("group"), VERSION, due=1.0), "group")
    with pytest.raises(MalformedResponse, match="nobody asked for"):
        receive(exchange, frame + frame, [])


def test_the_first_response_that_is_due_decides_when_it_is_late() -> None:
    exchange = Exchange("lamina-test", MAX_RESPONSE_BYTES)
    assert exchange.next_due is None
    assert not exchange.is_late(1e9)
    first = exchange.send(ask("patient"), VERSION, due=20.0)
    exchange.send(ask("hasty"), VERSION, due=10.0)
    assert exchange.next_due == 10.0
    assert not exchange.is_late(9.9)
    assert exchange.is_late(10.0)
    receive(exchange, answer_to(first, "patient"), [])
    assert exchange.next_due == 10.0


def ask(key: str) -> MessageCall:
    return MessageCall(FIND_COORDINATOR, range(VERSION, VERSION + 1), key_type=0, coordinator_keys=[key])


def answer_to(frame: Any, key: str) -> bytes:
    correlation_id = parse_request_header(bytes(frame[4:])).correlation_id
    return response_frame(FIND_COORDINATOR, VERSION, correlation_id, coordinators=[{"key": key}])


def receive(exchange: Exchange, chunk: bytes, responses: list[Any]) -> int:
    buffer = exchange.buffer_for_recv()
    count = min(len(buffer), len(chunk))
    buffer[:count] = chunk[:count]
    responses += exchange.received(count)
    return count
