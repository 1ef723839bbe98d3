"""Bytes that are no requests: answered or closed as Kafka does, one log line, and nobody else notices."""

import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lamina.broker.requests.api_table import APIS
from lamina.errors import ErrorCode
from lamina.wire.headers import start_request
from lamina.wire.versions import request_schema
from tests.broker.process import BrokerProcess
from tests.broker.raw import API_VERSIONS, METADATA, RawClient, metadata_request
from tests.examples import examples

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(60)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Not the shared one: after so much that is refused, lines that others wait for may be left out."""
    with BrokerProcess(tmp_path_factory.mktemp("bad")) as process:
        yield process
    assert not [line for line in process.log if "Traceback" in line], process.log


@pytest.fixture(scope="module")
def quiet_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Refuses so few that each is said."""
    with BrokerProcess(tmp_path_factory.mktemp("quiet")) as process:
        yield process


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def header(api_key: int, version: int, correlation_id: int = 1) -> bytes:
    return bytes(start_request(api_key, version, correlation_id, "bad"))[4:]


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (struct.pack(">i", 104_857_601), "socket.request.max.bytes"),
        (struct.pack(">i", 2**31 - 1), "socket.request.max.bytes"),
        (struct.pack(">i", -1), "negative"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP"),
        (TLS_HELLO, "TLS"),
        (framed(b""), "too short"),
        (framed(header(999, 0)), "API key 999"),
        (framed(header(METADATA, 99)), "Metadata version 99"),
        (framed(header(METADATA, -1)), "Metadata version -1"),
        (framed(header(METADATA, 9)), "etadata"),
        (framed(header(METADATA, 1) + struct.pack(">i", 2**31 - 1)), "etadata"),
        (framed(header(METADATA, 9)[:-1] + b"\xff\xff\xff\xff\xff\xff\xff"), "header"),
        (framed(struct.pack(">hhih", METADATA, 1, 1, 500) + b"short"), "client id"),
    ],
)
def test_the_connection_is_closed_and_one_line_names_the_peer(
    quiet_broker: BrokerProcess, sent: bytes, why: str
) -> None:
    broker = quiet_broker
    since = len(broker.log)
    with RawClient(broker) as bad, RawClient(broker) as good:
        bad.send(sent)
        assert bad.is_closed()
        assert why in broker.wait_for_log(bad.peer, since)
        assert good.ask(metadata_request()).topics == ()
        assert len([line for line in broker.log[since:] if bad.peer in line]) == 1


def test_a_cut_frame_waits_for_its_end(raw: RawClient) -> None:
    whole = framed(header(API_VERSIONS, 0))
    for byte in whole:
        raw.send(bytes([byte]))
    assert raw.answer(API_VERSIONS, 0).error_code == 0


def test_an_unknown_version_of_api_versions_is_answered_in_version_0_with_the_table(raw: RawClient) -> None:
    raw.send(framed(header(API_VERSIONS, 99)))
    answer = raw.answer(API_VERSIONS, 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {entry.api_key for entry in answer.api_keys} == {api.key for api in APIS}
    schema = request_schema(API_VERSIONS, 4)
    again = raw.ask(schema(client_software_name="test", client_software_version="1"))
    assert again.error_code == 0, "the connection lives on"


def test_a_client_id_that_is_not_utf_8_is_no_reason_to_hang_up(raw: RawClient) -> None:
    raw.send(framed(struct.pack(">hhih", API_VERSIONS, 0, 1, 3) + b"\xff\xc3\x28"))
    assert raw.answer(API_VERSIONS, 0).error_code == 0


def test_software_names_are_checked(raw: RawClient) -> None:
    schema = request_schema(API_VERSIONS, 3)
    answer = raw.ask(schema(client_software_name="a b", client_software_version="1"))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_unknown_tagged_fields_are_ignored(raw: RawClient) -> None:
    tags = b"\x01\x63\x03abc"
    start = header(METADATA, 9)[:-1] + tags
    raw.send(framed(start + b"\x01" + b"\x01\x00\x00" + tags))
    answer = raw.answer(METADATA, 9)
    assert answer.topics == ()
    assert answer.brokers[0].node_id == 1


def test_requests_that_come_together_are_answered_in_order(raw: RawClient) -> None:
    raw.send(b"".join(framed(header(API_VERSIONS, 0, number)) for number in range(200)))
    numbers = [struct.unpack_from(">i", raw.receive_frame())[0] for _ in range(200)]
    assert numbers == list(range(200))


def survives(broker: BrokerProcess, sent: bytes) -> None:
    """Whatever it was: the client sees answers or the end, and the broker works on."""
    with RawClient(broker) as bad, suppress(OSError):
        bad.send(sent)
        bad.socket.shutdown(1)
        while bad.socket.recv(1 << 16):
            pass
    with RawClient(broker) as good:
        assert good.ask(metadata_request()).topics == ()


@given(st.binary(max_size=300))
@hypothesis_settings(max_examples=examples(60))
def test_any_bytes(broker: BrokerProcess, sent: bytes) -> None:
    survives(broker, sent)


@given(st.lists(st.binary(max_size=80), max_size=5))
@hypothesis_settings(max_examples=examples(60))
def test_any_frames(broker: BrokerProcess, payloads: list[bytes]) -> None:
    survives(broker, b"".join(framed(payload) for payload in payloads))


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
@given(data=st.data())
@hypothesis_settings(max_examples=40)
def test_any_body_for_every_request(broker: BrokerProcess, api: object, data: st.DataObject) -> None:
    assert hasattr(api, "key")
    version = data.draw(st.sampled_from(list(api.versions)))  # type: ignore[attr-defined]
    body = data.draw(st.binary(max_size=120))
    survives(broker, framed(header(api.key, version) + body))
