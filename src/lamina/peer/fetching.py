"""Fetch: raw batches of partitions, as views into the response.

Owns how the wire's `FetchRequest` is sent in any version, and what one partition of the response means. Followers,
readers of one partition and tools all fetch through `FetchCall`. Must not know who leads what.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from lamina.errors import MalformedResponse
from lamina.wire.api_keys import FETCH
from lamina.wire.building import build_request
from lamina.wire.codec import encode_request
from lamina.wire.fetch_request import (
    FIRST_WITH_TOPIC_IDS,
    NO_REPLICA_ID,
    VERSIONS,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from lamina.wire.fetch_request_frame import FIRST_BY_HAND, encode_fetch_request
from lamina.wire.fetch_response import AbortedTransaction, PartitionFetched
from lamina.wire.fetched import FetchResponse, parse_fetch_response
from lamina.wire.primitives import Buffer

_NO_SESSION_ID = 0
_NO_SESSION_EPOCH = -1
_NONE = -1


class Fetched(NamedTuple):
    """What one partition gave."""

    records: memoryview
    """Whole batches, and perhaps a part of one more at the end. Keeps the memory of the whole response."""
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted_transactions: Sequence[AbortedTransaction]
    """Those that overlap the records, where only committed ones were asked for."""


class FetchCall:
    """A Fetch request as it stands; topics need their ids for versions 13 and up, and their names below.

    ``versions`` are those in which it says what it means.
    """

    api_key = FETCH

    def __init__(self, request: FetchRequest, versions: range = VERSIONS) -> None:
        self._request = request
        has_ids = all(topic.topic_id is not None for topic in request.topics) and all(
            topic.topic_id is not None for topic in request.forgotten_topics
        )
        self.versions = versions if has_ids else range(versions.start, FIRST_WITH_TOPIC_IDS)
        self.wait_ms = request.max_wait_ms

    def encode(self, version: int, correlation_id: int, client_id: str) -> Buffer:
        if version >= FIRST_BY_HAND:
            return encode_fetch_request(self._request, version, correlation_id, client_id)
        return encode_request(build_request(FETCH, version, _facts(self._request)), correlation_id, client_id)

    def decode(self, version: int, frame: memoryview) -> FetchResponse:
        return parse_fetch_response(version, frame)[1]

    def errors(self, response: FetchResponse) -> Iterable[int]:
        if response.error_code:
            yield response.error_code
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    yield partition.error_code


def fetch_one(
    topic: str,
    topic_id: UUID | None,
    partition: int,
    leader_epoch: int,
    offset: int,
    *,
    max_bytes: int,
    max_wait_ms: int,
    min_bytes: int,
    isolation_level: int,
) -> FetchCall:
    """As a consumer asks for one partition, without a session."""
    asked = FetchPartition(partition, leader_epoch, offset, _NONE, _NONE, max_bytes)
    return FetchCall(
        FetchRequest(
            NO_REPLICA_ID,
            _NONE,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            _NO_SESSION_ID,
            _NO_SESSION_EPOCH,
            [FetchTopic(topic, topic_id, [asked])],
            [],
            "",
        )
    )


def partition_fetched(response: FetchResponse) -> PartitionFetched:
    """The one partition that was asked for."""
    try:
        ((_, _, (partition,)),) = response.topics
    except ValueError:
        raise MalformedResponse("a Fetch response is not about the one partition that was asked for") from None
    return partition


def fetched(partition: PartitionFetched) -> Fetched:
    records = partition.records
    return Fetched(
        records if isinstance(records, memoryview) else memoryview(b""),
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        partition.aborted_transactions or (),
    )


def _facts(request: FetchRequest) -> dict[str, Any]:
    """What versions below ``FIRST_BY_HAND`` say."""
    return {
        "replica_id": request.replica_id,
        "max_wait": request.max_wait_ms,
        "min_bytes": request.min_bytes,
        "max_bytes": request.max_bytes,
        "isolation_level": request.isolation_level,
        "session_id": request.session_id,
        "session_epoch": request.session_epoch,
        "topics": [
            {**_named(topic), "partitions": [_partition_facts(one) for one in topic.partitions]}
            for topic in request.topics
        ],
        "forgotten_topics_data": [
            {**_named(topic), "partitions": topic.partitions} for topic in request.forgotten_topics
        ],
        "rack_id": request.rack_id,
    }


def _named(topic: FetchTopic | ForgottenTopic) -> dict[str, Any]:
    return {"topic": topic.name, "topic_id": topic.topic_id}


def _partition_facts(asked: FetchPartition) -> dict[str, int]:
    return {
        "partition": asked.partition_index,
        "current_leader_epoch": asked.current_leader_epoch,
        "fetch_offset": asked.fetch_offset,
        "last_fetched_epoch": asked.last_fetched_epoch,
        "log_start_offset": asked.log_start_offset,
        "partition_max_bytes": asked.max_bytes,
    }
