"""Fetch requests in every version: what is sent is what a broker reads."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import MalformedResponse
from lamina.peer.fetching import FetchCall, fetch_one, fetched, partition_fetched
from lamina.wire.codec import SIZE_BYTES
from lamina.wire.fetch_request import (
    FIRST_WITH_TOPIC_IDS,
    VERSIONS,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    parse_fetch_request,
)
from lamina.wire.fetch_response import AbortedTransaction, PartitionFetched, TopicFetched
from lamina.wire.fetched import FetchResponse
from lamina.wire.headers import parse_request_header

ID = UUID(int=7)
INT32, INT64 = st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1)
PARTITIONS = st.builds(FetchPartition, INT32, INT32, INT64, INT32, INT64, INT32)
REQUESTS = st.builds(
    FetchRequest,
    replica_id=st.integers(-1, 9),
    replica_epoch=INT64,
    max_wait_ms=INT32,
    min_bytes=INT32,
    max_bytes=INT32,
    isolation_level=st.sampled_from([0, 1]),
    session_id=INT32,
    session_epoch=st.integers(-1, 9),
    topics=st.lists(
        st.builds(FetchTopic, st.just("orders"), st.just(ID), st.lists(PARTITIONS, max_size=2)), max_size=2
    ),
    forgotten_topics=st.lists(
        st.builds(ForgottenTopic, st.just("orders"), st.just(ID), st.tuples(INT32, INT32)), max_size=2
    ),
    rack_id=st.text(max_size=9),
)


def read_by_a_broker(request: FetchRequest, version: int) -> FetchRequest:
    frame = bytes(FetchCall(request).encode(version, 7, "test"))[SIZE_BYTES:]
    header = parse_request_header(frame)
    assert (header.api_key, header.api_version, header.correlation_id) == (1, version, 7)
    return parse_fetch_request(version, frame[header.body_at :])


@given(request=REQUESTS)
def test_a_broker_reads_what_was_asked(request: FetchRequest) -> None:
    read = read_by_a_broker(request, VERSIONS[-1])
    assert read == request._replace(
        topics=[topic._replace(name=None) for topic in request.topics],
        forgotten_topics=[topic._replace(name=None) for topic in request.forgotten_topics],
    )


@given(request=REQUESTS, version=st.sampled_from(VERSIONS))
def test_every_version_says_where_to_read(request: FetchRequest, version: int) -> None:
    read = read_by_a_broker(request, version)
    assert read.replica_id == request.replica_id
    assert [
        (one.partition_index, one.fetch_offset, one.max_bytes) for topic in read.topics for one in topic.partitions
    ] == [
        (one.partition_index, one.fetch_offset, one.max_bytes) for topic in request.topics for one in topic.partitions
    ]


def test_without_topic_ids_only_versions_with_names_are_spoken() -> None:
    asked = {"max_bytes": 1, "max_wait_ms": 20, "min_bytes": 1, "isolation_level": 0}
    assert fetch_one("orders", ID, 0, 5, 0, **asked).versions == VERSIONS
    assert fetch_one("orders", None, 0, 5, 0, **asked).versions == range(VERSIONS.start, FIRST_WITH_TOPIC_IDS)


def test_a_broker_may_hold_the_response_back_as_long_as_it_was_told() -> None:
    call = fetch_one("orders", ID, 0, 5, 0, max_bytes=1, max_wait_ms=2000, min_bytes=1, isolation_level=0)
    assert call.wait_ms == 2000


def test_a_partition_without_records_has_an_empty_view() -> None:
    assert bytes(fetched(PartitionFetched(0, 0, 10, 9, 1, records=None)).records) == b""


def test_what_one_partition_gave() -> None:
    aborted = [AbortedTransaction(4, 2)]
    told = PartitionFetched(0, 0, 10, 9, 1, memoryview(b"records"), aborted)
    assert fetched(told) == (memoryview(b"records"), 10, 9, 1, aborted)


@pytest.mark.parametrize(
    "topics",
    [
        [],
        [TopicFetched("orders", None, [])],
        [TopicFetched("orders", None, [PartitionFetched(0, 0, 0)] * 2)],
        [TopicFetched("orders", None, [PartitionFetched(0, 0, 0)])] * 2,
    ],
)
def test_a_response_about_something_else_is_one_error(topics: list[TopicFetched]) -> None:
    with pytest.raises(MalformedResponse, match="not about the one partition"):
        partition_fetched(FetchResponse(0, 0, 0, topics, ()))


def test_errors_of_the_response_and_of_its_partitions_are_found() -> None:
    call = fetch_one("orders", ID, 0, 5, 0, max_bytes=1, max_wait_ms=0, min_bytes=1, isolation_level=0)
    partitions = [PartitionFetched(0, 6, 0), PartitionFetched(1, 0, 0)]
    assert list(call.errors(FetchResponse(0, 70, 0, [TopicFetched("orders", None, partitions)], ()))) == [70, 6]
