"""Masters that are not there, or whose machines cannot do the work: one sentence, no hang, and a later attempt.

YARN and Kubernetes are not run here: what is shown is that a broker bears it when they cannot be reached.
"""

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer

from lamina.cleaning.contract import Manifest
from lamina.cleaning.engine_messages import Failure
from lamina.cluster.ports import free_port
from tests.broker.admin.asking import get
from tests.broker.process import COMMAND, SOURCES, BrokerProcess
from tests.broker.test_compaction import make_topic
from tests.pipeline.cluster import Cluster
from tests.pipeline.engines import a_plan, an_engine, clean_all, processes_of, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SOON = {"spark.network.timeout": "5s", "spark.network.timeoutInterval": "1s", "spark.executor.heartbeatInterval": "1s"}
"""How long Spark waits for another machine: not long."""
A_WHILE = SOON | {"spark.network.timeout": "60s"}
"""Long enough for one that is there."""


async def eventually(holds: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, holds)


def fails(path: Path, master: str, conf: Mapping[str, str] | None = None) -> str:
    """Why a pass fails on a master."""

    async def live() -> str:
        engine = an_engine(path / "spark", master, conf)
        try:
            (answer,) = await clean_all(engine, a_plan(path / "log"))
            await eventually(lambda: not engine.is_running)
        finally:
            await engine.stop()
        assert isinstance(answer, Failure), answer
        assert not answer.is_uncleanable
        assert "\n" not in answer.reason
        return answer.reason

    reason = asyncio.run(live())
    wait_until(lambda: not processes_of(path / "spark"))
    return reason


def test_a_standalone_master_that_is_not_there_is_said_to_be_silent(tmp_path: Path) -> None:
    master = f"spark://127.0.0.1:{free_port()}"
    assert fails(tmp_path, master, SOON) == (
        f"Spark could not be started on {master}: it does not answer within 5 s (spark.network.timeout)"
    )


def test_a_master_whose_name_is_no_address_is_named(tmp_path: Path) -> None:
    reason = fails(tmp_path, "spark://nonsense")
    assert reason.startswith("Spark could not be started on spark://nonsense: ")
    assert "Invalid master URL" in reason


def test_yarn_without_its_settings_says_which_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    reason = fails(tmp_path, "yarn")
    assert reason.startswith("Spark could not be started on yarn: Java ended with status 1")
    assert "HADOOP_CONF_DIR or YARN_CONF_DIR must be set" in reason


def test_a_yarn_that_does_not_answer_is_not_waited_for_as_long_as_it_would_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own client goes on for a quarter of an hour."""
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.address</name>"
        f"<value>127.0.0.1:{free_port()}</value></property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert fails(tmp_path, "yarn", SOON) == (
        "Spark could not be started on yarn: it does not answer within 5 s (spark.network.timeout)"
    )


def test_a_kubernetes_that_is_not_there_is_named_with_the_reason(tmp_path: Path) -> None:
    master = f"k8s://https://127.0.0.1:{free_port()}"
    reason = fails(tmp_path, master, {"spark.kubernetes.container.image": "nothing"})
    assert reason.startswith(f"Spark could not be started on {master}: ")
    assert "Connection refused" in reason


def test_a_cluster_that_gives_no_executor_fails_the_pass(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        reason = fails(tmp_path, cluster.master, {"spark.executor.memory": "64g", **A_WHILE})
    assert reason == f"{cluster.master} has given no executor for 60 s"


def test_a_cluster_that_is_lost_between_two_passes_fails_the_next_and_a_new_one_serves_the_one_after(
    tmp_path: Path,
) -> None:
    asyncio.run(_lose_a_cluster(tmp_path))


async def _lose_a_cluster(path: Path) -> None:
    with Cluster(path / "cluster") as cluster:
        engine = an_engine(path / "spark", cluster.master, {"spark.executor.memory": "640m", **A_WHILE})
        try:
            (answer,) = await clean_all(engine, a_plan(path / "first"))
            assert isinstance(answer, Manifest), answer
            cluster.lose()
            (answer,) = await clean_all(engine, a_plan(path / "lost"))
            assert isinstance(answer, Failure)
            assert cluster.master in answer.reason, answer
            cluster.come_back()
            (answer,) = await clean_all(engine, a_plan(path / "again"))
            assert isinstance(answer, Manifest), answer
        finally:
            await engine.stop()
    await eventually(lambda: not processes_of(path))


def test_executors_that_do_not_see_the_logs_are_told_apart_from_a_pass_that_was_given_up(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("only who may mount can hide a directory from some processes, and here nobody may")
    asyncio.run(_hide(tmp_path, logs))


async def _hide(path: Path, logs: Path) -> None:
    with Cluster(path / "cluster", hidden=logs) as cluster:
        engine = an_engine(path / "spark", cluster.master, {"spark.executor.memory": "640m"})
        try:
            for name, limit_bytes in (("alone", 1 << 24), ("shuffled", 2000)):
                plan = a_plan(logs / name, keys=1000, memory_limit_bytes=limit_bytes)
                (answer,) = await clean_all(engine, plan)
                assert answer == Failure(
                    plan.plan_id,
                    f"an executor does not see {logs / name}: the machines of lamina.spark.master need the log "
                    f"directories, under the same paths",
                )
        finally:
            await engine.stop()


def test_a_broker_whose_master_cannot_be_reached_serves_on_and_shows_why_nothing_is_cleaned(tmp_path: Path) -> None:
    given = ("--set", "lamina.spark.master=yarn", "--set", "log.cleaner.backoff.ms=50")
    with BrokerProcess(tmp_path / "data", *given, "--set", "log.cleaner.min.cleanable.ratio=0.01") as broker:
        make_topic(broker)
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 5, "batch.size": 8000})
        write(producer)
        wait_until(lambda: get(broker, "/v1/cleaner")["passes"]["failed"] >= 2)
        [row] = get(broker, "/v1/cleaner")["partitions"]
        assert "HADOOP_CONF_DIR or YARN_CONF_DIR must be set" in row["error"]
        assert not row["is_uncleanable"]
        assert row["retry_at_ms"] > row["last_pass"]["ended_ms"]
        write(producer)
        told = subprocess.run(
            [*COMMAND, "cleaner", "status", "--bootstrap-server", broker.address],
            env={**os.environ, "PYTHONPATH": str(SOURCES), "COLUMNS": "400"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "Spark could not be started on yarn" in told.stdout
        assert "(retried at" in told.stdout
    assert not [line for line in broker.log if "Traceback" in line], broker.log


def write(producer: Producer) -> None:
    for number in range(2000):
        producer.produce("t", key=b"key-%d" % (number % 50), value=b"%d" % number + b"x" * 60)
        producer.poll(0)
    assert producer.flush(60) == 0
