"""Produce: ready batches to partitions.

Owns how the wire's `ProduceRequest` is sent in any version, and what one partition of the response means. Must not
know what is inside a batch, nor who leads what.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from lamina.errors import MalformedResponse
from lamina.wire.answer_errors import error_codes
from lamina.wire.api_keys import PRODUCE
from lamina.wire.building import build_request
from lamina.wire.codec import encode_request, parse_response
from lamina.wire.leaders import CurrentLeader, NodeEndpoint
from lamina.wire.primitives import Buffer
from lamina.wire.produce import FIRST_WITH_TOPIC_IDS, VERSIONS, PartitionRecords, ProduceRequest, TopicRecords

ACKS_ALL = -1


class Produced(NamedTuple):
    """Where the records of one partition are now."""

    base_offset: int
    log_start_offset: int
    """-1 where the broker is too old to tell."""


class ProduceCall:
    """A Produce request as it stands; topics need their ids for versions 13 and up, and their names below.

    It has acks: a broker does not answer one without. ``versions`` are those in which it says what it means.
    """

    api_key = PRODUCE

    def __init__(self, request: ProduceRequest, versions: range = VERSIONS) -> None:
        assert request.acks != 0, "nothing would come back"
        self._request = request
        has_ids = all(topic.topic_id is not None for topic in request.topics)
        self.versions = versions if has_ids else range(versions.start, min(versions.stop, FIRST_WITH_TOPIC_IDS))
        self.wait_ms = request.timeout_ms

    def encode(self, version: int, correlation_id: int, client_id: str) -> Buffer:
        request = self._request
        facts = {
            "transactional_id": request.transactional_id,
            "acks": request.acks,
            "timeout": request.timeout_ms,
            "topic_data": [
                {
                    "name": topic.name,
                    "topic_id": topic.topic_id,
                    "partition_data": [
                        {"index": one.partition_index, "records": one.records} for one in topic.partitions
                    ],
                }
                for topic in request.topics
            ],
        }
        return encode_request(build_request(PRODUCE, version, facts), correlation_id, client_id)

    def decode(self, version: int, frame: memoryview) -> Any:
        return parse_response(PRODUCE, version, frame)[1]

    def errors(self, response: Any) -> Iterable[int]:
        return error_codes(response)


def produce_one(
    topic: str, topic_id: UUID | None, partition: int, batches: Buffer, *, acks: int, timeout_ms: int
) -> ProduceCall:
    records = PartitionRecords(partition, memoryview(batches))
    return ProduceCall(ProduceRequest(None, acks, timeout_ms, [TopicRecords(topic, topic_id, [records])]))


def partition_produced(response: Any) -> Any:
    """The one partition that was asked for."""
    partitions = [one for topic in response.responses for one in topic.partition_responses]
    if len(partitions) != 1:
        raise MalformedResponse("a Produce response is not about the one partition that was asked for")
    return partitions[0]


def produced(partition: Any) -> Produced:
    return Produced(int(partition.base_offset), int(getattr(partition, "log_start_offset", -1)))


def leader_hint(response: Any, partition: Any) -> tuple[CurrentLeader | None, tuple[NodeEndpoint, ...]]:
    """Who leads instead, where the broker says so (KIP-951)."""
    told = getattr(partition, "current_leader", None)
    if told is None or told.leader_id < 0:
        return None, ()
    endpoints = tuple(NodeEndpoint(int(one.node_id), one.host, one.port, one.rack) for one in response.node_endpoints)
    return CurrentLeader(int(told.leader_id), int(told.leader_epoch)), endpoints
