"""Three brokers of either kind as one subject, each of which can be stopped, killed and started by itself.

Owns how the brokers of a cluster are put together, and what they are told beside :data:`bench.subjects.SETTINGS`: the
same replicas on both sides. Lamina's ZooKeeper is one of its processes. Must not know what is measured.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path

from bench.librdkafka import CALL_SECONDS, new_admin
from bench.rounds import Values
from bench.subjects import KAFKA, KAFKA_SCRIPT_FLAGS, KAFKA_SMALL_HEAP, LAMINA, SETTINGS, Subject, heap_flags
from lamina.cluster.ports import HOST, free_port
from lamina.cluster.zookeeper_server import ZooKeeperServer
from tests.peers.kafka import Kafka, LogMark
from tests.peers.lamina import Lamina

KAFKA_SAME_SESSION, ONE_KAFKA = "kafka-same-session", "one-kafka"
BROKERS = (1, 2, 3)
REPLICAS = len(BROKERS)
KAFKA_SESSION_SECONDS, LAMINA_SESSION_SECONDS = 9, 6
"""What both have by default."""
SMALL_HEAP_MEGABYTES = 256
"""The least that holds the loads, of those that were tried: the cleaner's map alone takes 128 of it."""
CLUSTER_SETTINGS = {
    **SETTINGS,
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
_ACTIVE = re.compile(r"\[QuorumController id=(\d+)\] Becoming the active controller at epoch (\d+)")

Member = Kafka | Lamina


class Cluster:
    """Who stops it as a whole removes its data: its next start is its first."""

    def __init__(
        self,
        members: Mapping[int, Member],
        find_controller: Callable[[Cluster], int],
        zookeeper: ZooKeeperServer | None = None,
    ) -> None:
        self.members = members
        self._find_controller = find_controller
        self._zookeeper = zookeeper

    @property
    def bootstrap(self) -> str:
        return ",".join(member.bootstrap for member in self.members.values())

    @property
    def process_ids(self) -> tuple[int, ...]:
        zookeeper = self._zookeeper.pid if self._zookeeper is not None else None
        brokers = tuple(one for member in self.members.values() for one in member.process_ids)
        return brokers if zookeeper is None else (*brokers, zookeeper)

    @property
    def is_running(self) -> bool:
        return bool(self.process_ids)

    def controller(self) -> int:
        return self._find_controller(self)

    def format(self) -> None:
        """All at once: each takes a JVM of its own."""
        with ThreadPoolExecutor(len(self.members)) as threads:
            for _ in threads.map(lambda member: member.format(), self.members.values()):
                pass

    def launch(self) -> None:
        """Brokers wait for each other, so none is waited for; ZooKeeper answers when this returns."""
        if self._zookeeper is not None:
            self._zookeeper.start()
        for member in self.members.values():
            member.launch()

    def start(self) -> None:
        self.format()
        self.launch()
        for member in self.members.values():
            member.await_start()

    def stop(self) -> None:
        """At once: how a whole cluster ends is not measured."""
        self.kill()
        for member in self.members.values():
            shutil.rmtree(member.data_directory, ignore_errors=True)
        if self._zookeeper is not None:
            shutil.rmtree(self._zookeeper.directory, ignore_errors=True)

    def kill(self) -> None:
        for member in self.members.values():
            member.kill()
        if self._zookeeper is not None:
            self._zookeeper.stop()


def on_cluster(run: Callable[[Cluster, str], Values]) -> Callable[[Subject, str], Values]:
    """A trial that only clusters can go through."""

    @wraps(run)
    def checked(subject: Subject, topic: str) -> Values:
        assert isinstance(subject, Cluster)
        return run(subject, topic)

    return checked


def all_clusters(root: Path) -> dict[str, Subject]:
    """And the one Kafka broker whose requests are compared with those of three."""
    same_session = {"broker.session.timeout.ms": str(LAMINA_SESSION_SECONDS * 1000)}
    return {
        KAFKA: kafka_cluster(root / KAFKA),
        KAFKA_SMALL_HEAP: kafka_cluster(root / KAFKA_SMALL_HEAP, heap_flags(SMALL_HEAP_MEGABYTES)),
        KAFKA_SAME_SESSION: kafka_cluster(root / KAFKA_SAME_SESSION, settings=same_session),
        ONE_KAFKA: Kafka(root / ONE_KAFKA, SETTINGS, KAFKA_SCRIPT_FLAGS),
        LAMINA: lamina_cluster(root / LAMINA),
    }


def kafka_cluster(
    root: Path,
    jvm_flags: tuple[str, ...] = KAFKA_SCRIPT_FLAGS,
    settings: Mapping[str, str] | None = None,
) -> Cluster:
    """Every broker is a voter too."""
    ports = {broker: free_port() for broker in BROKERS}
    voters = ",".join(f"{broker}@{HOST}:{port}" for broker, port in ports.items())
    members = {
        broker: Kafka(
            root / f"broker-{broker}",
            {
                **CLUSTER_SETTINGS,
                "node.id": str(broker),
                "controller.quorum.voters": voters,
                **(settings or {}),
            },
            jvm_flags,
            port,
        )
        for broker, port in ports.items()
    }
    return Cluster(members, _controller_of_kafka)


def lamina_cluster(root: Path) -> Cluster:
    zookeeper = ZooKeeperServer(str(root / "zookeeper"), free_port(), "java")
    members = {
        broker: Lamina(
            root / f"broker-{broker}",
            {**CLUSTER_SETTINGS, "node.id": str(broker), "zookeeper.connect": zookeeper.address},
        )
        for broker in BROKERS
    }
    return Cluster(members, _controller_of_lamina, zookeeper)


def _controller_of_lamina(cluster: Cluster) -> int:
    return int(new_admin(cluster.bootstrap).list_topics(timeout=CALL_SECONDS).controller_id)


def _controller_of_kafka(cluster: Cluster) -> int:
    """By the brokers' logs: a KRaft broker tells its clients of any other as the controller."""
    found = [
        (int(epoch), int(broker))
        for member in cluster.members.values()
        if isinstance(member, Kafka)
        for line in member.lines_since(LogMark(0))
        for broker, epoch in _ACTIVE.findall(line)
    ]
    return max(found)[1]
