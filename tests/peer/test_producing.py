"""Produce requests in every version: what is sent is what a broker reads."""

from typing import Any
from uuid import UUID

import pytest

from lamina.errors import MalformedResponse
from lamina.peer.producing import leader_hint, partition_produced, produce_one, produced
from lamina.wire.api_keys import PRODUCE
from lamina.wire.codec import SIZE_BYTES, parse_response
from lamina.wire.headers import parse_request_header
from lamina.wire.leaders import CurrentLeader, NodeEndpoint
from lamina.wire.produce import FIRST_WITH_TOPIC_IDS, VERSIONS, parse_produce_request
from tests.peer.responses import response_frame

ID = UUID(int=7)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_reads_what_was_sent(version: int) -> None:
    call = produce_one("orders", ID, 3, bytearray(b"batches"), acks=1, timeout_ms=500)
    frame = bytes(call.encode(version, 7, "test"))[SIZE_BYTES:]
    header = parse_request_header(frame)
    assert (header.api_key, header.api_version, header.correlation_id) == (PRODUCE, version, 7)
    read = parse_produce_request(version, frame[header.body_at :])
    assert (read.transactional_id, read.acks, read.timeout_ms) == (None, 1, 500)
    ((name, topic_id, (records,)),) = read.topics
    assert (name, topic_id) == (("orders", None) if version < FIRST_WITH_TOPIC_IDS else (None, ID))
    assert (records.partition_index, bytes(records.records or b"")) == (3, b"batches")


def test_without_a_topic_id_only_versions_with_names_are_spoken() -> None:
    assert produce_one("orders", ID, 0, b"", acks=-1, timeout_ms=1).versions == VERSIONS
    assert produce_one("orders", None, 0, b"", acks=-1, timeout_ms=1).versions == range(
        VERSIONS.start, FIRST_WITH_TOPIC_IDS
    )


def test_a_broker_may_hold_the_response_back_as_long_as_it_was_told() -> None:
    assert produce_one("orders", ID, 0, b"", acks=-1, timeout_ms=2000).wait_ms == 2000


def response(version: int, *partitions: dict[str, Any], **more: Any) -> Any:
    facts = {"responses": [{"name": "orders", "partition_responses": partitions}], **more}
    return parse_response(PRODUCE, version, response_frame(PRODUCE, version, 7, **facts)[SIZE_BYTES:])[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_where_the_records_are(version: int) -> None:
    told = partition_produced(response(version, {"base_offset": 9, "log_start_offset": 2}))
    assert produced(told) == (9, 2 if version >= 5 else -1)
    assert leader_hint(response(version, {}), told) == (None, ())


def test_a_leader_that_is_told_comes_with_its_address() -> None:
    endpoint = {"node_id": 2, "host": "broker-2", "port": 9092}
    whole = response(10, {"current_leader": {"leader_id": 2, "leader_epoch": 6}}, node_endpoints=[endpoint])
    assert leader_hint(whole, partition_produced(whole)) == (
        CurrentLeader(2, 6),
        (NodeEndpoint(2, "broker-2", 9092, None),),
    )


@pytest.mark.parametrize("count", [0, 2])
def test_a_response_about_something_else_is_one_error(count: int) -> None:
    with pytest.raises(MalformedResponse, match="not about the one partition"):
        partition_produced(response(9, *[{}] * count))
