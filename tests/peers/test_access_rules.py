"""Access rules on a real Kafka and on Lamina: the same rules, the same requests, by a user who may and who may not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lamina.cluster.ports import free_port
from lamina.security.acls import Operation
from tests.broker.requests.authorization.test_apis import CASES, Case
from tests.broker.requests.authorization.world import (
    AUTHORIZATION,
    CLUSTER,
    GROUP,
    ROOT,
    TOPIC,
    TRANSACTIONAL_ID,
    Rule,
    codes,
)
from tests.peers.access_rules_answers import told_by
from tests.peers.access_rules_world import (
    CLOSED,
    CREATE_TOPICS,
    RemoteBroker,
    RemoteWorld,
    secured_settings,
    topic,
    two_ports,
)
from tests.peers.kafka import Kafka, run_tool
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

Worlds = tuple[RemoteWorld, RemoteWorld]
OURS_FIRST_KEY = 10_000
DIFFERENT = {
    "AlterConfigs 4": "Kafka does not take back what was set on all brokers by this request",
    "Metadata creating": "Lamina has made the topic when it answers",
    "InitProducerId idempotent": "Kafka has yet to ask for its first block of ids",
    "InitProducerId of a writer s53": "Kafka has yet to ask for its first block of ids",
}
"""What is told to who may: here only that it is no denial."""


class SecuredLamina(Lamina):
    def __init__(self, root: Any, plain_port: int, login_port: int) -> None:
        super().__init__(root, secured_settings(plain_port, login_port))
        self._port = plain_port
        at = self._command.index("--listen")
        del self._command[at : at + 2]


class SecuredKafka(Kafka):
    def __init__(self, root: Any, plain_port: int, login_port: int) -> None:
        controller = free_port()
        settings = secured_settings(plain_port, login_port, f"CONTROLLER://127.0.0.1:{controller}")
        super().__init__(root, settings, controller_port=controller)
        self._port = plain_port


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SecuredLamina, int]]:
    plain_port, login_port = two_ports()
    lamina = SecuredLamina(tmp_path_factory.mktemp("lamina"), plain_port, login_port)
    with lamina:
        yield lamina, login_port
        lamina.stop()
    assert "Traceback" not in lamina.logged()


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory, ours: tuple[SecuredLamina, int]) -> Iterator[Worlds]:
    """Kafka first, and Lamina."""
    plain_port, login_port = two_ports()
    with SecuredKafka(tmp_path_factory.mktemp("kafka"), plain_port, login_port):
        both = (RemoteWorld(RemoteBroker(login_port)), RemoteWorld(RemoteBroker(ours[1])))
        yield both
        for world in both:
            world.remote.close()


def asked(world: RemoteWorld, case: Case) -> set[int] | str:
    facts = case.facts
    if case.name == "Produce":
        partition = {"index": 0, "records": world.remote.batch()}
        facts = {"acks": -1, "topic_data": [{"name": "t", "partition_data": [partition]}]}
    answer = world.ask(case.key, case.version, **facts)
    return answer if answer == CLOSED else {int(code) for code in codes(answer)}


def told(world: RemoteWorld, case: Case) -> dict[str, set[int] | str]:
    """Without rules, without each of them, and with all."""
    world.ask(CREATE_TOPICS, 7, user=ROOT, topics=[topic("t", 2)])
    answers = {"nothing": asked(world, case)}
    for lacking in case.rules if len(case.rules) > 1 else ():
        world.allow(*(rule for rule in case.rules if rule != lacking))
        answers[f"all but {lacking}"] = asked(world, case)
        world.forget()
    world.allow(*case.rules)
    answers["everything"] = asked(world, case)
    world.forget()
    return answers


@pytest.mark.parametrize("case", [case for case in CASES if case.key < OURS_FIRST_KEY], ids=lambda case: case.name)
def test_both_refuse_and_allow_the_same_s58(worlds: Worlds, case: Case) -> None:
    kafkas, lamina = (told(world, case) for world in worlds)
    if case.name in DIFFERENT:
        for answers in (kafkas, lamina):
            allowed = answers["everything"]
            assert isinstance(allowed, set)
            answers["everything"] = allowed & AUTHORIZATION
    assert lamina == kafkas


READ, WRITE, DESCRIBE, DELETE = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE
OFFSET = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1}
NAMES = ("t", "other", "absent")
MIXED: dict[str, tuple[int, int, dict[str, Any], list[Rule]]] = {
    "Metadata of all": (3, 12, {"topics": None}, [(READ, TOPIC, "t")]),
    "Metadata by name": (
        3,
        10,
        {
            "topics": [{"name": name} for name in NAMES],
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        },
        [(READ, TOPIC, "t"), (DESCRIBE, TOPIC, "absent"), (DESCRIBE, CLUSTER, "kafka-cluster")],
    ),
    "Metadata without the cluster": (
        3,
        10,
        {"topics": [], "include_cluster_authorized_operations": True},
        [(Operation.CREATE, CLUSTER, "kafka-cluster")],
    ),
    "ListOffsets": (
        2,
        7,
        {"topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]} for name in NAMES]},
        [(DESCRIBE, TOPIC, "t")],
    ),
    "OffsetCommit": (
        8,
        8,
        {
            "group_id": "g2",
            "generation_id_or_member_epoch": -1,
            "topics": [{"name": name, "partitions": [OFFSET]} for name in NAMES],
        },
        [(READ, GROUP, "g2"), (READ, TOPIC, "t")],
    ),
    "OffsetFetch": (
        9,
        8,
        {
            "groups": [
                {"group_id": "g2", "topics": [{"name": name, "partition_indexes": [0]} for name in NAMES]},
                {"group_id": "hidden", "topics": [{"name": "t", "partition_indexes": [0]}]},
            ]
        },
        [(DESCRIBE, GROUP, "g2"), (DESCRIBE, TOPIC, "t")],
    ),
    "OffsetFetch of all topics": (
        9,
        8,
        {"groups": [{"group_id": "g2", "topics": None}]},
        [(DESCRIBE, GROUP, "g2"), (DESCRIBE, TOPIC, "other")],
    ),
    "OffsetDelete": (
        47,
        0,
        {
            "group_id": "g2",
            "topics": [{"name": n, "partitions": [{"partition_index": 0}]} for n in ("other", "absent")],
        },
        [(DELETE, GROUP, "g2"), (READ, TOPIC, "absent")],
    ),
    "FindCoordinator": (10, 4, {"coordinator_keys": ["g2", "hidden"]}, [(DESCRIBE, GROUP, "g2")]),
    "DescribeGroups": (
        15,
        5,
        {"groups": ["g2", "hidden"], "include_authorized_operations": True},
        [(READ, GROUP, "g2")],
    ),
    "ListGroups": (16, 3, {}, [(DESCRIBE, GROUP, "g2")]),
    "DescribeCluster": (60, 0, {"include_cluster_authorized_operations": True}, [(READ, TOPIC, "t")]),
    "CreateTopics": (
        19,
        7,
        {"topics": [topic("mine"), topic("theirs")], "validate_only": True},
        [(Operation.CREATE, TOPIC, "mine")],
    ),
    "CreatePartitions": (
        37,
        3,
        {"topics": [{"name": name, "count": 3} for name in NAMES], "validate_only": True},
        [(Operation.ALTER, TOPIC, "t"), (Operation.ALTER, TOPIC, "absent")],
    ),
    "DeleteTopics": (
        20,
        6,
        {"topics": [{"name": name} for name in NAMES]},
        [(DESCRIBE, TOPIC, "t"), (DELETE, TOPIC, "absent")],
    ),
    "DescribeConfigs": (
        32,
        4,
        {"resources": [{"resource_type": 2, "resource_name": name, "configuration_keys": []} for name in NAMES]},
        [(Operation.DESCRIBE_CONFIGS, TOPIC, "t"), (Operation.DESCRIBE_CONFIGS, TOPIC, "absent")],
    ),
    "DescribeTopicPartitions": (
        75,
        0,
        {"topics": [{"name": name} for name in NAMES], "response_partition_limit": 100},
        [(READ, TOPIC, "t"), (DESCRIBE, TOPIC, "absent")],
    ),
    "AddPartitionsToTxn": (
        24,
        3,
        {
            "v3_and_below_transactional_id": "x",
            "v3_and_below_topics": [{"name": name, "partitions": [0]} for name in (*NAMES, "__consumer_offsets")],
        },
        [(WRITE, TRANSACTIONAL_ID, "x"), (WRITE, TOPIC, "t"), (WRITE, TOPIC, "absent")],
    ),
    "DescribeTransactions": (
        65,
        0,
        {"transactional_ids": ["x", "hidden"]},
        [(DESCRIBE, TRANSACTIONAL_ID, "x")],
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_both_tell_the_same_of_what_is_allowed_in_part(worlds: Worlds, name: str) -> None:
    key, version, facts, rules = MIXED[name]

    def answer(world: RemoteWorld) -> Any:
        world.ask(CREATE_TOPICS, 7, user=ROOT, topics=[topic("t", 2), topic("other")])
        offsets = [{"name": one, "partitions": [OFFSET]} for one in ("t", "other")]
        committed = {"group_id": "g2", "generation_id_or_member_epoch": -1, "topics": offsets}
        world.ask(8, 8, user=ROOT, **committed)
        world.allow(*rules)
        told = told_by(world.ask(key, version, **facts))
        world.forget()
        return told

    kafkas, lamina = (answer(world) for world in worlds)
    assert lamina == kafkas


def acls(ours: tuple[SecuredLamina, int], *arguments: str) -> str:
    return run_tool("org.apache.kafka.tools.AclCommand", "--bootstrap-server", ours[0].bootstrap, *arguments)


def test_kafka_acls_adds_lists_and_removes(ours: tuple[SecuredLamina, int]) -> None:
    rule = ("--allow-principal", "User:tool", "--allow-host", "10.0.0.1", "--operation", "Read", "--topic", "tool-")
    added = acls(ours, "--add", *rule, "--resource-pattern-type", "prefixed")
    assert "(principal=User:tool, host=10.0.0.1, operation=READ, permissionType=ALLOW)" in added
    acls(ours, "--add", "--allow-principal", "User:tool", "--producer", "--topic", "tool-topic")
    acls(ours, "--add", "--deny-principal", "User:tool", "--operation", "Write", "--topic", "tool-topic")
    acls(ours, "--add", "--allow-principal", "User:tool", "--operation", "All", "--cluster")
    matching = acls(ours, "--list", "--topic", "tool-topic", "--resource-pattern-type", "match")
    assert "patternType=PREFIXED" in matching
    assert (matching.count("permissionType=ALLOW"), matching.count("permissionType=DENY")) == (4, 1)
    everything = acls(ours, "--list", "--principal", "User:tool")
    assert "resourceType=CLUSTER, name=kafka-cluster" in everything
    acls(ours, "--remove", "--force", "--topic", "tool-", "--resource-pattern-type", "prefixed")
    assert "PREFIXED" not in acls(ours, "--list", "--principal", "User:tool")
    acls(ours, "--remove", "--force", "--topic", "tool-topic", "--resource-pattern-type", "any")
    acls(ours, "--remove", "--force", "--cluster")
    assert "permissionType" not in acls(ours, "--list", "--principal", "User:tool")
