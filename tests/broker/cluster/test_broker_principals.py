"""Brokers that log in to each other without access rules: no other user is served as one of them."""

from typing import Any

import pytest

from lamina.errors import ErrorCode
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import BROKERS, FETCH, Members

ENVELOPE, ALTER_PARTITION, FOLLOW_METADATA = 58, 56, 10000
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ANONYMOUS" password=p user_{}=p;'
"""In this process brokers are asked by nobody, so that is the user as whom they log in."""
SETTINGS = {
    "listeners": "PLAINTEXT://:9092,BROKERS://:9093",
    "advertised.listeners": "PLAINTEXT://here:9092,BROKERS://here:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.brokers.plain.sasl.jaas.config": LOGIN.format("ANONYMOUS"),
    "super.users": "User:root",
}
ASKED: list[tuple[int, int, dict[str, Any]]] = [
    (ENVELOPE, 0, {"request_data": b""}),
    (ALTER_PARTITION, 3, {"broker_id": 1, "broker_epoch": 1}),
    (FOLLOW_METADATA, 0, {"broker_id": 1, "broker_epoch": 1, "report": b"{}"}),
]


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    members = new_members(**SETTINGS)
    for node_id in (1, 2):
        members.start(node_id)
    members.create(1, "t", [[1, 2]])
    return members


def asked_by(members: Members, principal: str, api_key: int, version: int, **facts: Any) -> Any:
    members.principal = principal
    return members.ask(members.controller().id, api_key, version, listener=BROKERS, **facts)


@pytest.mark.parametrize(("key", "version", "facts"), ASKED)
def test_what_brokers_ask_each_other_is_for_nobody_else_s49(
    members: Members, key: int, version: int, facts: dict[str, Any]
) -> None:
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert asked_by(members, "User:eve", key, version, **facts).error_code == refused
    assert asked_by(members, "User:root", key, version, **facts).error_code != refused
    assert asked_by(members, "User:ANONYMOUS", key, version, **facts).error_code != refused


def test_nobody_else_fetches_as_a_follower(members: Members) -> None:
    partition = {"partition": 0, "partition_max_bytes": 9, "current_leader_epoch": -1}
    topics = [{"topic": "t", "partitions": [partition]}]
    answer = asked_by(members, "User:eve", FETCH, 12, replica_id=2, topics=topics)
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_brokers_that_log_in_are_a_cluster(members: Members) -> None:
    members.run_until(lambda: set(members.state("t").isr) == {1, 2})
    assert members.produce(members.state("t").leader, "t") == 0
