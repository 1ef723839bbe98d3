"""Three real brokers and a real ZooKeeper, to be hurt by tests: which broker leads what, and what signals do to it.

Must not know what clients send.
"""

import os
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from lamina.cluster.broker_command import ProgramOf, lamina_program
from lamina.cluster.broker_status import BrokerState
from lamina.cluster.layout import broker_name
from lamina.cluster.local_cluster import LocalCluster
from tests.broker.process import SOURCES, eventually

WAIT_SECONDS = 60.0
SESSION_MS = 2000
SETTINGS = {
    "lamina.spark.master": "none",
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""One partition of each internal topic: its leader is the coordinator of all."""
ALL = (1, 2, 3)


class ThreeBrokers:
    def __init__(
        self, directory: Path, settings: Mapping[str, str] | None = None, program_of: ProgramOf = lamina_program
    ) -> None:
        self.cluster = LocalCluster(directory, program_of=program_of)
        self._settings = {**SETTINGS, **(settings or {})}
        self.expected_complaints: set[str] = set()
        """Parts of lines that tests provoke."""
        self._admin: AdminClient | None = None

    @contextmanager
    def running(self) -> Iterator["ThreeBrokers"]:
        """From this source, as long as the context lasts. What they logged is looked at in the end."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(SOURCES))
            self.start()
            try:
                yield self
            finally:
                self.close()
        assert self.complaints() == []

    def start(self) -> None:
        self.cluster.up(len(ALL), 0, self._settings)

    def start_again(self) -> None:
        """All of it, where clients look for it."""
        self.cluster.up(None, None, {})

    def close(self) -> None:
        self.cluster.stop()

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap_servers()

    def address(self, broker_id: int) -> str:
        """Where clients connect to a broker."""
        return next(one.address for one in self.cluster.brokers() if one.id == broker_id)

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return self._admin

    # Topics

    def create_topic(
        self, name: str, partitions: int = 1, leaders: Sequence[int] | None = None, **configs: str
    ) -> None:
        """With a replica on every broker, all of them in sync; ``leaders``: of the partitions, where it matters."""
        configs = {key.replace("_", "."): value for key, value in configs.items()}
        if leaders is None:
            new = NewTopic(name, partitions, len(ALL), config=configs)
        else:
            replicas = [[leader, *(one for one in ALL if one != leader)] for leader in leaders]
            new = NewTopic(name, len(leaders), replica_assignment=replicas, config=configs)
        self.admin.create_topics([new])[name].result(WAIT_SECONDS)
        self.await_in_sync(name)

    def topic_names(self) -> set[str]:
        return set(self.admin.list_topics(timeout=WAIT_SECONDS).topics)

    def controller(self) -> int:
        return int(self.admin.list_topics(timeout=WAIT_SECONDS).controller_id)

    def await_stored_topic(self, prefix: str) -> None:
        """Until a controller has begun to store topics with such names."""
        client = KazooClient(self.cluster.zookeeper_address())
        client.start(WAIT_SECONDS)
        try:
            eventually(lambda: any(name.startswith(prefix) for name in client.get_children("/brokers/topics")))
        finally:
            client.stop()
            client.close()

    def delete_topic(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(WAIT_SECONDS)

    def leader(self, topic: str, partition: int = 0) -> int:
        """-1 while there is none."""
        found = self.admin.list_topics(topic, WAIT_SECONDS).topics[topic].partitions
        return int(found[partition].leader) if partition in found else -1

    def high_watermark(self, topic: str) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "unused", "log_level": 0})
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_SECONDS)[1])
        finally:
            consumer.close()

    def leader_seen_by(self, broker_id: int, topic: str) -> int:
        """What one broker tells, where another may not answer."""
        admin = AdminClient({"bootstrap.servers": self.address(broker_id), "log_level": 0})
        told = admin.list_topics(topic, WAIT_SECONDS)
        return int(told.topics[topic].partitions[0].leader)

    def in_sync(self, topic: str) -> list[set[int]]:
        """The in-sync sets of all partitions."""
        return [set(one.isrs) for one in self.admin.list_topics(topic, WAIT_SECONDS).topics[topic].partitions.values()]

    def replicas(self, topic: str) -> list[tuple[int, ...]]:
        """Of all partitions, the preferred leader first."""
        found = self.admin.list_topics(topic, WAIT_SECONDS).topics[topic].partitions
        return [tuple(one.replicas) for _, one in sorted(found.items())]

    def await_in_sync(self, topic: str, brokers: Collection[int] = ALL) -> None:
        def is_so() -> bool:
            found = self.in_sync(topic)
            return bool(found) and all(one == set(brokers) for one in found)

        eventually(is_so, WAIT_SECONDS, lambda: self.in_sync(topic))

    def await_leader(self, topic: str, other_than: int = -1) -> int:
        eventually(lambda: self.leader(topic) not in (-1, other_than), WAIT_SECONDS)
        return self.leader(topic)

    # Brokers

    def pid(self, broker_id: int) -> int:
        pid = next(one.pid for one in self.cluster.brokers() if one.id == broker_id)
        assert pid is not None, f"broker {broker_id} does not run"
        return pid

    def kill(self, *broker_ids: int) -> None:
        """All of them before anybody could notice the first."""
        for broker_id in broker_ids:
            os.kill(self.pid(broker_id), signal.SIGKILL)
        for broker_id in broker_ids:
            eventually(lambda broker_id=broker_id: self._is_dead(broker_id))  # type: ignore[misc]

    def kill_everything(self) -> None:
        """ZooKeeper too, as if the machine lost its power."""
        self.cluster.kill()
        eventually(lambda: not self.cluster.is_running())

    def stop(self, broker_id: int) -> None:
        """With SIGTERM; it stays away until it is started."""
        self.cluster.stop_broker(broker_id)

    def restart(self, *broker_ids: int) -> None:
        """With SIGTERM, where it runs."""
        for broker_id in broker_ids:
            self.cluster.restart_broker(broker_id)

    def pause(self, broker_id: int) -> None:
        os.kill(self.pid(broker_id), signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        os.kill(self.pid(broker_id), signal.SIGCONT)

    def resume_all(self) -> None:
        for broker in self.cluster.brokers():
            if broker.pid is not None:
                self.resume(broker.id)

    def heal(self) -> None:
        """Start whatever does not run."""
        for broker in self.cluster.brokers():
            if broker.pid is None:
                self.restart(broker.id)
            else:
                self.resume(broker.id)

    def _is_dead(self, broker_id: int) -> bool:
        return all(one.state is BrokerState.DEAD for one in self.cluster.brokers() if one.id == broker_id)

    def assert_replicas_are_equal(self, topic: str, partition: int = 0) -> None:
        """Byte for byte, once all are in sync."""
        self.await_in_sync(topic)
        first, *others = (self.records(broker_id, topic, partition) for broker_id in ALL)
        assert first
        assert all(one == first for one in others)

    # What is on disk

    def data(self, broker_id: int) -> Path:
        return self.cluster.layout.data(broker_name(broker_id))

    def log_dirs(self, broker_id: int) -> list[Path]:
        return [self.data(broker_id) / "logs"]

    def replica(self, broker_id: int, topic: str, partition: int = 0) -> Path:
        """The directory of a replica."""
        first, *others = (log_dir / f"{topic}-{partition}" for log_dir in self.log_dirs(broker_id))
        return next((one for one in others if one.is_dir()), first)

    def records(self, broker_id: int, topic: str, partition: int = 0) -> bytes:
        """All that a replica has, byte for byte."""
        return b"".join(path.read_bytes() for path in sorted(self.replica(broker_id, topic, partition).glob("*.log")))

    def log_lines(self, broker_id: int) -> list[str]:
        return self.cluster.layout.log(broker_name(broker_id)).read_text(encoding="utf-8").splitlines()

    def complaints(self) -> list[str]:
        """What no broker should ever write: tracebacks, errors."""
        return [
            f"broker {broker_id}: {line}"
            for broker_id in ALL
            for line in self.log_lines(broker_id)
            if ("Traceback" in line or " error " in line[:40] or " critical " in line[:40])
            and not any(expected in line for expected in self.expected_complaints)
        ]
