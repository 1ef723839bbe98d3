"""How clusters are put together, and that what is done to one is done to all its processes."""

from pathlib import Path
from typing import Any

import pytest

from bench.clusters import BROKERS, CLUSTER_SETTINGS, Cluster, all_clusters, kafka_cluster, lamina_cluster, on_cluster
from bench.subjects import KAFKA_SCRIPT_FLAGS
from tests.bench.idle_broker import IdleBroker
from tests.peers.kafka import Kafka


class Member(IdleBroker):
    """With data of its own, and a number as its process."""

    def __init__(self, root: Path, number: int, events: list[str]) -> None:
        super().__init__(f"127.0.0.1:{number}", events)
        self.data_directory = root / str(number)
        self._number = number

    @property
    def process_ids(self) -> tuple[int, ...]:
        return (self._number,) if self.is_running else ()

    def format(self) -> None:
        self.data_directory.mkdir()
        self.events.append(f"format {self._number}")

    def launch(self) -> None:
        self.is_running = True
        self.events.append(f"launch {self._number}")

    def await_start(self) -> None:
        self.events.append(f"await {self._number}")

    def kill(self) -> None:
        self.is_running = False


class ZooKeeper:
    def __init__(self, root: Path, events: list[str]) -> None:
        self.directory = root / "zookeeper"
        self.pid: int | None = None
        self._events = events

    def start(self) -> None:
        self.directory.mkdir()
        self.pid = 100
        self._events.append("start zookeeper")

    def stop(self) -> None:
        self.pid = None


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def cluster(tmp_path: Path, events: list[str]) -> Cluster:
    members: Any = {number: Member(tmp_path, number, events) for number in BROKERS}
    zookeeper: Any = ZooKeeper(tmp_path, events)
    return Cluster(members, lambda _: 2, zookeeper)


def test_brokers_are_started_together_and_after_zookeeper(cluster: Cluster, events: list[str]) -> None:
    cluster.start()
    assert sorted(events[:3]) == [f"format {number}" for number in BROKERS]
    assert events[3:] == [
        "start zookeeper",
        *(f"launch {number}" for number in BROKERS),
        *(f"await {number}" for number in BROKERS),
    ]


def test_zookeeper_is_one_of_the_processes(cluster: Cluster) -> None:
    assert not cluster.process_ids
    cluster.start()
    assert list(cluster.process_ids) == [*BROKERS, 100]
    cluster.members[2].kill()
    assert list(cluster.process_ids) == [1, 3, 100]
    assert cluster.bootstrap == "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"


def test_a_cluster_that_is_stopped_leaves_nothing(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start()
    cluster.stop()
    assert not cluster.is_running
    assert list(tmp_path.iterdir()) == []


def test_a_trial_of_clusters_refuses_a_single_broker(cluster: Cluster) -> None:
    trial = on_cluster(lambda cluster, topic: (float(cluster.controller()),))
    assert trial(cluster, "topic") == (2.0,)
    with pytest.raises(AssertionError):
        trial(IdleBroker("a", []), "topic")


def properties(broker: Kafka) -> dict[str, str]:
    lines = (broker.root / "server.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_every_kafka_is_a_voter_on_the_port_that_the_others_know(tmp_path: Path) -> None:
    told = [properties(member) for member in kafka_cluster(tmp_path).members.values() if isinstance(member, Kafka)]
    assert len({one["controller.quorum.voters"] for one in told}) == 1
    voters = told[0]["controller.quorum.voters"].split(",")
    for one, voter in zip(told, voters, strict=True):
        controller = one["listeners"].split(",CONTROLLER://")[1]
        assert voter == f"{one['node.id']}@{controller}"


def test_both_sides_are_told_to_replicate_alike(tmp_path: Path) -> None:
    kafka, lamina = kafka_cluster(tmp_path / "kafka"), lamina_cluster(tmp_path / "lamina")
    for member in kafka.members.values():
        assert isinstance(member, Kafka)
        assert CLUSTER_SETTINGS.items() <= properties(member).items()
        assert set(KAFKA_SCRIPT_FLAGS) == set(member._jvm_flags)
    for number, member in lamina.members.items():
        words: Any = member
        given = set(words._command[words._command.index("--set") :])
        assert {f"{name}={value}" for name, value in CLUSTER_SETTINGS.items()} <= given
        assert f"node.id={number}" in given


def test_the_active_controller_of_kafka_is_the_one_of_the_last_epoch(tmp_path: Path) -> None:
    cluster = kafka_cluster(tmp_path)
    for number, epoch in ((1, 3), (2, 12), (3, 7)):
        line = f"INFO [QuorumController id={number}] Becoming the active controller at epoch {epoch}, new epoch\n"
        (tmp_path / f"broker-{number}" / "log.txt").write_text(line)
    assert cluster.controller() == 2


def test_the_session_of_one_kafka_is_as_long_as_laminas(tmp_path: Path) -> None:
    subjects: Any = all_clusters(tmp_path)
    same = subjects["kafka-same-session"]
    assert {properties(one)["broker.session.timeout.ms"] for one in same.members.values()} == {"6000"}
    assert "broker.session.timeout.ms" not in properties(subjects["kafka"].members[1])
