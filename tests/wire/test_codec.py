from contextlib import suppress
from datetime import timedelta
from random import Random
from struct import pack, unpack_from

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.wire.codec import (
    encode_entity,
    encode_request,
    encode_response,
    encode_response_around,
    parse_entity,
    parse_request,
    parse_response,
)
from lamina.wire.fields import fields_of
from lamina.wire.headers import parse_request_header
from lamina.wire.primitives import MalformedRequest, read_compact_string, write_compact_string
from lamina.wire.versions import nested_schema, request_schema, response_schema
from tests.examples import examples
from tests.wire.messages import (
    REQUESTS,
    VERSIONS,
    bytes_with_unknown_tags,
    kio_bytes,
    random_entity,
    schemas,
)

SEEDS = st.integers(0, 2**32)
ANY_SCHEMA = st.sampled_from(REQUESTS).flatmap(
    lambda message: st.sampled_from((request_schema(*message), response_schema(*message)))
)
ANY_REQUEST = st.sampled_from(REQUESTS)


@pytest.mark.parametrize("api_key", VERSIONS)
def test_every_version_is_written_and_read_as_kio_does(api_key: int) -> None:
    """protocol.md §3.3: the compiled encoders give the bytes of kio's writer."""
    for version in VERSIONS[api_key]:
        for schema in (request_schema(api_key, version), response_schema(api_key, version)):
            entity = random_entity(schema, Random(version))
            expected = kio_bytes(entity)
            assert encode_entity(entity) == expected, schema
            assert parse_entity(schema, expected) == entity, schema


@settings(max_examples=examples(1000), deadline=None)
@given(schema=ANY_SCHEMA, seed=SEEDS)
def test_random_messages_are_written_and_read_as_kio_does(schema: type, seed: int) -> None:
    entity = random_entity(schema, Random(seed))
    expected = kio_bytes(entity)
    assert encode_entity(entity) == expected
    assert parse_entity(schema, memoryview(expected)) == entity


@pytest.mark.parametrize("api_key", VERSIONS)
def test_unknown_tags_are_ignored_in_every_structure_of_every_version(api_key: int) -> None:
    """KIP-482; kio raises KeyError here (protocol.md §3.2)."""
    for version in VERSIONS[api_key]:
        for schema in (request_schema(api_key, version), response_schema(api_key, version)):
            entity = random_entity(schema, Random(version))
            assert parse_entity(schema, bytes_with_unknown_tags(entity)) == entity, schema


@settings(max_examples=examples(1000), deadline=None)
@given(message=ANY_REQUEST, body=st.binary(max_size=200))
def test_garbage_is_a_request_or_malformed(message: tuple[int, int], body: bytes) -> None:
    _parse_or_refuse(message, body)


@settings(max_examples=examples(1000), deadline=None)
@given(message=ANY_REQUEST, seed=SEEDS, data=st.data())
def test_a_damaged_request_is_a_request_or_malformed(message: tuple[int, int], seed: int, data: st.DataObject) -> None:
    body = bytearray(kio_bytes(random_entity(request_schema(*message), Random(seed))))
    for _ in range(data.draw(st.integers(1, 3))):
        if body:
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF)))
    _parse_or_refuse(message, bytes(body))


@pytest.mark.parametrize("api_key", VERSIONS)
def test_every_truncation_is_malformed(api_key: int) -> None:
    """No proper prefix of a request is a request."""
    for version in (VERSIONS[api_key][0], VERSIONS[api_key][-1]):
        body = kio_bytes(random_entity(request_schema(api_key, version), Random(api_key)))
        for end in range(0, len(body), 1 + len(body) // 40):
            with pytest.raises(MalformedRequest):
                parse_request(api_key, version, body[:end])


def test_bytes_behind_a_request_are_not_looked_at_and_librdkafka_gets_all_topics() -> None:
    request = parse_request(METADATA, 13, bytes.fromhex("00000000010000"))
    assert request == parse_request(METADATA, 13, bytes(4))
    assert request.topics is None


def _parse_or_refuse(message: tuple[int, int], body: bytes) -> None:
    """Anything but `MalformedRequest` fails the test."""
    with suppress(MalformedRequest):
        parse_request(*message, body)


METADATA = 3


@pytest.mark.parametrize(
    ("version", "body", "sentence"),
    [
        (1, pack(">i", 2**31 - 1), "MetadataRequest v1: more elements are announced"),
        (1, pack(">i", -5), "MetadataRequest v1: topics has a negative length"),
        (1, pack(">i", 150_000), "ends before its last field"),
        (1, pack(">ih", 1, -1), "name is null"),
        (1, pack(">ih", 1, -7), "name has a negative length"),
        (1, pack(">ih", 1, 30_000) + b"abc", "ends before its last field"),
        (1, pack(">ih", 1, 2) + b"\xc3\x28", "not UTF-8"),
        (12, b"\xff\xff\xff\xff\x0f", "more elements are announced"),
        (12, b"\xff\xff\xff\xff\xff\xff\xff\x0f", "more than five bytes"),
        (12, b"\x00\x00\x00\xff\xff\xff\xff\x0f", "more elements are announced"),
        (12, b"\x00\x00\x00\x01\x09\xff\xff\xff\xff\x0f", "ends before its last field"),
        (9, b"\x02\x81\x80\x02" + b"x" * 32768, "a string takes more than 32767 bytes"),
    ],
)
def test_a_lie_is_refused_with_a_sentence(version: int, body: bytes, sentence: str) -> None:
    """The fifth byte of the compact count alone makes kio's native parser abort the process."""
    with pytest.raises(MalformedRequest, match=sentence):
        parse_request(METADATA, version, body)


def test_the_longest_string_of_the_older_encoding_is_the_longest_of_the_compact_one() -> None:
    longest = "x" * 32767
    assert parse_request(METADATA, 9, b"\x02\x80\x80\x02" + longest.encode() + bytes(5)).topics[0].name == longest
    out = bytearray()
    write_compact_string(out, longest)
    assert read_compact_string(out, 0) == (longest, len(out))
    out = bytearray()
    write_compact_string(out, longest + "x")
    with pytest.raises(MalformedRequest, match="more than 32767"):
        read_compact_string(out, 0)


def test_elements_are_counted_over_the_whole_message() -> None:
    one_topic = b"\x01" * 17 + b"\x02t" + b"\x00"
    body = b"\xc1\x84\x3d" + one_topic * 2
    with pytest.raises(MalformedRequest, match="more elements are announced"):
        parse_request(METADATA, 12, body)


def test_tagged_fields_are_counted_even_if_one_is_repeated() -> None:
    body = b"\x00\x00\x00" + b"\xa0\x8d\x06" + b"\x63\x00" * 100_000
    parse_request(METADATA, 12, body)
    with pytest.raises(MalformedRequest, match="more elements are announced"):
        parse_request(METADATA, 12, b"\x00\x00\x00" + b"\x80\x89\x7a" + b"\x63\x00" * 2_000_000)


def test_a_duration_for_ever_is_as_long_as_can_be() -> None:
    body = pack(">hihqi", 0, -1, 0, 2**63 - 1, 0)
    assert parse_request(8, 2, body).retention_time == timedelta.max


def test_a_timestamp_that_no_date_can_hold_is_malformed() -> None:
    partition = pack(">ihqqq", 0, 0, 0, 2**63 - 1, 0)
    with pytest.raises(MalformedRequest, match="a value that its type cannot take"):
        parse_response(0, 5, pack(">iih", 1, 1, 0) + pack(">i", 1) + partition + pack(">i", 0))


def test_a_tagged_field_must_fill_its_size() -> None:
    fetch_v12 = pack(">iiiibii", -1, 0, 0, 0, 0, 0, -1) + b"\x01\x01\x01"
    assert parse_request(1, 12, fetch_v12 + b"\x01\x00\x02\x02c").cluster_id == "c"
    with pytest.raises(MalformedRequest, match="1 bytes follow"):
        parse_request(1, 12, fetch_v12 + b"\x01\x00\x03\x02c!")
    with pytest.raises(MalformedRequest, match="ends before"):
        parse_request(1, 12, fetch_v12 + b"\x01\x00\x02\x03c")


def test_an_error_code_of_the_future_stays_a_number() -> None:
    assert parse_response(12, 0, pack(">ih", 5, 9999)) == (5, response_schema(12, 0)(error_code=9999))


def test_a_request_frame_is_read_back() -> None:
    for key, version in REQUESTS:
        request = random_entity(request_schema(key, version), Random(version))
        frame = encode_request(request, 77, "lamina")
        assert unpack_from(">i", frame) == (len(frame) - 4,)
        header = parse_request_header(frame[4:])
        assert header[:4] == (key, version, 77, "lamina")
        assert parse_request(key, version, frame[4 + header.body_at :]) == request


def test_a_response_frame_is_read_back() -> None:
    for key, version in REQUESTS:
        response = random_entity(response_schema(key, version), Random(version))
        frame = encode_response(response, 78)
        assert unpack_from(">i", frame) == (len(frame) - 4,)
        assert parse_response(key, version, memoryview(frame)[4:]) == (78, response)


def test_plain_milliseconds_and_numbers_do_for_durations_timestamps_and_errors() -> None:
    schema = response_schema(0, 9)
    partitions = parse_entity(schema, _produce_answer(error_code=3, append_time_ms=1_000, throttle_ms=250))
    partition = partitions.responses[0].partition_responses[0]
    plain = type(partition)(
        index=0, error_code=3, base_offset=0, log_append_time=1_234, log_start_offset=0, record_errors=()
    )
    topic = type(partitions.responses[0])(name="t", partition_responses=(plain,))
    encoded = encode_entity(schema(responses=(topic,), throttle_time=250))
    assert encoded == _produce_answer(error_code=3, append_time_ms=1_234, throttle_ms=250)


def _produce_answer(error_code: int, append_time_ms: int, throttle_ms: int) -> bytes:
    partition = pack(">ihqqqBBB", 0, error_code, 0, append_time_ms, 0, 1, 0, 0)
    return b"\x02\x02t\x02" + partition + b"\x00" + pack(">ix", throttle_ms)


@pytest.mark.parametrize("count", [150, 300])
@pytest.mark.parametrize("version", range(14))
def test_a_metadata_answer_is_put_together_from_encoded_topics(version: int, count: int) -> None:
    schema = response_schema(METADATA, version)
    response = random_entity(schema, Random(version))
    topics = tuple(random_entity(nested_schema(schema, "topics"), Random(seed)) for seed in range(count))
    others = {field.name: getattr(response, field.name) for field in fields_of(schema) if field.name != "topics"}
    whole, around = schema(topics=topics, **others), schema(topics=(), **others)
    encoded = [encode_entity(topic) for topic in topics]
    assert encode_response_around(around, "topics", encoded, 5) == encode_response(whole, 5)


def test_every_message_has_a_schema() -> None:
    assert len(schemas()) == 2 * len(REQUESTS)
