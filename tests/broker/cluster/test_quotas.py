"""Quotas in a cluster: set at any broker, kept on all, and charged where a client is connected (S49, S64)."""

from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode
from lamina.records.record import Record, build_batch
from lamina.wire.codec import SIZE_BYTES, encode_request, parse_response
from lamina.wire.versions import request_schema
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import BROKERS, CREATE_TOPICS, METADATA, PRODUCE, Members
from tests.broker.in_process import NoSocket, build, joined
from tests.broker.quotas import alter, quotas_of

DESCRIBE, API_VERSIONS = 48, 18
ANYBODY = {"user": None}


class At:
    """Asks one broker."""

    def __init__(self, members: Members, node_id: int) -> None:
        self._members = members
        self._node_id = node_id

    def ask(self, api_key: int, api_version: int, **facts: Any) -> Any:
        return self._members.ask(self._node_id, api_key, api_version, **facts)


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Brokers 1, 2 and 3; broker 1 is the controller."""
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    return members


def asked(members: Members, node_id: int, api_key: int, version: int, **facts: Any) -> tuple[Request, Any]:
    """The request as its connection sees it afterwards, and the response."""
    frame = encode_request(build(request_schema(api_key, version), facts), 7, "app")[SIZE_BYTES:]
    request, served = members.up[node_id].parts.router.serve(NoSocket(), memoryview(frame))

    async def answered() -> Any:
        return await served if isinstance(served, Awaitable) else served

    pieces = members.finish(answered())
    return request, parse_response(api_key, version, joined(pieces)[SIZE_BYTES:])[1]


def test_any_broker_sets_what_holds_on_all(members: Members) -> None:
    alter(At(members, 2), ANYBODY, producer_byte_rate=1000.0)
    members.run_until(lambda: all(one.image.quotas for one in members.up.values()))
    for node_id in (1, 2, 3):
        told = quotas_of(At(members, node_id).ask(DESCRIBE, 1, components=[], strict=False))
        assert told == {(("user", None),): {"producer_byte_rate": 1000.0}}
    members.create(1, "t", [[1, 2, 3]])
    batch = bytes(build_batch([Record(0, 1_000_000, b"", bytes(20_000))]))
    leader = members.up[1].image.topics["t"].partitions[0].leader
    topic = {"name": "t", "partition_data": [{"index": 0, "records": batch}]}
    request, answer = asked(members, leader, PRODUCE, 9, acks=-1, timeout=timedelta(seconds=5), topic_data=[topic])
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert request.throttle_ms > 9000, "and replication goes on beside it"


def test_the_controller_counts_changes_and_the_clients_own_broker_mutes_it(members: Members) -> None:
    alter(At(members, 1), ANYBODY, controller_mutation_rate=1.0)
    members.run_until(lambda: bool(members.up[2].image.quotas))
    topics = [{"name": name, "num_partitions": 20, "replication_factor": 1} for name in ("a", "b")]
    request, answer = asked(members, 2, CREATE_TOPICS, 7, topics=topics)
    assert [topic.error_code for topic in answer.topics] == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert answer.throttle_time.total_seconds() * 1000 == request.throttle_ms > 8000


def test_a_forwarded_request_costs_its_time_where_it_came_in(members: Members) -> None:
    alter(At(members, 1), ANYBODY, request_percentage=0.000_001)
    members.run_until(lambda: bool(members.up[2].image.quotas))
    topics = [{"name": "a", "num_partitions": 1, "replication_factor": 1}]
    request, answer = asked(members, 2, CREATE_TOPICS, 7, topics=topics)
    assert answer.topics[0].error_code == 0
    assert answer.throttle_time.total_seconds() * 1000 == request.throttle_ms == 1000
    assert len(members.up[1].parts.counters.quotas.throttled) == 0


def test_what_brokers_ask_each_other_is_free(members: Members) -> None:
    alter(At(members, 1), ANYBODY, request_percentage=0.000_001, controller_mutation_rate=0.01)
    members.run_until(lambda: bool(members.up[2].image.quotas))
    topics = [{"name": name, "num_partitions": 20, "replication_factor": 3} for name in ("a", "b", "c")]
    answer = members.ask(1, CREATE_TOPICS, 7, listener=BROKERS, topics=topics)
    assert ([topic.error_code for topic in answer.topics], answer.throttle_time.total_seconds()) == ([0, 0, 0], 0)
    members.run_until(lambda: all(len(one.image.topics) == 3 for one in members.up.values()))
    assert [len(one.parts.counters.quotas.throttled) for one in members.up.values()] == [0, 0, 0]


def test_on_a_listener_that_clients_share_only_what_no_client_asks_is_free(new_members: NewMembers) -> None:
    members = new_members(listeners="PLAINTEXT://127.0.0.1:0", inter_broker_listener_name="PLAINTEXT")
    members.start(1)
    alter(At(members, 1), ANYBODY, request_percentage=0.000_001)
    throttled = members.up[1].parts.counters.quotas.throttled
    members.ask(1, API_VERSIONS, 3, client_software_name="a", client_software_version="1")
    assert len(throttled) == 0
    assert asked(members, 1, METADATA, 12, topics=None)[0].throttle_ms == 1000
