from contextlib import suppress
from random import Random
from struct import pack
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.wire.api_keys import PRODUCE
from lamina.wire.codec import encode_response
from lamina.wire.leaders import CurrentLeader, NodeEndpoint
from lamina.wire.primitives import MalformedRequest
from lamina.wire.produce import (
    FIRST_WITH_TOPIC_IDS,
    VERSIONS,
    PartitionProduced,
    RecordError,
    TopicProduced,
    encode_produce_response,
    parse_produce_request,
)
from lamina.wire.versions import nested_schema, request_schema, response_schema
from tests.examples import examples
from tests.wire.messages import bytes_with_unknown_tags, kio_bytes, random_entity

ANY_VERSION = st.sampled_from(VERSIONS)
SEEDS = st.integers(0, 2**32)


def _random_request(version: int, seed: int) -> Any:
    return random_entity(request_schema(PRODUCE, version), Random(seed))


@settings(max_examples=examples(300), deadline=None)
@given(version=ANY_VERSION, seed=SEEDS, unknown_tags=st.booleans())
def test_requests_are_read_as_written(version: int, seed: int, unknown_tags: bool) -> None:
    expected = _random_request(version, seed)
    request = parse_produce_request(version, bytes_with_unknown_tags(expected) if unknown_tags else kio_bytes(expected))
    assert request.transactional_id == expected.transactional_id
    assert request.acks == expected.acks
    assert request.timeout_ms == round(expected.timeout.total_seconds() * 1000)
    assert [topic[:2] for topic in request.topics] == [
        (getattr(topic, "name", None), getattr(topic, "topic_id", None)) for topic in expected.topic_data
    ]
    for topic, expected_topic in zip(request.topics, expected.topic_data, strict=True):
        assert topic.partitions == [(partition.index, partition.records) for partition in expected_topic.partition_data]


def test_records_are_views_into_the_frame() -> None:
    body = bytearray(b"\x00" + pack(">hi", -1, 1000) + b"\x02\x02t\x02" + pack(">i", 7) + b"\x04abc\x00\x00\x00")
    request = parse_produce_request(9, memoryview(body))
    records = request.topics[0].partitions[0].records
    assert records is not None
    records[0] = ord("A")
    assert b"Abc" in body


@settings(max_examples=examples(300), deadline=None)
@given(version=ANY_VERSION, body=st.binary(max_size=150))
def test_garbage_is_a_request_or_malformed(version: int, body: bytes) -> None:
    with suppress(MalformedRequest):
        parse_produce_request(version, body)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_malformed(version: int) -> None:
    body = kio_bytes(_random_request(version, 4))
    for end in range(0, len(body), 1 + len(body) // 100):
        with pytest.raises(MalformedRequest):
            parse_produce_request(version, body[:end])
    with pytest.raises(MalformedRequest, match="1 bytes follow its last field"):
        parse_produce_request(version, body + b"\0")


@pytest.mark.parametrize(
    ("version", "topics", "sentence"),
    [
        (3, pack(">i", 2**31 - 1), "ProduceRequest v3: more elements are announced"),
        (3, pack(">i", -1), "array that must be there is null"),
        (3, pack(">ih", 1, -1) + pack(">i", 0), "string that must be there is null"),
        (3, pack(">ihi", 1, 0, 2**31 - 1), "more elements are announced"),
        (3, pack(">ihiii", 1, 0, 1, 0, -2), "records have length -2"),
        (3, pack(">ihiii", 1, 0, 1, 0, 2**31 - 1), "ends before its last field"),
        (9, b"\xff\xff\xff\xff\x0f", "more elements are announced"),
        (9, b"\x00", "array that must be there is null"),
        (9, b"\x02\x00\x01\x00\x00", "string that must be there is null"),
        (9, b"\x02\x01\x02" + pack(">i", 0) + b"\xff\xff\xff\xff\x07", "ends before its last field"),
        (9, b"\x02\x03\xc3\x28\x01\x00\x00", "not UTF-8"),
        (13, b"\x02" + bytes(15), "ends before its last field"),
    ],
)
def test_a_lie_is_refused_with_a_sentence(version: int, topics: bytes, sentence: str) -> None:
    transactional_id = b"\x00" if version >= 9 else b"\xff\xff"
    with pytest.raises(MalformedRequest, match=sentence):
        parse_produce_request(version, transactional_id + pack(">hi", -1, 1000) + topics)


TEXTS = st.none() | st.text(max_size=200)
INT64 = st.integers(-1, 2**63 - 1)
PARTITIONS = st.builds(
    PartitionProduced,
    partition_index=st.integers(0, 2**31 - 1),
    error_code=st.integers(0, 100),
    base_offset=INT64,
    log_append_time_ms=INT64,
    log_start_offset=INT64,
    record_errors=st.lists(st.builds(RecordError, st.integers(0, 100), TEXTS), max_size=2),
    error_message=TEXTS,
    current_leader=st.none() | st.builds(CurrentLeader, st.integers(0, 9), st.integers(0, 9)),
)
PLAIN_PARTITIONS = st.builds(lambda index, offset: PartitionProduced(index, 0, offset), st.integers(0, 9), INT64)
TOPICS = st.builds(
    TopicProduced, st.text(max_size=200), st.none() | st.uuids(), st.lists(PARTITIONS | PLAIN_PARTITIONS, max_size=3)
)
ENDPOINTS = st.builds(NodeEndpoint, st.integers(0, 9), st.text(max_size=20), st.integers(1, 65535), TEXTS)


@settings(deadline=None)
@given(
    version=ANY_VERSION,
    topics=st.lists(TOPICS, max_size=3),
    throttle_time_ms=st.integers(0, 1000),
    endpoints=st.lists(ENDPOINTS, max_size=2),
)
def test_answers_are_those_of_the_compiled_encoder(
    version: int, topics: list[TopicProduced], throttle_time_ms: int, endpoints: list[NodeEndpoint]
) -> None:
    expected = encode_response(_as_message(version, topics, throttle_time_ms, endpoints), 42)
    assert encode_produce_response(version, 42, topics, throttle_time_ms, endpoints) == expected


def test_an_answer_of_many_partitions_is_that_of_the_compiled_encoder() -> None:
    topics = [TopicProduced("t" * 200, UUID(int=1), [PartitionProduced(index, 0, 1) for index in range(200)])] * 200
    for version in VERSIONS:
        expected = encode_response(_as_message(version, topics, 0, []), 42)
        assert encode_produce_response(version, 42, topics, 0) == expected


def _as_message(version: int, topics: list[TopicProduced], throttle_time_ms: int, endpoints: list[NodeEndpoint]) -> Any:
    schema = response_schema(PRODUCE, version)
    topic_schema = nested_schema(schema, "responses")
    partition_schema = nested_schema(topic_schema, "partition_responses")
    extra = {}
    if version >= 10:
        endpoint_schema = nested_schema(schema, "node_endpoints")
        extra["node_endpoints"] = tuple(endpoint_schema(**endpoint._asdict()) for endpoint in endpoints)
    responses = tuple(
        topic_schema(
            **({"topic_id": topic.topic_id} if version >= FIRST_WITH_TOPIC_IDS else {"name": topic.name}),
            partition_responses=tuple(_partition(version, partition_schema, p) for p in topic.partitions),
        )
        for topic in topics
    )
    return schema(responses=responses, throttle_time=throttle_time_ms, **extra)


def _partition(version: int, schema: Any, partition: PartitionProduced) -> Any:
    values: dict[str, Any] = {
        "index": partition.partition_index,
        "error_code": partition.error_code,
        "base_offset": partition.base_offset,
        "log_append_time": partition.log_append_time_ms,
    }
    if version >= 5:
        values["log_start_offset"] = partition.log_start_offset
    if version >= 8:
        error_schema = nested_schema(schema, "record_errors")
        values["record_errors"] = tuple(
            error_schema(batch_index=error.batch_index, batch_index_error_message=error.message)
            for error in partition.record_errors
        )
        values["error_message"] = partition.error_message
    if version >= 10 and partition.current_leader is not None:
        values["current_leader"] = nested_schema(schema, "current_leader")(**partition.current_leader._asdict())
    return schema(**values)
