import io
from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1 import RequestHeader as HeaderV1
from kio.schema.request_header.v2 import RequestHeader as HeaderV2
from kio.serial import entity_writer
from kio.static.primitive import i16, i32

from lamina.wire.headers import (
    RequestHeader,
    parse_request_header,
    parse_response_header,
    start_request,
    start_response,
)
from lamina.wire.primitives import MalformedRequest

METADATA = 3
LEGACY, FLEXIBLE = 8, 9
CLIENT_IDS = st.none() | st.text(max_size=40)


@pytest.mark.parametrize("version", [LEGACY, FLEXIBLE])
@given(correlation_id=st.integers(-(2**31), 2**31 - 1), client_id=CLIENT_IDS)
def test_a_header_is_read_as_kio_writes_it(version: int, correlation_id: int, client_id: str | None) -> None:
    schema = HeaderV2 if version == FLEXIBLE else HeaderV1
    out = io.BytesIO()
    header = schema(
        request_api_key=i16(METADATA),
        request_api_version=i16(version),
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    entity_writer(schema)(out, header)
    header_bytes = out.getvalue()
    parsed = parse_request_header(memoryview(header_bytes + b"body"))
    assert parsed == RequestHeader(METADATA, version, correlation_id, client_id, len(header_bytes))
    assert start_request(METADATA, version, correlation_id, client_id)[4:] == header_bytes


def test_unknown_tags_in_a_header_are_skipped() -> None:
    tags = b"\x02" + b"\x63\x03abc" + b"\xe4\x07\x00"
    frame = pack(">hhih", METADATA, FLEXIBLE, 7, 1) + b"c" + tags + b"body"
    assert frame[parse_request_header(frame).body_at :] == b"body"


@pytest.mark.parametrize("count", [100, 256])
def test_many_unknown_tags_in_a_header_are_skipped_too(count: int) -> None:
    frame = pack(">hhih", METADATA, FLEXIBLE, 7, -1) + encoded_uvarint(count) + b"\x63\x00" * count + b"body"
    assert frame[parse_request_header(frame).body_at :] == b"body"


def test_more_tags_in_a_header_than_anybody_has_are_refused_before_they_are_read() -> None:
    """Whoever can connect may send a header, and each tag takes a microsecond."""
    frame = pack(">hhih", METADATA, FLEXIBLE, 7, -1) + encoded_uvarint(190_000) + b"\x63\x00" * 190_000
    with pytest.raises(MalformedRequest, match="more elements are announced"):
        parse_request_header(frame)


def encoded_uvarint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def test_a_client_id_that_is_not_utf_8_is_read_as_far_as_it_can_be() -> None:
    """As Java's String does, which Kafka reads it with."""
    frame = pack(">hhih", METADATA, LEGACY, 7, 5) + b"a\xc3\x28\xffb"
    assert parse_request_header(frame) == RequestHeader(
        METADATA, LEGACY, 7, "a\N{REPLACEMENT CHARACTER}(\N{REPLACEMENT CHARACTER}b", len(frame)
    )


def test_a_header_of_an_unknown_version_still_gives_its_correlation_id() -> None:
    assert parse_request_header(pack(">hhih", 18, 99, 7, -1) + b"\x00").correlation_id == 7
    assert parse_request_header(pack(">hhih", 999, 0, 8, -1)).correlation_id == 8


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (b"", "too short"),
        (pack(">hhi", METADATA, FLEXIBLE, 1), "too short"),
        (pack(">hhih", METADATA, LEGACY, 1, 5) + b"abc", "client id"),
        (pack(">hhih", METADATA, LEGACY, 1, -2), "length -2"),
        (pack(">hhih", METADATA, FLEXIBLE, 1, -1), "ends before"),
        (pack(">hhih", METADATA, FLEXIBLE, 1, -1) + b"\x01\x05\x7f", "ends before"),
        (pack(">hhih", METADATA, FLEXIBLE, 1, -1) + b"\xff\xff\xff\xff\xff\x01", "five bytes"),
    ],
)
def test_a_malformed_header_is_refused_with_a_sentence(frame: bytes, sentence: str) -> None:
    with pytest.raises(MalformedRequest, match=sentence):
        parse_request_header(memoryview(frame))


@given(st.binary(max_size=64))
def test_garbage_is_a_header_or_malformed(frame: bytes) -> None:
    with suppress(MalformedRequest):
        assert parse_request_header(frame).body_at <= len(frame)


@pytest.mark.parametrize(("key", "version", "header_bytes"), [(METADATA, 8, 4), (METADATA, 9, 5), (18, 4, 4)])
def test_a_response_header_is_read_back(key: int, version: int, header_bytes: int) -> None:
    frame = start_response(key, version, -5)[4:]
    assert len(frame) == header_bytes
    assert parse_response_header(key, version, frame) == (-5, header_bytes)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\x01\x05\x7f"])
def test_a_malformed_response_header_is_refused(frame: bytes) -> None:
    with pytest.raises(MalformedRequest, match="response header"):
        parse_response_header(METADATA, 9, frame)
