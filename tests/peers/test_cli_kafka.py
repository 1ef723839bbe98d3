"""``lamina topics``, ``configs`` and ``brokers`` against a real Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.cli.running import Outcome, run_process
from tests.peers.kafka import CLUSTER_ID, Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

Run = Callable[..., Outcome]

PLACES = (
    ("--topic=configured", "retention.ms"),
    ("--broker=1", "log.retention.ms"),
    ("--broker-default", "log.segment.delete.delay.ms"),
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with Kafka(tmp_path_factory.mktemp("kafka")) as node:
        yield node


@pytest.fixture
def run(kafka: Kafka) -> Run:
    def run_here(*args: str | Path) -> Outcome:
        return run_process(*args, LAMINA_BOOTSTRAP_SERVERS=kafka.bootstrap)

    return run_here


def produce(kafka: Kafka, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(count):
        producer.produce(topic, b"value", partition=0, timestamp=1000 * (number + 1))
    assert producer.flush(30) == 0


def described(run: Run, topic: str) -> dict[str, Any]:
    (row,) = run("topics", "describe", topic, "--json").objects
    return row


def test_brokers(run: Run) -> None:
    (row,) = run("brokers", "--json").objects
    assert (row["id"], row["cluster_id"], row["controller"]) == (1, CLUSTER_ID, True)


def test_a_topic_from_its_making_to_its_end(run: Run, kafka: Kafka) -> None:
    assert run("topics", "create", "life", "--partitions", "2", "--config", "retention.ms=5000").status == 0
    assert run("topics", "create", "life").status == 1
    assert run("topics", "create", "life", "--if-not-exists").status == 0
    assert run("topics", "create", "other", "--dry-run").out == "Topic other could be created.\n"
    row = described(run, "life")
    assert row["configs"] == {"retention.ms": "5000"}
    assert [partition["leader"] for partition in row["partitions"]] == [1, 1]
    assert f"topic_id: {row['id']}" in (kafka.data_directory / "life-0/partition.metadata").read_text()
    assert [listed["name"] for listed in run("topics", "list", "--json").objects].count("life") == 1
    assert run("topics", "add-partitions", "life", "--total", "3").status == 0
    assert run("topics", "add-partitions", "life", "--total", "2").status == 1
    assert described(run, "life")["partition_count"] == 3
    assert run("topics", "delete", "life").status == 2
    assert run("topics", "delete", "life", "--yes").status == 0
    assert run("topics", "describe", "life").status == 1


def test_offsets_and_deleting_records(run: Run, kafka: Kafka, tmp_path: Path) -> None:
    run("topics", "create", "records")
    produce(kafka, "records", 5)

    def offset(at: str) -> Any:
        (row,) = run("topics", "offsets", "records", "--at", at, "--json").objects
        return row["offset"]

    assert [offset(at) for at in ("earliest", "latest", "max-timestamp", "2500", "-1s")] == [0, 5, 4, 2, None]
    arguments = ("topics", "delete-records", "records", "--partition", "0", "--before-offset")
    assert run(*arguments, "2", "--yes").status == 0
    assert run(*arguments, "99", "--yes").status == 1
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": "records", "partition": 0, "offset": 3}]}))
    assert run("topics", "delete-records", "--file", file, "--yes").status == 0
    assert run("topics", "offsets", "records").out.splitlines()[1].split() == ["0", "3", "5", "2"]
    assert run("topics", "delete-records", "records", "--all", "--yes").status == 0
    assert offset("earliest") == 5


@pytest.mark.parametrize(("where", "name"), PLACES)
def test_configs_of_a_topic_a_broker_and_all_brokers(run: Run, where: str, name: str) -> None:
    run("topics", "create", "configured", "--if-not-exists")
    assert run("configs", "set", where, f"{name}=700000").status == 0
    (row,) = run("configs", "get", where, name, "--json").objects
    assert (row["value"], row["default"]) == ("700000", False)
    assert run("configs", "unset", where, name).status == 0
    after = run("configs", "get", where, name, "--json")
    assert after.status == 1 if where == "--broker-default" else after.objects[0]["default"] is True
    assert run("configs", "get", where, "--all").status == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "create", "bad name"),
        ("topics", "create", "refused", "--replication-factor", "3"),
        ("topics", "create", "refused", "--config", "cleanup.policy=x"),
        ("topics", "create", "refused", "--config", "cleanup.polic=delete"),
        ("topics", "create", "refused", "--replica-assignment", "9"),
        ("topics", "describe", "nowhere"),
        ("topics", "offsets", "nowhere"),
        ("topics", "delete", "nowhere", "--yes"),
        ("topics", "delete-records", "nowhere", "--all", "--yes"),
        ("configs", "get", "--topic", "nowhere"),
        ("configs", "get", "--broker", "7"),
        ("configs", "set", "--broker", "1", "node.id=5"),
        ("configs", "set", "--broker", "1", "background.threads=0"),
    ],
)
def test_what_kafka_refuses_is_one_sentence(run: Run, arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)
    assert outcome.status == 1
    assert outcome.err.startswith("lamina: ")
    assert outcome.err.count("\n") == 1
    assert "nowhere" not in [row["name"] for row in run("topics", "list", "--json").objects]
