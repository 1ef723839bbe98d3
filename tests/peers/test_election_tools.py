"""kafka-leader-election of Kafka 4.1 against three Lamina brokers: preferred and unclean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.broker.process import eventually
from tests.cluster.three_brokers import WAIT_SECONDS, ThreeBrokers
from tests.peers.kafka import run_tool

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

TOOL = "org.apache.kafka.tools.LeaderElectionCommand"


def elect(brokers: ThreeBrokers, kind: str, *arguments: str) -> str:
    return run_tool(TOOL, "--bootstrap-server", brokers.bootstrap, "--election-type", kind, *arguments)


def test_the_preferred_replica_leads_again(brokers: ThreeBrokers, topic: str, tmp_path: Path) -> None:
    brokers.create_topic(topic, leaders=[2, 2])
    brokers.restart(2)
    brokers.await_in_sync(topic)
    eventually(lambda: 2 not in (brokers.leader(topic, 0), brokers.leader(topic, 1)), WAIT_SECONDS)
    one = ("--topic", topic, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in elect(
        brokers, "preferred", *one
    )
    eventually(lambda: brokers.leader(topic, 0) == 2, WAIT_SECONDS)
    assert f"Valid replica already elected for partitions {topic}-0" in elect(brokers, "preferred", *one)
    file = tmp_path / "elections.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 1}]}))
    assert "Successfully completed" in elect(brokers, "preferred", "--path-to-json-file", str(file))
    eventually(lambda: brokers.leader(topic, 1) == 2, WAIT_SECONDS)
    elect(brokers, "preferred", "--all-topic-partitions")


def test_a_replica_that_was_not_in_sync_leads_when_no_other_is_left(brokers: ThreeBrokers, topic: str) -> None:
    brokers.create_topic(topic, leaders=[2], min_insync_replicas="1")
    brokers.kill(1, 3)
    brokers.await_in_sync(topic, {2})
    brokers.kill(2)
    brokers.restart(1, 3)
    eventually(lambda: brokers.leader(topic) == -1, WAIT_SECONDS)
    assert "Successfully completed leader election (UNCLEAN)" in elect(
        brokers, "unclean", "--topic", topic, "--partition", "0"
    )
    eventually(lambda: brokers.leader(topic) in (1, 3), WAIT_SECONDS)
