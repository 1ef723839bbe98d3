"""Every API by a user without rules, and by one with those that it takes (S58)."""

from typing import Any, NamedTuple

import pytest

from lamina.broker.requests.api_table import APIS
from lamina.broker.requests.authorization.apis import ASKING_THEMSELVES, GUARDS, OPEN
from lamina.broker.requests.cluster_apis import APIS_BETWEEN_BROKERS
from lamina.security.acls import Operation
from tests.broker.in_process import batch_of
from tests.broker.requests.authorization.world import (
    AUTHORIZATION,
    CLUSTER,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    Rule,
    World,
    codes,
)

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE, ALL = Operation.ALTER, Operation.DESCRIBE, Operation.ALL
ALTER_CONFIGS, DESCRIBE_CONFIGS = Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS
KAFKA = "kafka-cluster"
T29, G30, C31, X53 = {29}, {30}, {31}, {53}


class Case(NamedTuple):
    name: str
    key: int
    version: int
    facts: dict[str, Any]
    rules: list[Rule]
    denied: set[int]


def on_cluster(operation: Operation) -> list[Rule]:
    return [(operation, CLUSTER, KAFKA)]


def of_topic(name: str, **partition: Any) -> dict[str, Any]:
    return {"topics": [{"name": name, "topic": name, "partitions": [partition]}]}


OFFSET = {"partition_index": 0, "committed_offset": 0, "committed_leader_epoch": -1}
CASES = [
    Case("Produce", 0, 9, {"acks": -1, "topic": "t"}, [(WRITE, TOPIC, "t")], T29),
    Case("Fetch", 1, 12, of_topic("t", partition=0, partition_max_bytes=9), [(READ, TOPIC, "t")], T29),
    Case("ListOffsets", 2, 7, of_topic("t", partition_index=0, timestamp=-1), [(DESCRIBE, TOPIC, "t")], T29),
    Case("Metadata", 3, 12, {"topics": [{"name": "t"}]}, [(DESCRIBE, TOPIC, "t")], T29),
    Case(
        "Metadata creating",
        3,
        12,
        {"topics": [{"name": "new"}], "allow_auto_topic_creation": True},
        [(DESCRIBE, TOPIC, "new"), (CREATE, TOPIC, "new")],
        T29,
    ),
    Case(
        "OffsetCommit",
        8,
        9,
        {"group_id": "g", **of_topic("t", **OFFSET)},
        [(READ, GROUP, "g"), (READ, TOPIC, "t")],
        G30,
    ),
    Case(
        "OffsetFetch",
        9,
        8,
        {"groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]},
        [(DESCRIBE, GROUP, "g"), (DESCRIBE, TOPIC, "t")],
        G30,
    ),
    Case(
        "OffsetFetch of one group",
        9,
        7,
        {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]},
        [(DESCRIBE, GROUP, "g"), (DESCRIBE, TOPIC, "t")],
        G30,
    ),
    Case("FindCoordinator", 10, 4, {"coordinator_keys": ["g"]}, [(DESCRIBE, GROUP, "g")], G30),
    Case("FindCoordinator of one", 10, 3, {"key": "g"}, [(DESCRIBE, GROUP, "g")], G30),
    Case(
        "FindCoordinator of transactions",
        10,
        4,
        {"key_type": 1, "coordinator_keys": ["x"]},
        [(DESCRIBE, TRANSACTIONAL_ID, "x")],
        X53,
    ),
    Case("JoinGroup", 11, 5, {"group_id": "g", "protocol_type": "consumer"}, [(READ, GROUP, "g")], G30),
    Case("Heartbeat", 12, 4, {"group_id": "g"}, [(READ, GROUP, "g")], G30),
    Case("LeaveGroup", 13, 4, {"group_id": "g", "members": [{"member_id": "m"}]}, [(READ, GROUP, "g")], G30),
    Case(
        "SyncGroup",
        14,
        5,
        {"group_id": "g", "protocol_type": "consumer", "protocol_name": "range"},
        [(READ, GROUP, "g")],
        G30,
    ),
    Case("DescribeGroups", 15, 5, {"groups": ["g"]}, [(DESCRIBE, GROUP, "g")], G30),
    Case(
        "CreateTopics",
        19,
        7,
        {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}]},
        [(CREATE, TOPIC, "new")],
        T29,
    ),
    Case(
        "CreateTopics by the cluster",
        19,
        7,
        {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}]},
        on_cluster(CREATE),
        T29,
    ),
    Case("DeleteTopics", 20, 5, {"topic_names": ["t"]}, [(DELETE, TOPIC, "t")], T29),
    Case("DeleteTopics by the cluster", 20, 6, {"topics": [{"name": "t"}]}, on_cluster(DELETE), T29),
    Case("DeleteRecords", 21, 2, of_topic("t", partition_index=0, offset=0), [(DELETE, TOPIC, "t")], T29),
    Case("InitProducerId", 22, 4, {"transactional_id": "x"}, [(WRITE, TRANSACTIONAL_ID, "x")], X53),
    Case("InitProducerId idempotent", 22, 4, {}, on_cluster(Operation.IDEMPOTENT_WRITE), C31),
    Case("InitProducerId of a writer s53", 22, 4, {}, [(WRITE, TOPIC, "any")], C31),
    Case("OffsetForLeaderEpoch", 23, 4, of_topic("t", partition=0), [(DESCRIBE, TOPIC, "t")], T29),
    Case(
        "AddPartitionsToTxn",
        24,
        3,
        {"v3_and_below_transactional_id": "x", "v3_and_below_topics": [{"name": "t", "partitions": [0]}]},
        [(WRITE, TRANSACTIONAL_ID, "x"), (WRITE, TOPIC, "t")],
        X53,
    ),
    Case(
        "AddPartitionsToTxn of a broker",
        24,
        4,
        {"transactions": [{"transactional_id": "x", "topics": [{"name": "t", "partitions": [0]}]}]},
        on_cluster(Operation.CLUSTER_ACTION),
        C31,
    ),
    Case(
        "AddOffsetsToTxn",
        25,
        3,
        {"transactional_id": "x", "group_id": "g"},
        [(WRITE, TRANSACTIONAL_ID, "x"), (READ, GROUP, "g")],
        X53,
    ),
    Case("EndTxn", 26, 4, {"transactional_id": "x"}, [(WRITE, TRANSACTIONAL_ID, "x")], X53),
    Case(
        "WriteTxnMarkers",
        27,
        1,
        {"markers": [{"topics": [{"name": "t", "partition_indexes": [0]}]}]},
        on_cluster(Operation.CLUSTER_ACTION),
        C31,
    ),
    Case(
        "WriteTxnMarkers of an administrator",
        27,
        1,
        {"markers": [{"topics": [{"name": "t", "partition_indexes": [0]}]}]},
        on_cluster(ALTER),
        C31,
    ),
    Case(
        "TxnOffsetCommit",
        28,
        3,
        {"transactional_id": "x", "group_id": "g", **of_topic("t", **OFFSET)},
        [(WRITE, TRANSACTIONAL_ID, "x"), (READ, GROUP, "g"), (READ, TOPIC, "t")],
        X53,
    ),
    Case(
        "DescribeAcls",
        29,
        3,
        {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1},
        on_cluster(DESCRIBE),
        C31,
    ),
    Case(
        "CreateAcls",
        30,
        3,
        {
            "creations": [
                {
                    "resource_type": 2,
                    "resource_name": "a",
                    "resource_pattern_type": 3,
                    "principal": "User:a",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ]
        },
        on_cluster(ALTER),
        C31,
    ),
    Case(
        "DeleteAcls",
        31,
        3,
        {
            "filters": [
                {
                    "resource_type_filter": 6,
                    "pattern_type_filter": 1,
                    "operation": 1,
                    "permission_type": 1,
                }
            ]
        },
        on_cluster(ALTER),
        C31,
    ),
    *(
        Case(
            f"DescribeConfigs {kind}",
            32,
            4,
            {"resources": [{"resource_type": kind, "resource_name": name}]},
            rules,
            denied,
        )
        for kind, name, rules, denied in (
            (2, "t", [(DESCRIBE_CONFIGS, TOPIC, "t")], T29),
            (32, "g", [(DESCRIBE_CONFIGS, GROUP, "g")], G30),
            (4, "", on_cluster(DESCRIBE_CONFIGS), C31),
            (8, "0", on_cluster(DESCRIBE_CONFIGS), C31),
        )
    ),
    *(
        Case(
            f"{api} {kind}",
            key,
            1,
            {"resources": [{"resource_type": kind, "resource_name": name}], "validate_only": True},
            rules,
            denied,
        )
        for api, key in (("AlterConfigs", 33), ("IncrementalAlterConfigs", 44))
        for kind, name, rules, denied in (
            (2, "t", [(ALTER_CONFIGS, TOPIC, "t")], T29),
            (32, "g", [(ALTER_CONFIGS, GROUP, "g")], G30),
            (4, "", on_cluster(ALTER_CONFIGS), C31),
        )
    ),
    Case(
        "AlterReplicaLogDirs",
        34,
        2,
        {"dirs": [{"path": "/x", "topics": [{"name": "t", "partitions": [0]}]}]},
        on_cluster(ALTER),
        C31,
    ),
    Case("DescribeLogDirs", 35, 4, {}, on_cluster(DESCRIBE), C31),
    Case("CreatePartitions", 37, 3, {"topics": [{"name": "t", "count": 3}]}, [(ALTER, TOPIC, "t")], T29),
    Case("DeleteGroups", 42, 2, {"groups_names": ["g"]}, [(DELETE, GROUP, "g")], G30),
    Case("ElectLeaders", 43, 2, {"topic_partitions": [{"topic": "t", "partitions": [0]}]}, on_cluster(ALTER), C31),
    Case(
        "AlterPartitionReassignments",
        45,
        0,
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [0]}]}]},
        on_cluster(ALTER),
        C31,
    ),
    Case("ListPartitionReassignments", 46, 0, {"topics": None}, on_cluster(DESCRIBE), C31),
    Case(
        "OffsetDelete",
        47,
        0,
        {"group_id": "g", **of_topic("t", partition_index=0)},
        [(DELETE, GROUP, "g")],
        G30,
    ),
    Case("DescribeClientQuotas", 48, 1, {"components": [], "strict": False}, on_cluster(DESCRIBE_CONFIGS), C31),
    Case(
        "AlterClientQuotas",
        49,
        1,
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "a"}],
                    "ops": [{"key": "producer_byte_rate", "value": 9.0, "remove": False}],
                }
            ],
            "validate_only": True,
        },
        on_cluster(ALTER_CONFIGS),
        C31,
    ),
    Case("DescribeUserScramCredentials", 50, 0, {"users": [{"name": "a"}]}, on_cluster(DESCRIBE), C31),
    Case(
        "AlterUserScramCredentials",
        51,
        0,
        {"deletions": [{"name": "a", "mechanism": 1}]},
        on_cluster(ALTER),
        C31,
    ),
    Case("UpdateFeatures", 57, 1, {"feature_updates": []}, on_cluster(ALTER), C31),
    Case("DescribeProducers", 61, 0, {"topics": [{"name": "t", "partition_indexes": [0]}]}, [(READ, TOPIC, "t")], T29),
    Case("UnregisterBroker", 64, 0, {"broker_id": 7}, on_cluster(ALTER), C31),
    Case("DescribeTransactions", 65, 0, {"transactional_ids": ["x"]}, [(DESCRIBE, TRANSACTIONAL_ID, "x")], X53),
    Case(
        "ConsumerGroupHeartbeat",
        68,
        0,
        {"group_id": "g", "member_epoch": 5, "member_id": "m", "subscribed_topic_names": ["t"]},
        [(READ, GROUP, "g"), (DESCRIBE, TOPIC, "t")],
        G30,
    ),
    Case("ConsumerGroupDescribe", 69, 0, {"group_ids": ["g"]}, [(DESCRIBE, GROUP, "g")], G30),
    Case("ListConfigResources", 74, 1, {}, on_cluster(DESCRIBE_CONFIGS), C31),
    Case(
        "DescribeTopicPartitions",
        75,
        0,
        {"topics": [{"name": "t"}], "response_partition_limit": 9},
        [(DESCRIBE, TOPIC, "t")],
        T29,
    ),
    Case("LendSegments", 10_001, 0, {"topic": "t", "end_offset": 1}, [(READ, TOPIC, "t")], T29),
]


def facts_of(case: Case, world: World) -> dict[str, Any]:
    if case.name != "Produce":
        return case.facts
    records = batch_of(world.broker, 1)
    return {"acks": -1, "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_each_api_refuses_and_allows_s58(case: Case, world: World) -> None:
    facts = facts_of(case, world)
    assert codes(world.ask(case.key, case.version, **facts)) == case.denied
    # All but one of what it takes, without the first and without the last.
    for lacking in case.rules if len(case.rules) > 1 else ():
        world.allow(*(rule for rule in case.rules if rule != lacking))
        assert codes(world.ask(case.key, case.version, **facts)) & AUTHORIZATION, f"without {lacking}"
        world.forget()
    world.allow(*case.rules)
    assert not codes(world.ask(case.key, case.version, **facts)) & AUTHORIZATION


def test_no_api_is_forgotten() -> None:
    keys = {api.key for api in APIS_BETWEEN_BROKERS}
    assert keys <= set(GUARDS) | ASKING_THEMSELVES | OPEN
    tried = {case.key for case in CASES}
    filtering, for_brokers = {16, 60, 66, 10_002}, {api.key for api in APIS_BETWEEN_BROKERS} - {api.key for api in APIS}
    assert keys - tried - OPEN == filtering | for_brokers
