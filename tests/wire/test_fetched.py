"""Fetch responses read back: what was written, byte for byte, and never more than was sent."""

from collections.abc import Sequence, Sized
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.wire.codec import SIZE_BYTES
from lamina.wire.fetch_request import FIRST_FLEXIBLE, FIRST_WITH_SESSIONS, FIRST_WITH_TOPIC_IDS, VERSIONS
from lamina.wire.fetch_response import (
    FIRST_WITH_LOG_START,
    FIRST_WITH_NODE_ENDPOINTS,
    FIRST_WITH_PREFERRED_REPLICA,
    AbortedTransaction,
    DivergingEpoch,
    PartitionFetched,
    TopicFetched,
    encode_fetch_response,
)
from lamina.wire.fetched import parse_fetch_response
from lamina.wire.leaders import CurrentLeader, NodeEndpoint
from lamina.wire.primitives import MalformedRequest
from tests.examples import examples

INT64 = st.integers(-1, 2**63 - 1)
PARTITIONS = st.builds(
    PartitionFetched,
    partition_index=st.integers(0, 2**31 - 1),
    error_code=st.integers(-1, 200),
    high_watermark=INT64,
    last_stable_offset=INT64,
    log_start_offset=INT64,
    records=st.none() | st.binary(max_size=300),
    aborted_transactions=st.none() | st.lists(st.builds(AbortedTransaction, INT64, INT64), max_size=2),
    preferred_read_replica=st.integers(-1, 9),
    diverging_epoch=st.none() | st.builds(DivergingEpoch, st.integers(0, 9), INT64),
    current_leader=st.none() | st.builds(CurrentLeader, st.integers(0, 9), st.integers(0, 9)),
)
TOPICS = st.lists(
    st.builds(TopicFetched, st.text(max_size=200), st.none() | st.uuids(), st.lists(PARTITIONS, max_size=3)), max_size=3
)
ENDPOINTS = st.lists(
    st.builds(NodeEndpoint, st.integers(0, 9), st.text(max_size=20), st.integers(1, 65535), st.none() | st.text()),
    max_size=2,
)


@settings(max_examples=examples(200))
@given(version=st.sampled_from(VERSIONS), topics=TOPICS, endpoints=ENDPOINTS, error_code=st.integers(0, 100))
def test_what_was_written_is_read(
    version: int, topics: list[TopicFetched], endpoints: list[NodeEndpoint], error_code: int
) -> None:
    frame = _frame(version, topics, endpoints, error_code)
    correlation_id, response = parse_fetch_response(version, frame)
    assert correlation_id == 7
    assert response.throttle_time_ms == 5
    assert response.error_code == (error_code if version >= FIRST_WITH_SESSIONS else 0)
    assert response.session_id == (3 if version >= FIRST_WITH_SESSIONS else 0)
    assert response.topics == [_carried(version, topic) for topic in topics]
    assert list(response.node_endpoints) == (endpoints if version >= FIRST_WITH_NODE_ENDPOINTS else [])


def test_records_are_views_into_the_frame() -> None:
    fetched = PartitionFetched(0, 0, 10, 10, 0, b"r" * 5000)
    frame = bytearray(_frame(12, [TopicFetched("orders", None, [fetched])], [], 0))
    _, response = parse_fetch_response(12, frame)
    records = response.topics[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame


def test_a_tag_that_a_version_does_not_know_is_skipped() -> None:
    frame = _frame(12, [], [], 0)
    assert frame[-1:] == b"\0"
    _, response = parse_fetch_response(12, frame[:-1] + bytes([1, 0, 2, 0xFF, 0xFF]))
    assert response.node_endpoints == ()


@given(version=st.sampled_from(VERSIONS), topics=TOPICS, data=st.data())
def test_a_frame_cut_or_longer_is_malformed(version: int, topics: list[TopicFetched], data: st.DataObject) -> None:
    frame = _frame(version, topics, [], 0)
    cut = frame[: data.draw(st.integers(0, len(frame) - 1))]
    for wrong in (cut, frame + b"\0"):
        with pytest.raises(MalformedRequest):
            parse_fetch_response(version, wrong)


@given(version=st.sampled_from(VERSIONS), garbage=st.binary(max_size=300))
def test_garbage_is_malformed_or_a_response(version: int, garbage: bytes) -> None:
    try:
        parse_fetch_response(version, garbage)
    except MalformedRequest as error:
        assert str(error)


def _frame(version: int, topics: Sequence[TopicFetched], endpoints: Sequence[NodeEndpoint], error_code: int) -> bytes:
    pieces: list[Sized] = encode_fetch_response(
        version, 7, topics, 5, error_code=error_code, session_id=3, node_endpoints=endpoints
    )
    return b"".join(cast(list[bytes], pieces))[SIZE_BYTES:]


def _carried(version: int, topic: TopicFetched) -> TopicFetched:
    """What a version can carry of it."""
    with_ids = version >= FIRST_WITH_TOPIC_IDS
    partitions = []
    for fetched in topic.partitions:
        if version < FIRST_WITH_LOG_START:
            fetched = fetched._replace(log_start_offset=-1)
        if version < FIRST_WITH_PREFERRED_REPLICA:
            fetched = fetched._replace(preferred_read_replica=-1)
        if version < FIRST_FLEXIBLE:
            fetched = fetched._replace(diverging_epoch=None, current_leader=None)
        partitions.append(fetched)
    return TopicFetched(None if with_ids else topic.name, topic.topic_id if with_ids else None, partitions)
