"""Clients that move from one cluster to another and back: Kafka's verifiable producer, and groups of its consumer.

Owns what they wrote and read, in both clusters together. Must not know how records come from one to the other.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.broker.process import eventually
from tests.cluster.three_brokers import WAIT_SECONDS
from tests.peers.tool_process import ToolProcess

Offsets = dict[int, int]
"""By partition."""
_PRODUCER = "retries=2147483647\nenable.idempotence=true\n"
_CONSUMER = "isolation.level=read_committed\n"


class Cluster:
    """What any Kafka tool sees of one topic in it."""

    def __init__(self, name: str, bootstrap: str, topic: str, partitions: int) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def begins(self) -> Offsets:
        return self._listed(OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def ends(self) -> Offsets:
        return self._listed(OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def _listed(self, spec: OffsetSpec) -> Offsets:
        asked = {TopicPartition(self.topic, one): spec for one in range(self.partitions)}
        told = self._admin.list_offsets(asked, request_timeout=WAIT_SECONDS)
        return {one.partition: int(future.result(WAIT_SECONDS).offset) for one, future in told.items()}

    def committed(self, group: str) -> Offsets:
        asked = [ConsumerGroupTopicPartitions(group)]
        (future,) = self._admin.list_consumer_group_offsets(asked, request_timeout=WAIT_SECONDS).values()
        told = future.result(WAIT_SECONDS).topic_partitions or []
        return {one.partition: one.offset for one in told if one.topic == self.topic and one.offset >= 0}

    def last_values(self) -> list[bytes]:
        """The newest record of each partition; none may be of an aborted transaction."""
        places = [TopicPartition(self.topic, partition, end - 1) for partition, end in self.ends().items()]
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "unused", "log_level": 0})
        consumer.assign(places)
        found: dict[int, bytes] = {}
        try:
            while len(found) < len(places):
                message = consumer.poll(WAIT_SECONDS)
                assert message is not None
                if message.error() is None:
                    found[int(message.partition() or 0)] = message.value() or b""
        finally:
            consumer.close()
        return [value for _, value in sorted(found.items())]

    def delete_records(self, before: Offsets) -> None:
        asked = [TopicPartition(self.topic, partition, offset) for partition, offset in before.items()]
        for future in self._admin.delete_records(asked, request_timeout=WAIT_SECONDS).values():
            future.result(WAIT_SECONDS)


class Writer:
    """A producer, one process after the other; each begins its values with a number of its own."""

    def __init__(self, per_second: int, directory: Path) -> None:
        self.acked: set[str] = set()
        self._per_second = per_second
        self._config = directory / "producer.properties"
        self._config.write_text(_PRODUCER)
        self._starts = 0
        self._tool: ToolProcess
        self._running = ExitStack()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._running.close()

    def start(self, cluster: Cluster) -> None:
        self._starts += 1
        where = ("--bootstrap-server", cluster.bootstrap, "--topic", cluster.topic, "--acks", "-1")
        # Keys spread records evenly: without them all go to one partition until a batch of it is full.
        how = ("--throughput", str(self._per_second), "--value-prefix", str(self._starts), "--repeating-keys", "60")
        tool = ToolProcess(
            "org.apache.kafka.tools.VerifiableProducer", *where, *how, "--producer.config", str(self._config)
        )
        self._tool = self._running.enter_context(tool)

    def await_acked(self, records: int) -> None:
        """So many more than now."""
        done = len(self._tool.named("producer_send_success"))
        self._tool.await_named("producer_send_success", done + records)

    def stop(self) -> None:
        """Once all that it sent is answered."""
        self._tool.stop()
        assert self._tool.named("producer_send_error") == []
        self.acked |= {str(event["value"]) for event in self._tool.named("producer_send_success")}
        self._running.close()


class Read(NamedTuple):
    partition: int
    value: str


class Group:
    """A consumer group of one member, that is in one cluster at a time and reads what is committed."""

    def __init__(self, name: str, protocol: str, directory: Path) -> None:
        self.name = name
        self.reads: list[Read] = []
        """In order, of all clusters so far."""
        self._protocol = protocol
        self._config = directory / "consumer.properties"
        self._config.write_text(_CONSUMER)
        self._tool: ToolProcess
        self._running = ExitStack()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._running.close()

    def start(self, cluster: Cluster) -> None:
        where = ("--bootstrap-server", cluster.bootstrap, "--topic", cluster.topic, "--group-id", self.name)
        # A group that is new in the cluster must not begin anywhere by itself.
        policy = "none" if self.reads else "earliest"
        options = ("--group-protocol", self._protocol, "--reset-policy", policy, "--verbose")
        tool = ToolProcess(
            "org.apache.kafka.tools.VerifiableConsumer", *where, *options, "--consumer.config", str(self._config)
        )
        self._tool = self._running.enter_context(tool)

    def await_reads(self, records: int) -> None:
        """So many more than now."""
        self._tool.await_named("record_data", len(self._tool.named("record_data")) + records)

    def await_values(self, values: set[str]) -> None:
        def has_them() -> bool:
            return values <= {str(event["value"]) for event in self._tool.named("record_data")}

        eventually(has_them, WAIT_SECONDS)

    def stop(self) -> None:
        """It commits what it read, and leaves."""
        self._tool.stop()
        self.reads += [Read(event["partition"], str(event["value"])) for event in self._tool.named("record_data")]
        self._running.close()


def await_followed(group: Group, source: Cluster, target: Cluster, most_again: int) -> None:
    """Until the group has at most so much more to read of a partition in the target than in the source."""

    def lags(cluster: Cluster) -> Offsets:
        committed = cluster.committed(group.name)
        # Before anything is copied there is no topic.
        ends = cluster.ends() if committed else {}
        return {partition: ends[partition] - offset for partition, offset in committed.items()}

    def is_followed() -> bool:
        there, here = lags(target), lags(source)
        return all(one in there and there[one] <= here[one] + most_again for one in here)

    eventually(is_followed, WAIT_SECONDS, lambda: (lags(source), lags(target)))


def await_copied(source: Cluster, target: Cluster) -> None:
    """Until the target ends with what the source ends with; nobody writes there any more."""
    wanted = source.last_values()
    eventually(lambda: target.last_values() == wanted, WAIT_SECONDS, lambda: (target.last_values(), wanted))
