"""The tools for groups that come with Kafka, against Lamina, and its dump tool on what Lamina wrote of groups."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.process import eventually
from tests.peers.driver import Driver, Record
from tests.peers.kafka import driver_of, dump_segments, run_tool
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])
COUNT = 100


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    with Lamina(tmp_path_factory.mktemp("lamina"), {"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker
        broker.stop()
    assert "Traceback" not in broker.logged()


@pytest.fixture(scope="module")
def driver(lamina: Lamina) -> Iterator[Driver]:
    with driver_of(lamina.bootstrap) as connected:
        connected.create_topic("orders", partitions=2)
        connected.open_producer("producer", {})
        for partition in range(2):
            connected.send("producer", "orders", [Record(None, b"value")] * (COUNT // 2), partition)
        yield connected


def groups(lamina: Lamina, *arguments: str) -> str:
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    return run_tool(tool, "--bootstrap-server", lamina.bootstrap, *arguments)


def rows(printed: str, first: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines() if line.startswith(first)]


@PROTOCOLS
def test_kafka_consumer_groups(lamina: Lamina, driver: Driver, protocol: str, tmp_path: Path) -> None:
    group = f"tool-{protocol}"
    driver.join(group, group, "orders", {"group.protocol": protocol})
    eventually(lambda: sum(driver.group_offsets(group).values()) == COUNT, 60)
    assert rows(groups(lamina, "--list", "--state"), group) == [[group, "Stable"]]
    assert rows(groups(lamina, "--list", "--type", protocol), group)[0][0] == group
    described = rows(groups(lamina, "--describe", "--group", group), group)
    assert sorted(words[1:6] for words in described) == [["orders", str(n), "50", "50", "0"] for n in range(2)]
    (state,) = rows(groups(lamina, "--describe", "--group", group, "--state"), group)
    assert "Stable" in state
    members = rows(groups(lamina, "--describe", "--group", group, "--members", "--verbose"), group)
    assert len(members) == 1
    driver.leave(group)
    reset = ("--reset-offsets", "--group", group, "--topic", "orders")
    assert rows(groups(lamina, *reset, "--to-earliest", "--dry-run"), group) == [
        [group, "orders", str(n), "0"] for n in range(2)
    ]
    exported = groups(
        lamina, "--reset-offsets", "--group", group, "--all-topics", "--to-current", "--dry-run", "--export"
    )
    assert sorted(re.findall(r'^"?orders"?,(\d),(\d+)$', exported, re.MULTILINE)) == [("0", "50"), ("1", "50")]
    groups(lamina, *reset, "--shift-by", "-10", "--execute")
    assert sum(driver.group_offsets(group).values()) == COUNT - 20
    groups(lamina, "--delete-offsets", "--group", group, "--topic", "orders:0")
    assert driver.group_offsets(group) == {"orders-1": 40}
    assert "was successful" in groups(lamina, "--delete", "--group", group)
    assert group not in groups(lamina, "--list")


def test_consumer_performance_reads_everything(lamina: Lamina, driver: Driver) -> None:
    arguments = ("--bootstrap-server", lamina.bootstrap, "--topic", "orders", "--messages", str(COUNT))
    printed = run_tool("org.apache.kafka.tools.ConsumerPerformance", *arguments, "--group", "performance")
    assert f" {COUNT}," in printed


@PROTOCOLS
def test_the_verifiable_consumer_reads_and_commits(lamina: Lamina, driver: Driver, protocol: str) -> None:
    group = f"verified-{protocol}"
    where = ("--bootstrap-server", lamina.bootstrap, "--topic", "orders", "--group-id", group)
    options = ("--max-messages", str(COUNT), "--reset-policy", "earliest", "--group-protocol", protocol)
    printed = run_tool("org.apache.kafka.tools.VerifiableConsumer", *where, *options)
    said = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert sum(event["count"] for event in said if event["name"] == "records_consumed") == COUNT
    assert any(event["name"] == "partitions_assigned" for event in said)
    assert all(event["success"] for event in said if event["name"] == "offsets_committed")
    assert sum(driver.group_offsets(group).values()) == COUNT


def test_the_console_consumer_joins_a_group(lamina: Lamina, driver: Driver) -> None:
    where = ("--bootstrap-server", lamina.bootstrap, "--topic", "orders", "--group", "console", "--from-beginning")
    limits = ("--max-messages", str(COUNT), "--timeout-ms", "20000")
    printed = run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *where, *limits)
    assert f"Processed a total of {COUNT} messages" in printed


def test_end_to_end_latency_is_measured(lamina: Lamina, driver: Driver) -> None:
    driver.create_topic("latency")
    printed = run_tool("org.apache.kafka.tools.EndToEndLatency", lamina.bootstrap, "latency", "20", "all", "100")
    assert "Avg latency:" in printed


def test_kafkas_tool_reads_the_records_of_groups(lamina: Lamina, driver: Driver) -> None:
    driver.consume("dumped-classic", "orders", COUNT)
    driver.consume("dumped-consumer", "orders", COUNT, {"group.protocol": "consumer"})
    logs = sorted(lamina.data_directory.glob("logs/__consumer_offsets-*/*.log"))
    printed = dump_segments(*[log for log in logs if log.stat().st_size], options=("--offsets-decoder",))
    assert "isvalid: false" not in printed
    assert "Failed to decode" not in printed
    assert '"group":"dumped-classic","topic":"orders","partition":0' in printed
    assert '"protocolType":"consumer"' in printed
    for kind in ("groupId", "subscribedTopicNames", "assignmentEpoch", "memberEpoch"):
        assert f'"{kind}"' in printed
