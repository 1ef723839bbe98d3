"""What a user is told who may do a part of what was asked, or who may no longer do it."""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from lamina.broker.requests.request import ANONYMOUS, CloseConnection, host_of
from lamina.errors import ErrorCode
from lamina.image.features import LAMINA_VERSION
from lamina.image.image import Features
from lamina.security.acls import Operation, PatternType
from tests.broker.in_process import batch_of
from tests.broker.requests.authorization.world import (
    ALICE,
    CLUSTER,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    EVERY,
    GROUP,
    ROOT,
    TOPIC,
    TRANSACTIONAL_ID,
    World,
    codes,
)

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
DESCRIBE, ALL = Operation.DESCRIBE, Operation.ALL
METADATA, PRODUCE, FETCH = 3, 0, 1
KAFKA = "kafka-cluster"
NOT_ASKED = -(2**31)


def bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


def topics_of(answer: Any) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in answer.topics}


def topic_id(world: World, name: str) -> Any:
    (topic,) = world.ask(METADATA, 12, user=ROOT, topics=[{"name": name}]).topics
    return topic.topic_id


# Metadata


def test_topics_that_may_not_be_described_are_left_out_of_all_and_denied_by_name_s58(world: World) -> None:
    world.allow((READ, TOPIC, "t"))
    assert topics_of(world.ask(METADATA, 12, topics=None)) == {"t": 0}
    asked = world.ask(METADATA, 12, topics=[{"name": "t"}, {"name": "other"}, {"name": "absent"}])
    assert topics_of(asked) == {"t": 0, "other": 29, "absent": 29}
    assert [topic.topic_id for topic in asked.topics if topic.error_code] == [None, None]


def test_a_topic_that_is_named_by_its_id_keeps_its_name_s58(world: World) -> None:
    other = topic_id(world, "other")
    (topic,) = world.ask(METADATA, 12, topics=[{"name": None, "topic_id": other}]).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (29, None, other)


def test_operations_are_told_as_far_as_they_are_allowed_s57(world: World) -> None:
    world.allow((READ, TOPIC, "t"), (WRITE, TOPIC, "t"))
    facts: dict[str, Any] = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    answer = world.ask(METADATA, 10, topics=[{"name": "t"}, {"name": "other"}], **facts)
    assert [topic.topic_authorized_operations for topic in answer.topics] == [bits(READ, WRITE, DESCRIBE), NOT_ASKED]
    assert answer.cluster_authorized_operations == 0
    world.allow((DESCRIBE, CLUSTER, KAFKA), (CREATE, CLUSTER, KAFKA))
    assert world.ask(METADATA, 10, topics=[], **facts).cluster_authorized_operations == bits(DESCRIBE, CREATE)
    described = world.ask(60, 0, include_cluster_authorized_operations=True)
    assert described.cluster_authorized_operations == bits(DESCRIBE, CREATE)
    assert world.ask(60, 0).cluster_authorized_operations == NOT_ASKED


def test_described_partitions_leave_out_what_may_not_be_described(world: World) -> None:
    world.allow((DESCRIBE, TOPIC, "t"))
    assert topics_of(world.ask(75, 0, response_partition_limit=9)) == {"t": 0}
    named = world.ask(75, 0, response_partition_limit=9, topics=[{"name": "t"}, {"name": "other"}])
    assert topics_of(named) == {"t": 0, "other": 29}
    assert [topic.topic_authorized_operations for topic in named.topics if not topic.error_code] == [bits(DESCRIBE)]


# Records


def produce(world: World, *topics: str, acks: int = -1, user: str = ALICE) -> dict[str, int]:
    records = batch_of(world.broker, 1)
    data = [{"name": name, "partition_data": [{"index": 0, "records": records}]} for name in topics]
    answer = world.ask(PRODUCE, 9, user=user, acks=acks, topic_data=data)
    return {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}


def test_a_batch_for_an_allowed_topic_is_taken_beside_one_that_is_denied(world: World) -> None:
    world.allow((WRITE, TOPIC, "t"))
    assert produce(world, "t", "other", "absent") == {"t": 0, "other": 29, "absent": 29}


def test_a_topic_by_its_id_is_written_to_by_the_rules_of_its_name(world: World) -> None:
    t, other = topic_id(world, "t"), topic_id(world, "other")
    world.allow((WRITE, TOPIC, "t"))
    records = batch_of(world.broker, 1)
    data = [{"topic_id": one, "partition_data": [{"index": 0, "records": records}]} for one in (t, other)]
    answer = world.ask(PRODUCE, 13, acks=-1, topic_data=data)
    told = {topic.topic_id: topic.partition_responses[0].error_code for topic in answer.responses}
    assert told == {t: 0, other: 29}


def test_without_acks_a_denied_batch_costs_the_connection_s58(world: World) -> None:
    with pytest.raises(CloseConnection, match="refused"):
        produce(world, "t", acks=0)


def fetch(world: World, **facts: Any) -> Any:
    return world.ask(FETCH, 12, max_bytes=100, **facts)


def partitions_of(answer: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in answer.responses}


def of_topic(name: str) -> dict[str, Any]:
    return {"topic": name, "partitions": [{"partition": 0, "partition_max_bytes": 100, "current_leader_epoch": -1}]}


def test_an_open_fetch_session_ends_to_give_records_when_a_rule_goes(world: World) -> None:
    world.allow((READ, TOPIC, "t"))
    first = fetch(world, session_epoch=0, topics=[of_topic("t"), of_topic("other")])
    assert partitions_of(first) == {"t": 0, "other": 29}
    again: dict[str, Any] = {"session_id": first.session_id, "session_epoch": 1, "max_wait": 0}
    assert partitions_of(fetch(world, **again)) == {"other": 29}
    world.forget()
    assert partitions_of(fetch(world, **again | {"session_epoch": 2})) == {"t": 29, "other": 29}


def test_a_long_poll_that_waits_is_denied_when_records_come(world: World) -> None:
    world.allow((READ, TOPIC, "t"))
    world.broker.principal = ALICE
    waiting = world.broker.begin(FETCH, 12, max_bytes=100, max_wait=60_000, min_bytes=1, topics=[of_topic("t")])
    world.broker.turn()
    world.forget()
    assert not waiting.done()
    produce(world, "t", user=ROOT)
    assert partitions_of(world.broker.finish(waiting)) == {"t": 29}


def test_a_follower_needs_a_cluster_action_s80(world: World) -> None:
    world.allow((READ, TOPIC, "t"))
    assert partitions_of(fetch(world, replica_id=2, topics=[of_topic("t")])) == {"t": 29}
    world.allow((Operation.CLUSTER_ACTION, CLUSTER, KAFKA))
    assert partitions_of(fetch(world, replica_id=2, topics=[of_topic("t")])) != {"t": 29}


def lend(world: World) -> Any:
    """To alice, who may read."""
    produce(world, "t", user=ROOT)
    partition = world.broker.parts.partitions.get("t", 0)
    here: dict[str, Any] = {
        "topic": "t",
        "end_offset": 1,
        "current_leader_epoch": -1,
        "boot_id": partition.log.disk.boot_id(),
    }
    lent = world.ask(10_001, 0, **here)
    assert (lent.error_code, bool(lent.lease_id)) == (0, True), lent.error_message
    return lent


def test_a_lease_ends_when_its_reader_may_not_read_any_more(world: World) -> None:
    world.allow((READ, TOPIC, "t"))
    lent = lend(world)
    assert world.ask(10_002, 0, lease_id=lent.lease_id).error_code == 0
    world.forget()
    assert world.ask(10_002, 0, lease_id=lent.lease_id).error_code == 29
    assert len(world.broker.parts.read_leases) == 0


@pytest.mark.parametrize("is_over", [False, True])
def test_a_lease_is_kept_and_ended_by_its_reader_alone_s89(world: World, *, is_over: bool) -> None:
    world.allow((READ, TOPIC, "t"))
    lent = lend(world)
    for user in ("User:bob", ROOT):
        answer = world.ask(10_002, 0, user=user, lease_id=lent.lease_id, is_over=is_over)
        assert answer.error_code == ErrorCode.RESOURCE_NOT_FOUND
    assert len(world.broker.parts.read_leases) == 1
    assert world.ask(10_002, 0, lease_id=lent.lease_id, is_over=is_over).error_code == 0


# Topics


def test_deleted_topics_by_id_tell_their_name_to_those_who_may_describe_them_s58(world: World) -> None:
    t, other = topic_id(world, "t"), topic_id(world, "other")
    world.allow((DESCRIBE, TOPIC, "t"))
    answer = world.ask(20, 6, topics=[{"name": None, "topic_id": t}, {"name": None, "topic_id": other}])
    assert {(one.error_code, one.name) for one in answer.responses} == {(29, "t"), (29, None)}
    world.allow((DELETE, TOPIC, "other"))
    assert {one.error_code for one in world.ask(20, 6, topics=[{"name": "other"}, {"name": "t"}]).responses} == {0, 29}
    assert topics_of(world.ask(METADATA, 12, user=ROOT, topics=[{"name": "t"}])) == {"t": 0}


def test_configs_of_a_new_topic_are_told_to_those_who_may_describe_them_s58(world: World) -> None:
    new = {"num_partitions": 1, "replication_factor": 1}
    world.allow((CREATE, CLUSTER, KAFKA), (Operation.DESCRIBE_CONFIGS, TOPIC, "b"))
    first, second = world.ask(19, 7, topics=[new | {"name": "a"}, new | {"name": "b"}]).topics
    assert (first.error_code, first.topic_config_error_code, first.configs) == (0, 29, ())
    assert (second.error_code, second.topic_config_error_code, bool(second.configs)) == (0, 0, True)


def test_adding_partitions_adds_all_or_none_s58(world: World) -> None:
    world.allow((WRITE, TRANSACTIONAL_ID, "x"), (WRITE, TOPIC, "t"))
    names = ["t", "other", "__consumer_offsets"]
    answer = world.ask(
        24,
        3,
        v3_and_below_transactional_id="x",
        v3_and_below_topics=[{"name": name, "partitions": [0]} for name in names],
    )
    told = {one.name: one.results_by_partition[0].partition_error_code for one in answer.results_by_topic_v3_and_below}
    assert told == {"t": ErrorCode.OPERATION_NOT_ATTEMPTED, "other": 29, "__consumer_offsets": 29}


# Groups


def commit(world: World, *topics: str, user: str = ROOT) -> dict[str, int]:
    partition = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1}
    answer = world.ask(
        8,
        8,
        user=user,
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[{"name": name, "partitions": [partition]} for name in topics],
    )
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def test_offsets_are_committed_and_fetched_by_topic_s58(world: World) -> None:
    world.allow((READ, GROUP, "g"), (READ, TOPIC, "t"))
    assert commit(world, "t", "other", "absent", user=ALICE) == {"t": 0, "other": 29, "absent": 29}
    assert commit(world, "other") == {"other": 0}
    asked = [{"name": name, "partition_indexes": [0]} for name in ("t", "other")]
    (group,) = world.ask(9, 8, groups=[{"group_id": "g", "topics": asked}]).groups
    told = {topic.name: topic.partitions[0] for topic in group.topics}
    assert {name: (one.error_code, one.committed_offset) for name, one in told.items()} == {
        "t": (0, 5),
        "other": (29, -1),
    }
    (every,) = world.ask(9, 8, groups=[{"group_id": "g", "topics": None}]).groups
    assert [topic.name for topic in every.topics] == ["t"]


def test_offsets_are_deleted_of_topics_that_may_be_read_s58(world: World) -> None:
    commit(world, "t", "other")
    world.allow((DELETE, GROUP, "g"), (READ, TOPIC, "t"))
    topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in ("t", "other")]
    answer = world.ask(47, 0, group_id="g", topics=topics)
    assert answer.error_code == 0
    assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {"t": 0, "other": 29}


def test_groups_are_listed_as_far_as_they_may_be_described_s58(world: World) -> None:
    commit(world, "t")
    assert world.ask(16, 3).groups == ()
    world.allow((DESCRIBE, GROUP, "g"))
    assert [group.group_id for group in world.ask(16, 3).groups] == ["g"]
    world.forget()
    world.allow((DESCRIBE, CLUSTER, KAFKA))
    assert [group.group_id for group in world.ask(16, 3).groups] == ["g"]
    world.allow((Operation.READ, GROUP, "g"))
    (group,) = world.ask(15, 5, groups=["g"], include_authorized_operations=True).groups
    assert group.authorized_operations == bits(READ, DESCRIBE)


def test_a_regular_expression_stands_for_topics_that_may_be_described(world: World) -> None:
    world.allow((READ, GROUP, "c"), (READ, TOPIC, "t"))

    def heartbeat(epoch: int, **facts: Any) -> Any:
        return world.ask(68, 1, group_id="c", member_id="m", member_epoch=epoch, topic_partitions=[], **facts)

    joined = heartbeat(0, subscribed_topic_regex=".*", rebalance_timeout=60_000)
    assert joined.error_code == 0

    def assigned() -> set[str]:
        answer = heartbeat(0, subscribed_topic_regex=".*", rebalance_timeout=60_000)
        topics = () if answer.assignment is None else answer.assignment.topic_partitions
        names = world.broker.parts.metadata.image.topic_names
        return {names[topic.topic_id.bytes] for topic in topics}

    world.broker.run_until(lambda: bool(assigned()))
    assert assigned() == {"t"}


# Rules


def rule(**facts: Any) -> dict[str, Any]:
    good = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:a", "host": "*"}
    return {**good, "operation": 3, "permission_type": 3, **facts}


@pytest.mark.parametrize(
    "bad",
    [
        {"resource_type": 4, "resource_name": "other"},
        {"resource_name": ""},
        {"principal": "alice"},
        {"operation": 99},
        {"operation": 1},
        {"resource_type": 1},
        {"resource_pattern_type": 2},
        {"permission_type": 1},
    ],
)
def test_what_cannot_be_a_rule_is_an_invalid_request_beside_others_s54(world: World, bad: dict[str, Any]) -> None:
    answer = world.ask(CREATE_ACLS, 3, user=ROOT, creations=[rule(**bad), rule(), rule()])
    assert [one.error_code for one in answer.results] == [42, 0, 0]
    found = world.ask(DESCRIBE_ACLS, 3, user=ROOT, **EVERY).resources
    assert [(one.resource_name, len(one.acls)) for one in found] == [("t", 1)]


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_a_number_0_ends_the_connection_s54(world: World, field: str) -> None:
    with pytest.raises(CloseConnection):
        world.ask(CREATE_ACLS, 3, user=ROOT, creations=[rule(**{field: 0})])


def test_rules_are_found_by_filters_s55(world: World) -> None:
    world.allow((READ, TOPIC, "abc"), (WRITE, TOPIC, "*"))
    world.allow((READ, TOPIC, "ab"), kind=PatternType.PREFIXED)

    def found(**facts: Any) -> set[tuple[str, int]]:
        answer = world.ask(DESCRIBE_ACLS, 3, user=ROOT, **EVERY | facts)
        return {(one.resource_name, one.pattern_type) for one in answer.resources}

    assert found() == {("abc", 3), ("*", 3), ("ab", 4)}
    assert found(resource_name_filter="abc", pattern_type_filter=2) == {("abc", 3), ("*", 3), ("ab", 4)}
    assert found(resource_name_filter="abd", pattern_type_filter=2) == {("*", 3), ("ab", 4)}
    assert found(resource_name_filter="ab") == {("ab", 4)}
    assert found(pattern_type_filter=4) == {("ab", 4)}
    assert found(operation=WRITE) == {("*", 3)}
    assert found(principal_filter="User:bob") == set()
    assert found(operation=99) == set(), "a number that nobody knows"


def test_filters_that_look_at_every_rule_are_few_s89(world: World) -> None:
    named = EVERY | {"resource_name_filter": "t"}
    answer = world.ask(DELETE_ACLS, 3, user=ROOT, filters=[named] * 1000)
    assert {one.error_code for one in answer.filter_results} == {0}
    answer = world.ask(DELETE_ACLS, 3, user=ROOT, filters=[EVERY] * 101)
    assert {one.error_code for one in answer.filter_results} == {ErrorCode.POLICY_VIOLATION}


def test_deleted_rules_are_told_and_gone_for_good(world: World) -> None:
    world.allow((READ, TOPIC, "t"), (WRITE, TOPIC, "t"))
    answer = world.ask(DELETE_ACLS, 3, user=ROOT, filters=[EVERY | {"operation": READ}, EVERY | {"operation": 9}])
    assert [[acl.operation for acl in one.matching_acls] for one in answer.filter_results] == [[READ], []]
    world.broker.restart()
    (left,) = world.ask(DESCRIBE_ACLS, 3, user=ROOT, **EVERY).resources
    assert [acl.operation for acl in left.acls] == [WRITE]
    assert produce(world, "t") == {"t": 0}, "and hold after a restart"


def test_rules_wait_for_the_level_at_which_every_broker_keeps_them(world: World) -> None:
    lowered = world.broker.parts.metadata.change(
        lambda image: replace(image, features=Features({LAMINA_VERSION: 1}, image.features.epoch))
    )
    world.broker.parts.loop.run_until_complete(lowered)
    (told,) = world.ask(CREATE_ACLS, 3, user=ROOT, creations=[rule()]).results
    assert told.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "lamina features upgrade lamina.version=2" in told.error_message


# Who asks


def test_a_denial_stands_against_what_is_allowed_but_not_against_a_super_user_s51(world: World) -> None:
    world.allow((ALL, TOPIC, "*"))
    assert produce(world, "t") == {"t": 0}
    world.deny((WRITE, TOPIC, "t"), user="User:*", kind=PatternType.PREFIXED)
    assert produce(world, "t", "other") == {"t": 29, "other": 0}
    assert produce(world, "t", user=ROOT) == {"t": 0}
    assert produce(world, "t", user=ANONYMOUS) == {"t": 29}


def test_an_address_is_compared_as_java_writes_it_s51() -> None:
    assert host_of("10.0.0.1:9092") == "10.0.0.1"
    assert host_of("[::1]:9092") == "0:0:0:0:0:0:0:1"
    assert host_of("[2001:db8::ff]:1") == "2001:db8:0:0:0:0:0:ff"
    assert host_of("[::ffff:10.0.0.1]:1") == "10.0.0.1"
    assert host_of("no address:1") == "no address"


def test_without_an_authorizer_everybody_may_do_everything(world: World) -> None:
    world.broker.restart(**{"authorizer.class.name": ""})
    assert produce(world, "t") == {"t": 0}
    assert codes(world.ask(DESCRIBE_ACLS, 3, **EVERY)) == {ErrorCode.SECURITY_DISABLED}


def test_where_no_rule_is_about_something_everybody_may_use_it_if_that_is_set_s51(world: World) -> None:
    world.broker.restart(**{"allow.everyone.if.no.acl.found": "true"})
    world.allow((READ, TOPIC, "other"), user="User:bob")
    assert produce(world, "t", "other") == {"t": 0, "other": 29}


# The audit


def audited(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    told = [json.loads(record.getMessage()) for record in caplog.records if record.name == "lamina.audit"]
    caplog.clear()
    return told


def test_what_is_denied_is_a_line_of_json_s59(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.allow((READ, TOPIC, "t"))
    with caplog.at_level(logging.INFO, "lamina.audit"):
        produce(world, "t")
        (told,) = audited(caplog)
        assert told == {
            "event": "authorization",
            "decision": "denied",
            "principal": ALICE,
            "host": "127.0.0.1",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource": "t",
            "request": "Produce",
            "listener": "PLAINTEXT",
            "client_id": "test",
            "rule": "no rule allows it",
        }
        world.ask(METADATA, 12, topics=None)
        assert audited(caplog) == [], "what is only left out of a list is not told"
        world.deny((WRITE, TOPIC, "t"), user="User:*")
        produce(world, "t")
        (told,) = audited(caplog)
        assert told["rule"] == "DENY User:* WRITE from * on LITERAL t"


def test_of_one_request_a_hundred_denials_are_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    names = [f"no-{number}" for number in range(300)]
    with caplog.at_level(logging.INFO, "lamina.audit"):
        partition = {"partition_index": 0, "timestamp": -1}
        asked = [{"name": name, "partitions": [partition]} for name in ("t", *names)]
        world.allow((DESCRIBE, TOPIC, "t"))
        answer = world.ask(2, 7, topics=asked)
        assert [topic.partitions[0].error_code for topic in answer.topics] == [0] + [29] * 300
        told = audited(caplog)
        assert len(told) == 100
        assert [one.get("further") for one in told if "further" in one] == ["denials of this request are not told"]
        described = world.ask(METADATA, 12, topics=[{"name": name} for name in ("t", *names)])
        assert topics_of(described) == {"t": 0} | dict.fromkeys(names, 29)
        assert len(audited(caplog)) == 100
        assert produce(world, "t") == {"t": 29}
        assert len(audited(caplog)) == 1, "another request"


def test_equal_denials_of_one_request_are_told_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lamina.audit"):
        partition = {"partition_index": 0, "timestamp": -1}
        asked = [{"name": name, "partitions": [partition]} for name in ["t", "other"] * 150]
        world.ask(2, 7, topics=asked)
        assert [told["resource"] for told in audited(caplog)] == ["t", "other"]
        world.ask(2, 7, topics=asked)
        assert [told["resource"] for told in audited(caplog)] == ["t", "other"]


def test_of_a_long_name_the_beginning_is_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lamina.audit"):
        partition = {"partition_index": 0, "timestamp": -1}
        world.ask(2, 7, topics=[{"name": "n" * 20_000, "partitions": [partition]}])
        (told,) = audited(caplog)
        assert told["resource"] == "n" * 249 + "…"


def test_what_is_allowed_is_told_when_debugging_each_time(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.allow((WRITE, TOPIC, "t"))
    with caplog.at_level(logging.DEBUG, "lamina.audit"):
        for _ in range(2):
            produce(world, "t")
            (told,) = audited(caplog)
            assert (told["decision"], told["rule"]) == ("allowed", "ALLOW User:alice WRITE from * on LITERAL t")


def test_the_level_of_the_audit_changes_while_decisions_are_kept(
    world: World, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: logging.getLogger("lamina.audit").setLevel(logging.NOTSET))
    world.allow((WRITE, TOPIC, "t"))
    produce(world, "t")
    level = {"name": "lamina.audit", "config_operation": 0, "value": "DEBUG"}
    node = str(world.broker.parts.metadata.node_id)
    world.ask(44, 1, user=ROOT, resources=[{"resource_type": 8, "resource_name": node, "configs": [level]}])
    audited(caplog)
    produce(world, "t")
    assert [told["decision"] for told in audited(caplog)] == ["allowed"]
