"""A cluster of real processes on a real ZooKeeper, which goes away."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lamina.clocks import SYSTEM_CLOCKS
from lamina.cluster.broker_status import BrokerState, BrokerStatus
from lamina.cluster.errors import ClusterError
from lamina.cluster.local_cluster import LocalCluster
from tests.broker.process import COMMAND, SOURCES, eventually

SESSION_MS = 6000
LONGEST_SESSION_MS = 10_000
SETTINGS = {"lamina.spark.master": "none", "zookeeper.session.timeout.ms": str(SESSION_MS)}


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """Of two brokers; a test may give the time of their sessions."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))
    cluster = LocalCluster(tmp_path / "cluster")
    session_ms = getattr(request, "param", SESSION_MS)
    cluster.up(2, 0, SETTINGS | {"zookeeper.session.timeout.ms": str(session_ms)})
    yield cluster
    with suppress(ClusterError):
        cluster.kill()
        cluster.stop()


def produced(cluster: LocalCluster, acks: str) -> bool:
    """Whether a record is acknowledged within two seconds."""
    errors: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        errors.append(error)

    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers(), "acks": acks, "message.timeout.ms": 2000, "log_level": 0}
    )
    producer.produce("t", b"value", on_delivery=delivered)
    producer.flush(10)
    return len(errors) == 1 and errors[0] is None


def log_of(cluster: LocalCluster, broker_id: int) -> list[str]:
    return (cluster.directory / f"run/broker-{broker_id}.log").read_text().splitlines()


@pytest.mark.long
def test_zookeeper_is_away_for_longer_than_a_session(cluster: LocalCluster) -> None:
    """One story, for a start and a session take seconds."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers(), "log_level": 0})
    admin.create_topics([NewTopic("t", 1, 2)])["t"].result()
    assert produced(cluster, "all")
    assert produced(cluster, "1")
    cluster.kill_zookeeper()
    eventually(lambda: not produced(cluster, "1"))
    began = SYSTEM_CLOCKS.monotonic_ms()
    eventually(lambda: not produced(cluster, "1") and SYSTEM_CLOCKS.monotonic_ms() > began + 2 * SESSION_MS)
    assert produced(cluster, "all")
    for broker_id in (1, 2):
        outage = [line for line in log_of(cluster, broker_id) if "no metadata changes until it answers" in line]
        assert len(outage) == 1, log_of(cluster, broker_id)
    cluster.restart_zookeeper()
    eventually(lambda: produced(cluster, "1"))
    admin.create_topics([NewTopic("u", 1, 2)])["u"].result()
    assert [broker.state for broker in cluster.brokers()] == [BrokerState.RUNNING] * 2


def leading_controller(cluster: LocalCluster) -> tuple[BrokerStatus, BrokerStatus]:
    """The controller, which leads one partition of a topic, and the other broker, which leads the other."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers(), "log_level": 0})
    eventually(lambda: admin.list_topics(timeout=10).controller_id in (1, 2))
    controller_id = admin.list_topics(timeout=10).controller_id
    admin.create_topics([NewTopic("t", 2, 2)])["t"].result()
    brokers = {broker.id: broker for broker in cluster.brokers()}
    return brokers.pop(controller_id), brokers.popitem()[1]


def described(broker: BrokerStatus) -> "subprocess.CompletedProcess[str]":
    """What a broker tells of the topic."""
    words = [*COMMAND, "topics", "describe", "t", "--json", "--bootstrap-server", broker.address]
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60)


@pytest.mark.long
@pytest.mark.parametrize("cluster", [LONGEST_SESSION_MS], indirect=True)
def test_a_paused_broker_does_not_hold_up_who_looks(cluster: LocalCluster) -> None:
    """It leads a partition and is the controller until its session ends; the other one answers."""
    paused, other = leading_controller(cluster)
    assert paused.pid is not None
    os.kill(paused.pid, signal.SIGSTOP)
    try:
        told = described(other)
    finally:
        os.kill(paused.pid, signal.SIGCONT)
    assert told.returncode == 1
    partitions = json.loads(told.stdout)["partitions"]
    assert {one["leader"]: one["latest"] for one in partitions} == {paused.id: None, other.id: 0}
    (silent,) = [one["partition"] for one in partitions if one["leader"] == paused.id]
    leader, controller_line = told.stderr.splitlines()
    said = (
        f"lamina: t-{silent}: its leader, broker {paused.id} at {paused.address}, does not answer; another is elected"
    )
    assert leader.startswith(said)
    assert controller_line.startswith("lamina: the controller does not answer")


@pytest.mark.long
def test_a_controller_that_is_killed_is_replaced_before_its_session_ends(cluster: LocalCluster) -> None:
    dead, other = leading_controller(cluster)
    cluster.kill_broker(dead.id)
    eventually(lambda: described(other).returncode == 0)
    assert {one["leader"] for one in json.loads(described(other).stdout)["partitions"]} == {other.id}
    assert any(f"broker {dead.id} is dead" in line for line in log_of(cluster, other.id)), log_of(cluster, other.id)


@pytest.mark.long
def test_an_id_is_one_brokers(cluster: LocalCluster, tmp_path: Path) -> None:
    """A second broker is refused; one that was killed takes its own place within the session that it left."""
    own = ("--data-dir", tmp_path / "other", "--listen", "127.0.0.1:0", "--node-id", "1")
    sets = {**SETTINGS, "lamina.admin.listeners": "127.0.0.1:0"}
    words = [*COMMAND, "serve", *own, "--zookeeper", cluster.zookeeper_address()]
    words += [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
    refused = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    waited, told = refused.stderr.splitlines()
    assert "waiting up to 9 s for the id of this broker" in waited
    assert told.startswith("lamina: broker id 1 is taken: another broker at 127.0.0.1:")
    cluster.kill_broker(1)
    began = SYSTEM_CLOCKS.monotonic_ms()
    cluster.restart_broker(1)
    assert SYSTEM_CLOCKS.monotonic_ms() - began < SESSION_MS
