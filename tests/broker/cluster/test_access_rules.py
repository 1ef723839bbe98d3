"""Access rules of a cluster: made at any broker, kept in ZooKeeper, obeyed by all."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.security.acls import Operation, PatternType, Permission, ResourceType
from lamina.settings.authorization import STANDARD_AUTHORIZER
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import BROKERS, CREATE_TOPICS, FETCH, Members

CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, ENVELOPE, ALTER_PARTITION = 30, 31, 29, 58, 56
ALICE = "User:alice"
EVERY: dict[str, Any] = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Three brokers that trust each other, with a topic."""
    members = new_members(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS")
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.create(1, "t", [[1, 2, 3]])
    return members


def as_user(members: Members, principal: str, node_id: int, api_key: int, version: int, **facts: Any) -> Any:
    before, members.principal = members.principal, principal
    try:
        return members.ask(node_id, api_key, version, **facts)
    finally:
        members.principal = before


def allow(members: Members, node_id: int, operation: Operation, type_: ResourceType, name: str) -> None:
    rule = {
        "resource_type": type_,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": ALICE,
        "host": "*",
        "operation": operation,
        "permission_type": Permission.ALLOW,
    }
    (made,) = members.ask(node_id, CREATE_ACLS, 3, creations=[rule]).results
    assert made.error_code == 0, made.error_message


def is_denied(members: Members, node_id: int) -> bool:
    """Whether alice may not read there; a follower that has nothing yet may tell her something else."""
    partition = {"partition": 0, "partition_max_bytes": 9, "current_leader_epoch": -1}
    answer = as_user(members, ALICE, node_id, FETCH, 12, topics=[{"topic": "t", "partitions": [partition]}])
    code = answer.responses[0].partitions[0].error_code
    return bool(code == ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def are_denied(members: Members) -> set[bool]:
    return {is_denied(members, node_id) for node_id in members.up}


def created(members: Members, node_id: int, name: str) -> int:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    answer = as_user(members, ALICE, node_id, CREATE_TOPICS, 7, topics=[topic], timeout=timedelta(seconds=5))
    return int(answer.topics[0].error_code)


def others(members: Members) -> list[int]:
    """Brokers that are not the controller."""
    controller = members.controller().id
    return [node_id for node_id in members.up if node_id != controller]


def test_a_rule_that_any_broker_is_told_holds_on_all(members: Members) -> None:
    assert are_denied(members) == {True}
    allow(members, others(members)[0], Operation.READ, ResourceType.TOPIC, "t")
    members.run_until(lambda: are_denied(members) == {False})
    for node_id in members.up:
        (found,) = members.ask(node_id, DESCRIBE_ACLS, 3, **EVERY).resources
        assert (found.resource_name, len(found.acls)) == ("t", 1)
    members.ask(others(members)[1], DELETE_ACLS, 3, filters=[EVERY])
    members.run_until(lambda: are_denied(members) == {True})


def test_a_forwarded_request_is_decided_by_who_asked_first_s49(members: Members) -> None:
    away = others(members)[0]
    assert created(members, away, "new") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allow(members, away, Operation.CREATE, ResourceType.TOPIC, "new")
    assert created(members, away, "new") == 0
    assert created(members, away, "other") == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_another_controller_finds_the_rules_in_zookeeper(members: Members) -> None:
    allow(members, 1, Operation.READ, ResourceType.TOPIC, "t")
    first = members.controller().id
    members.kill(first)
    members.run_until(lambda: any(one.member.is_controller for one in members.up.values()))
    members.start(first)
    members.run_until(lambda: are_denied(members) == {False})


@pytest.mark.parametrize(
    ("key", "version", "facts"),
    [
        (ENVELOPE, 0, {"request_data": b""}),
        (ALTER_PARTITION, 3, {"broker_id": 1, "broker_epoch": 1}),
    ],
)
def test_what_brokers_ask_each_other_takes_a_cluster_action_s58(
    members: Members, key: int, version: int, facts: dict[str, Any]
) -> None:
    answer = as_user(members, ALICE, members.controller().id, key, version, listener=BROKERS, **facts)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
