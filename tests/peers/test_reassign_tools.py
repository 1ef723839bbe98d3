"""kafka-reassign-partitions of Kafka 4.1 against three Lamina brokers, and its files beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource, ConfigSource

from tests.broker.process import eventually
from tests.cli.running import Outcome, run_process
from tests.cluster.three_brokers import ALL, WAIT_SECONDS, ThreeBrokers
from tests.peers.driver import Record
from tests.peers.kafka import KafkaFailedError, driver_of, run_tool
from tests.peers.test_cluster_tools import describe, topics

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LARGE_BYTES = 900_000


def reassign(brokers: ThreeBrokers, *arguments: str) -> str:
    return run_tool(TOOL, "--bootstrap-server", brokers.bootstrap, *arguments)


def written(path: Path, topic: str, replicas: Mapping[int, Sequence[int]]) -> str:
    """A plan as the tool reads it."""
    partitions = [{"topic": topic, "partition": index, "replicas": list(ids)} for index, ids in replicas.items()]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def topic_configs(brokers: ThreeBrokers, topic: str) -> dict[str, str]:
    """Those that are set."""
    return configs_set(brokers, ConfigResource("topic", topic), ConfigSource.DYNAMIC_TOPIC_CONFIG)


def broker_configs(brokers: ThreeBrokers, broker_id: int) -> dict[str, str]:
    return configs_set(brokers, ConfigResource("broker", str(broker_id)), ConfigSource.DYNAMIC_BROKER_CONFIG)


def configs_set(brokers: ThreeBrokers, resource: ConfigResource, source: ConfigSource) -> dict[str, str]:
    entries = brokers.admin.describe_configs([resource])[resource].result(WAIT_SECONDS)
    return {name: str(entry.value) for name, entry in entries.items() if entry.source == source.value}


def create(brokers: ThreeBrokers, topic: str, assignment: str) -> None:
    topics(brokers, "--create", "--topic", topic, "--replica-assignment", assignment)


def test_a_topic_moves_by_the_plan_that_the_tool_makes(brokers: ThreeBrokers, topic: str, tmp_path: Path) -> None:
    create(brokers, topic, "1,1,1")
    with driver_of(brokers.bootstrap) as driver:
        driver.open_producer("producer", {})
        for partition in range(3):
            driver.send("producer", topic, [Record(b"key", b"value")] * 100, partition)
    chosen = tmp_path / "topics.json"
    chosen.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    told = reassign(brokers, "--topics-to-move-json-file", str(chosen), "--broker-list", "2,3", "--generate")
    plan = tmp_path / "plan.json"
    plan.write_text(told.split("Proposed partition reassignment configuration\n")[1])
    assert "Successfully started partition reassignments" in reassign(
        brokers, "--reassignment-json-file", str(plan), "--execute"
    )

    def is_complete() -> bool:
        verified = reassign(brokers, "--reassignment-json-file", str(plan), "--verify")
        return verified.count("is completed.") == 3

    eventually(is_complete, WAIT_SECONDS)
    rows = describe(brokers, topic)
    assert {row.replicas for row in rows.values()} == {(2,), (3,)}
    eventually(lambda: not any(brokers.replica(1, topic, index).exists() for index in range(3)), WAIT_SECONDS)
    with driver_of(brokers.bootstrap) as driver:
        driver.consume(f"{topic}-group", topic, 300)


def test_one_that_is_under_way_is_listed_and_cancelled(brokers: ThreeBrokers, topic: str, tmp_path: Path) -> None:
    """Whom the new replica would copy from is dead."""
    create(brokers, topic, "1")
    plan = written(tmp_path / "plan.json", topic, {0: [3, 2]})
    brokers.kill(1)
    eventually(lambda: brokers.leader(topic) == -1, WAIT_SECONDS)
    reassign(brokers, "--reassignment-json-file", plan, "--execute")
    assert f"{topic}-0: replicas: 3,2,1. adding: 3,2. removing: 1." in reassign(brokers, "--list")
    eventually(lambda: brokers.replica(3, topic).exists(), WAIT_SECONDS)
    assert "is still in progress" in reassign(brokers, "--reassignment-json-file", plan, "--verify")
    cancelled = reassign(brokers, "--reassignment-json-file", plan, "--cancel")
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in cancelled
    assert "No partition reassignments found." in reassign(brokers, "--list")
    eventually(lambda: not brokers.replica(3, topic).exists(), WAIT_SECONDS)
    brokers.restart(1)
    assert brokers.await_leader(topic) == 1
    assert describe(brokers, topic)[0].replicas == (1,)


def test_replicas_are_added_under_a_throttle_that_verify_takes_away(
    brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    """At first under one that lets next to nothing pass."""
    create(brokers, topic, "1")
    with driver_of(brokers.bootstrap) as driver:
        driver.open_producer("producer", {"max.request.size": str(2 * LARGE_BYTES)})
        for _ in range(4):
            driver.send("producer", topic, [Record(b"key", b"x" * LARGE_BYTES)], 0)
    plan = written(tmp_path / "plan.json", topic, {0: ALL})
    started = reassign(brokers, "--reassignment-json-file", plan, "--execute", "--throttle", "1000")
    assert "The inter-broker throttle limit was set to 1000 B/s" in started
    throttled = {name: value for name, value in topic_configs(brokers, topic).items() if "throttled" in name}
    assert throttled == {
        "leader.replication.throttled.replicas": "0:1",
        "follower.replication.throttled.replicas": "0:2,0:3",
    }
    copies = [brokers.replica(broker_id, topic) for broker_id in (2, 3)]
    eventually(lambda: all(copy.exists() for copy in copies), WAIT_SECONDS)
    assert "is still in progress" in reassign(brokers, "--reassignment-json-file", plan, "--verify")
    assert brokers.in_sync(topic) == [{1}]
    raised = reassign(brokers, "--reassignment-json-file", plan, "--execute", "--additional", "--throttle", "50000000")
    assert "The inter-broker throttle limit was set to 50000000 B/s" in raised
    brokers.await_in_sync(topic)

    def is_complete() -> bool:
        return "is completed." in reassign(brokers, "--reassignment-json-file", plan, "--verify")

    eventually(is_complete, WAIT_SECONDS)
    assert describe(brokers, topic)[0].replicas == ALL
    assert not any("throttled" in name for name in topic_configs(brokers, topic))
    assert not any("throttled.rate" in name for broker_id in ALL for name in broker_configs(brokers, broker_id))


def test_a_plan_of_lamina_is_verified_by_the_tool_and_one_of_the_tool_by_lamina(
    brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    """Each executes what the other has generated."""
    create(brokers, topic, "1,1,1,1")

    def lamina(*arguments: str | Path) -> Outcome:
        return run_process("topics", "reassign", *arguments, LAMINA_BOOTSTRAP_SERVERS=brokers.bootstrap)

    ours = tmp_path / "ours.json"
    ours.write_text(lamina("--generate", "--brokers", "2,3", topic).out)
    assert "Successfully started" in reassign(brokers, "--reassignment-json-file", str(ours), "--execute")
    assert lamina("--verify", "--wait", "--file", ours).status == 0
    assert reassign(brokers, "--reassignment-json-file", str(ours), "--verify").count("is completed.") == 4
    assert sorted(row.replicas for row in describe(brokers, topic).values()) == [(2,), (2,), (3,), (3,)]
    chosen = tmp_path / "topics.json"
    chosen.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    told = reassign(brokers, "--topics-to-move-json-file", str(chosen), "--broker-list", "1", "--generate")
    theirs = tmp_path / "theirs.json"
    theirs.write_text(told.split("Proposed partition reassignment configuration\n")[1])
    assert lamina("--execute", "--wait", "--throttle", "50MB", "--file", theirs).status == 0
    assert reassign(brokers, "--reassignment-json-file", str(theirs), "--verify").count("is completed.") == 4
    assert {row.replicas for row in describe(brokers, topic).values()} == {(1,)}
    assert lamina("--generate", "--brokers", "3", "--topics-file", chosen, "--json").objects[0]["new_replicas"] == [3]


def test_what_lamina_throttles_the_tool_releases(brokers: ThreeBrokers, topic: str, tmp_path: Path) -> None:
    create(brokers, topic, "1")
    plan = written(tmp_path / "plan.json", topic, {0: [1, 2]})
    arguments = ("topics", "reassign", "--execute", "--throttle", "50MB", "--file", plan)
    assert run_process(*arguments, LAMINA_BOOTSTRAP_SERVERS=brokers.bootstrap).status == 0

    def is_complete() -> bool:
        return "is completed." in reassign(brokers, "--reassignment-json-file", plan, "--verify")

    eventually(is_complete, WAIT_SECONDS)
    assert not any("throttled" in name for name in topic_configs(brokers, topic))
    assert not any("throttled.rate" in name for broker_id in ALL for name in broker_configs(brokers, broker_id))


def test_the_tool_is_told_why_a_plan_cannot_be_executed(brokers: ThreeBrokers, topic: str, tmp_path: Path) -> None:
    """What it finds out by itself it does not send."""
    create(brokers, topic, "1")
    dead = 2
    brokers.kill(dead)
    brokers.await_in_sync(topic, {1})
    plan = written(tmp_path / "plan.json", topic, {0: [dead]})
    with pytest.raises(KafkaFailedError):
        reassign(brokers, "--reassignment-json-file", plan, "--execute")
    assert describe(brokers, topic)[0].replicas == (1,)
