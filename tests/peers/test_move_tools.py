"""kafka-reassign-partitions with log directories, and kafka-log-dirs, of Kafka 4.1: a broker has two directories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.process import eventually
from tests.peers.driver import Record
from tests.peers.kafka import driver_of, run_tool
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
WAIT_SECONDS = 60.0
LARGE_BYTES = 900_000
RECORDS = 4


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Lamina]:
    """A broker with two log directories."""
    paths = ",".join(str(tmp_path / name) for name in ("one", "two"))
    with Lamina(tmp_path / "lamina", {"log.dirs": paths, "log.segment.delete.delay.ms": "0"}) as broker:
        yield broker
        broker.stop()
    assert "Traceback" not in broker.logged()


def logs(broker: Lamina) -> dict[str, list[dict[str, Any]]]:
    """What kafka-log-dirs tells of each directory."""
    tool = "org.apache.kafka.tools.LogDirsCommand"
    told = run_tool(tool, "--bootstrap-server", broker.bootstrap, "--describe", "--topic-list", "t")
    document = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    return {one["logDir"]: one["partitions"] for one in document["brokers"][0]["logDirs"]}


def reassign(broker: Lamina, plan: Path, *arguments: str) -> str:
    return run_tool(REASSIGN, "--bootstrap-server", broker.bootstrap, "--reassignment-json-file", str(plan), *arguments)


def written(path: Path, log_dir: str) -> Path:
    partition = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [log_dir]}
    path.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    return path


def test_a_replica_moves_to_another_directory_under_a_throttle_and_back_again(two: Lamina, tmp_path: Path) -> None:
    topics = ("--bootstrap-server", two.bootstrap, "--create", "--topic", "t", "--partitions", "1")
    run_tool("org.apache.kafka.tools.TopicCommand", *topics)
    with driver_of(two.bootstrap) as driver:
        driver.open_producer("producer", {"max.request.size": str(2 * LARGE_BYTES)})
        for _ in range(RECORDS):
            driver.send("producer", "t", [Record(b"key", b"x" * LARGE_BYTES)], 0)
    here = next(path for path, found in logs(two).items() if found)
    there = next(path for path, found in logs(two).items() if not found)
    plan = written(tmp_path / "plan.json", there)
    started = reassign(two, plan, "--execute", "--replica-alter-log-dirs-throttle", "1000")
    assert f"Successfully started moving log directory to {there} for replica t-0 with broker 1" in started
    verified = reassign(two, plan, "--verify", "--preserve-throttles")
    assert "Reassignment of replica t-0-1 is still in progress." in verified
    (future,) = logs(two)[there]
    assert future["isFuture"]
    assert 0 < future["offsetLag"] < RECORDS
    raised = reassign(two, plan, "--execute", "--additional", "--replica-alter-log-dirs-throttle", "50000000")
    assert "The replica-alter-dir throttle limit was set to 50000000 B/s" in raised

    def is_complete() -> bool:
        return "Reassignment of replica t-0-1 completed successfully." in reassign(two, plan, "--verify")

    eventually(is_complete, WAIT_SECONDS)
    (moved,) = logs(two)[there]
    assert (logs(two)[here], moved["isFuture"], moved["offsetLag"]) == ([], False, 0)
    assert moved["size"] > RECORDS * LARGE_BYTES
    with driver_of(two.bootstrap) as driver:
        driver.consume("group", "t", RECORDS)
    reassign(two, written(plan, here), "--execute")
    eventually(is_complete, WAIT_SECONDS)
    assert logs(two)[there] == []
