from contextlib import suppress
from random import Random
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.wire.api_keys import FETCH
from lamina.wire.fetch_request import VERSIONS, FetchPartition, parse_fetch_request
from lamina.wire.primitives import MalformedRequest
from lamina.wire.versions import request_schema
from tests.examples import examples
from tests.wire.messages import bytes_with_unknown_tags, kio_bytes, random_entity


def _random_request(version: int, seed: int) -> Any:
    return random_entity(request_schema(FETCH, version), Random(seed))


@settings(max_examples=examples(400), deadline=None)
@given(version=st.sampled_from(VERSIONS), seed=st.integers(0, 2**32), unknown_tags=st.booleans())
def test_requests_are_read_as_written(version: int, seed: int, unknown_tags: bool) -> None:
    expected = _random_request(version, seed)
    request = parse_fetch_request(version, bytes_with_unknown_tags(expected) if unknown_tags else kio_bytes(expected))
    replica = expected.replica_state if version >= 15 else expected
    assert request.replica_id == replica.replica_id
    assert request.replica_epoch == getattr(replica, "replica_epoch", -1)
    assert request.max_wait_ms == round(expected.max_wait.total_seconds() * 1000)
    for name in ("min_bytes", "max_bytes", "isolation_level"):
        assert getattr(request, name) == getattr(expected, name)
    assert request.session_id == getattr(expected, "session_id", 0)
    assert request.session_epoch == getattr(expected, "session_epoch", -1)
    assert request.rack_id == getattr(expected, "rack_id", "")
    assert [(topic.name, topic.topic_id, topic.partitions) for topic in request.topics] == [
        (*_topic(topic), [_partition(p) for p in topic.partitions]) for topic in expected.topics
    ]
    assert [tuple(topic) for topic in request.forgotten_topics] == [
        (*_topic(topic), topic.partitions) for topic in getattr(expected, "forgotten_topics_data", ())
    ]


def _topic(topic: Any) -> tuple[Any, Any]:
    return getattr(topic, "topic", None), getattr(topic, "topic_id", None)


def _partition(partition: Any) -> FetchPartition:
    return FetchPartition(
        partition.partition,
        getattr(partition, "current_leader_epoch", -1),
        partition.fetch_offset,
        getattr(partition, "last_fetched_epoch", -1),
        getattr(partition, "log_start_offset", -1),
        partition.partition_max_bytes,
    )


@settings(max_examples=examples(300), deadline=None)
@given(version=st.sampled_from(VERSIONS), body=st.binary(max_size=150))
def test_garbage_is_a_request_or_malformed(version: int, body: bytes) -> None:
    with suppress(MalformedRequest):
        parse_fetch_request(version, body)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_malformed(version: int) -> None:
    body = kio_bytes(_random_request(version, 4))
    for end in range(0, len(body), 1 + len(body) // 100):
        with pytest.raises(MalformedRequest):
            parse_fetch_request(version, body[:end])
    with pytest.raises(MalformedRequest, match="1 bytes follow its last field"):
        parse_fetch_request(version, body + b"\0")


V4_HEAD = pack(">iiiib", -1, 0, 0, 0, 0)
V7_HEAD = V4_HEAD + pack(">ii", 0, -1)
V15_HEAD = V7_HEAD[4:]


@pytest.mark.parametrize(
    ("version", "body", "sentence"),
    [
        (4, V4_HEAD + pack(">i", 2**31 - 1), "FetchRequest v4: more elements are announced"),
        (4, V4_HEAD + pack(">i", -1), "array that must be there is null"),
        (4, V4_HEAD + pack(">ih", 1, -1), "ends before its last field"),
        (4, V4_HEAD + pack(">ihi", 1, -1, 0), "string that must be there is null"),
        (4, V4_HEAD + pack(">ih", 1, -9), "a string has length -9"),
        (7, V7_HEAD + pack(">iihi", 0, 1, 0, 150_000), "ends before its last field"),
        (12, V7_HEAD + b"\xff\xff\xff\xff\x0f", "more elements are announced"),
        (12, V7_HEAD + b"\x02\x00\x01\x00", "string that must be there is null"),
        (17, V15_HEAD + b"\x02" + bytes(15), "ends before its last field"),
        (17, V15_HEAD + b"\x01\x01\x01\x01\x01\x02ab", "ends before its last field"),
    ],
)
def test_a_lie_is_refused_with_a_sentence(version: int, body: bytes, sentence: str) -> None:
    with pytest.raises(MalformedRequest, match=sentence):
        parse_fetch_request(version, body)
