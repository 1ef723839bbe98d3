from collections.abc import Sized
from struct import unpack_from
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.wire.api_keys import FETCH
from lamina.wire.codec import encode_response
from lamina.wire.fetch_request import VERSIONS
from lamina.wire.fetch_response import (
    INLINE_BYTES,
    AbortedTransaction,
    DivergingEpoch,
    PartitionFetched,
    TopicFetched,
    encode_fetch_response,
)
from lamina.wire.leaders import CurrentLeader, NodeEndpoint
from lamina.wire.versions import nested_schema, response_schema
from tests.examples import examples


class FileRange:
    """Stands for a range that `sendfile` would send."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __len__(self) -> int:
        return len(self.content)


def _joined(pieces: list[Sized]) -> bytes:
    return b"".join(piece.content if isinstance(piece, FileRange) else bytes(piece) for piece in pieces)  # type: ignore[call-overload]


INT64 = st.integers(-1, 2**63 - 1)
RECORDS = st.binary(max_size=200) | st.just(bytes(INLINE_BYTES + 1))
PARTITIONS = st.builds(
    PartitionFetched,
    partition_index=st.integers(0, 2**31 - 1),
    error_code=st.integers(0, 100),
    high_watermark=INT64,
    last_stable_offset=INT64,
    log_start_offset=INT64,
    records=st.none() | RECORDS | RECORDS.map(lambda records: memoryview(records)) | RECORDS.map(FileRange),
    aborted_transactions=st.none() | st.lists(st.builds(AbortedTransaction, INT64, INT64), max_size=2),
    preferred_read_replica=st.integers(-1, 9),
    diverging_epoch=st.none() | st.builds(DivergingEpoch, st.integers(0, 9), INT64),
    current_leader=st.none() | st.builds(CurrentLeader, st.integers(0, 9), st.integers(0, 9)),
)
TOPICS = st.builds(TopicFetched, st.text(max_size=200), st.none() | st.uuids(), st.lists(PARTITIONS, max_size=3))
ENDPOINTS = st.builds(
    NodeEndpoint,
    st.integers(0, 9),
    st.text(max_size=20),
    st.integers(1, 65535),
    st.none() | st.text(max_size=9),
)


@settings(deadline=None, max_examples=examples(200))
@given(
    version=st.sampled_from(VERSIONS),
    topics=st.lists(TOPICS, max_size=3),
    error_code=st.integers(0, 100),
    session_id=st.integers(0, 2**31 - 1),
    throttle_time_ms=st.integers(0, 1000),
    endpoints=st.lists(ENDPOINTS, max_size=2),
)
def test_pieces_joined_are_the_bytes_of_the_compiled_encoder(
    version: int,
    topics: list[TopicFetched],
    error_code: int,
    session_id: int,
    throttle_time_ms: int,
    endpoints: list[NodeEndpoint],
) -> None:
    pieces = encode_fetch_response(
        version,
        42,
        topics,
        error_code=error_code,
        session_id=session_id,
        throttle_time_ms=throttle_time_ms,
        node_endpoints=endpoints,
    )
    values: dict[str, Any] = {"throttle_time": throttle_time_ms}
    if version >= 7:
        values |= {"error_code": error_code, "session_id": session_id}
    assert _joined(pieces) == encode_response(_as_message(version, topics, endpoints, values), 42)
    assert all(len(piece) for piece in pieces)


def _as_message(version: int, topics: list[TopicFetched], endpoints: list[NodeEndpoint], values: dict[str, Any]) -> Any:
    schema = response_schema(FETCH, version)
    if version >= 16:
        endpoint_schema = nested_schema(schema, "node_endpoints")
        values["node_endpoints"] = tuple(endpoint_schema(**endpoint._asdict()) for endpoint in endpoints)
    topic_schema = nested_schema(schema, "responses")
    partition_schema = nested_schema(topic_schema, "partitions")
    responses = []
    for topic in topics:
        key = {"topic_id": topic.topic_id} if version >= 13 else {"topic": topic.name}
        partitions = tuple(_partition(version, partition_schema, p) for p in topic.partitions)
        responses.append(topic_schema(**key, partitions=partitions))
    return schema(responses=tuple(responses), **values)


def _partition(version: int, schema: Any, partition: PartitionFetched) -> Any:
    records = partition.records
    aborted = partition.aborted_transactions
    aborted_schema = nested_schema(schema, "aborted_transactions")
    values: dict[str, Any] = {
        "partition_index": partition.partition_index,
        "error_code": partition.error_code,
        "high_watermark": partition.high_watermark,
        "last_stable_offset": partition.last_stable_offset,
        "records": records.content if isinstance(records, FileRange) else records,
        "aborted_transactions": aborted and tuple(aborted_schema(**each._asdict()) for each in aborted),
    }
    if version >= 5:
        values["log_start_offset"] = partition.log_start_offset
    if version >= 11:
        values["preferred_read_replica"] = partition.preferred_read_replica
    if version >= 12:
        for tag in ("diverging_epoch", "current_leader"):
            value = getattr(partition, tag)
            if value is not None:
                values[tag] = nested_schema(schema, tag)(**value._asdict())
    return schema(**values)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_range_is_handed_back_in_its_place(version: int) -> None:
    file_range = FileRange(b"r" * 70_000)
    topic = TopicFetched("t", UUID(int=1), [PartitionFetched(0, 0, 9, records=file_range)])
    head, hole, *_ = pieces = encode_fetch_response(version, 1, [topic], 0)
    assert hole is file_range
    assert isinstance(head, bytearray)
    assert unpack_from(">i", head) == (sum(map(len, pieces)) - 4,)


def test_small_records_in_memory_share_the_piece_around_them() -> None:
    topic = TopicFetched("t", None, [PartitionFetched(0, 0, 9, records=b"abc")] * 3)
    (piece,) = encode_fetch_response(12, 1, [topic], 0)
    assert bytes(piece).count(b"abc") == 3  # type: ignore[call-overload]
