"""A controller that still opens its logs: it decides for the clients of others, by the rules that are stored."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lamina.broker.metadata.publisher import Publisher
from lamina.broker.metadata.replicas import Replicas
from lamina.errors import ErrorCode
from lamina.security.acls import Operation, PatternType, Permission, ResourceType
from lamina.settings.authorization import STANDARD_AUTHORIZER
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import DELETE_TOPICS, MemberProcess, Members

CREATE_ACLS = 30
ROOT, ALICE, BROKERS = "User:root", "User:alice", "User:ANONYMOUS"
KAFKA = "kafka-cluster"
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def as_user(members: Members, principal: str, node_id: int, api_key: int, version: int, **facts: Any) -> Any:
    before, members.principal = members.principal, principal
    try:
        return members.ask(node_id, api_key, version, **facts)
    finally:
        members.principal = before


def make_rule(
    members: Members,
    maker: str,
    principal: str,
    operation: Operation,
    permission: Permission = Permission.ALLOW,
    node_id: int = 1,
) -> int:
    """About the cluster; returns the error code."""
    rule = {
        "resource_type": ResourceType.CLUSTER,
        "resource_name": KAFKA,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": principal,
        "host": "*",
        "operation": operation,
        "permission_type": permission,
    }
    return int(as_user(members, maker, node_id, CREATE_ACLS, 3, creations=[rule]).results[0].error_code)


async def never(*_: Any) -> Any:
    await asyncio.Event().wait()


def hold_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts from now on finds its logs on a disk that never answers."""

    monkeypatch.setattr(Replicas, "open", never)


def start_slowly(members: Members, node_id: int) -> MemberProcess:
    process = members.begin_start(node_id)
    process.parts.readiness.is_for_brokers_alone = True
    return process


def one_with_a_topic(new_members: NewMembers, **settings: str) -> Members:
    members = new_members(authorizer_class_name=STANDARD_AUTHORIZER, super_users=ROOT, **settings)
    members.principal = ROOT
    members.start(1)
    members.create(1, "t", [[1]])
    return members


def start_again(members: Members, monkeypatch: pytest.MonkeyPatch) -> MemberProcess:
    """Broker 1 is the controller, and opens its log for ever."""
    members.stop(1)
    hold_opening(monkeypatch)
    process = start_slowly(members, 1)
    members.run_until(lambda: process.member.is_controller)
    return process


def test_nobody_deletes_a_topic_by_its_id_without_a_right(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = one_with_a_topic(new_members)
    process = start_again(members, monkeypatch)
    topic_id = next(iter(process.member.decided.topic_names))
    asked = {"topics": [{"name": None, "topic_id": UUID(bytes=topic_id)}], "timeout": timedelta(seconds=5)}
    (kept,) = as_user(members, ALICE, 1, DELETE_TOPICS, 6, **asked).responses
    assert (kept.error_code, kept.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    assert not process.member.decided.topics["t"].is_being_deleted


def test_a_denial_stands_where_what_no_rule_is_about_is_everybodys(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = one_with_a_topic(new_members, allow_everyone_if_no_acl_found="true")
    assert make_rule(members, ROOT, ALICE, Operation.ALTER, Permission.DENY) == 0
    start_again(members, monkeypatch)
    assert make_rule(members, ALICE, ALICE, Operation.ALL) == REFUSED


def test_who_is_allowed_something_may_do_it(new_members: NewMembers, monkeypatch: pytest.MonkeyPatch) -> None:
    members = one_with_a_topic(new_members)
    assert make_rule(members, ROOT, ALICE, Operation.ALTER) == 0
    start_again(members, monkeypatch)
    assert make_rule(members, ALICE, ALICE, Operation.DESCRIBE) == 0


def test_brokers_that_a_rule_lets_in_follow_it(new_members: NewMembers, monkeypatch: pytest.MonkeyPatch) -> None:
    members = one_with_a_topic(new_members)
    assert make_rule(members, ROOT, BROKERS, Operation.CLUSTER_ACTION) == 0
    start_again(members, monkeypatch)
    other = start_slowly(members, 2)
    members.run_until(lambda: "t" in other.member.decided.topics)


def test_an_elected_broker_goes_by_what_is_stored_and_not_by_what_it_has_applied(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 2 has not heard of the last rule when broker 1 dies, and applies no change to its end from then on."""
    members = one_with_a_topic(new_members)
    assert make_rule(members, ROOT, BROKERS, Operation.CLUSTER_ACTION) == 0
    other = members.start(2)
    members.isolate(2)
    assert make_rule(members, ROOT, ALICE, Operation.ALTER) == 0
    monkeypatch.setattr(Publisher, "_take_roles", never)
    members.kill(1)
    members.heal()
    members.run_until(lambda: other.member.is_controller)
    assert make_rule(members, ALICE, ALICE, Operation.DESCRIBE, node_id=2) == 0
