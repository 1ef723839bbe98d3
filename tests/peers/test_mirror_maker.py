"""MirrorMaker 2 moves a topic and its groups from a real Kafka to three Lamina brokers and back, while clients work.

The steps are those of docs/moving.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.cluster.three_brokers import WAIT_SECONDS, ThreeBrokers
from tests.cluster.verifiable_consumer import read_all
from tests.peers.connect import ConnectProcess, ConnectWorker, MirrorMaker
from tests.peers.driver import Driver
from tests.peers.kafka import Kafka, driver_of
from tests.peers.moving import Cluster, Group, Offsets, Writer, await_copied, await_followed

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

PARTITIONS = 3
PER_SECOND = 300
DELETED = {0: 40, 1: 75, 2: 110}
ABORTED = 10
"""So many records of each partition are gone before anything is copied, and so many of each are not to be copied."""
OFFSET_LAG_MAX = 100
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
SOON = {
    "refresh.topics.interval.seconds": "2",
    "refresh.groups.interval.seconds": "2",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
}
"""What takes minutes by default."""
COPYING = {
    "sync.group.offsets.enabled": "true",
    "sync.topic.acls.enabled": "false",
    "replication.policy.class": IDENTITY,
    "offset.lag.max": str(OFFSET_LAG_MAX),
}


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    with Kafka(tmp_path / "kafka") as node:
        yield node
        node.stop()


def test_a_topic_and_its_groups_move_to_lamina_and_back_under_load(
    kafka: Kafka, brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    old, new = (
        Cluster(name, bootstrap, topic, PARTITIONS)
        for name, bootstrap in (("kafka", kafka.bootstrap), ("lamina", brokers.bootstrap))
    )
    groups = [Group(f"{topic}-{protocol}", protocol, tmp_path) for protocol in ("classic", "consumer")]
    with ExitStack() as running:
        writer = running.enter_context(Writer(PER_SECOND, tmp_path))
        for group in groups:
            running.enter_context(group)
        with driver_of(old.bootstrap) as driver:
            begin(driver, old, writer, groups)
        names = [group.name for group in groups]
        with mirror_maker(old, new, names, tmp_path / "in") as mirror:
            move_groups(groups, old, new)
            writer.stop()
            await_copied(old, new)
            mirror.stop()
        with worker_back(new, old, names, tmp_path / "back") as worker:
            writer.start(new)
            writer.await_acked(10 * PER_SECOND)
            move_groups(groups, new, old)
            writer.stop()
            await_copied(new, old)
            worker.stop()
        writer.start(old)
        writer.await_acked(2 * PER_SECOND)
        writer.stop()
        judge(old, new, writer, groups)


def begin(driver: Driver, old: Cluster, writer: Writer, groups: list[Group]) -> None:
    """A Kafka in use, whose topic does not begin at its first offset and has offsets that nobody reads."""
    driver.create_topic(old.topic, partitions=PARTITIONS)
    writer.start(old)
    for group in groups:
        group.start(old)
        group.await_reads(5 * PER_SECOND)
    old.delete_records(DELETED)
    assert old.begins() == DELETED
    producer = Producer({"bootstrap.servers": old.bootstrap, "transactional.id": "aborted", "log_level": 0})
    producer.init_transactions(WAIT_SECONDS)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        for _ in range(ABORTED):
            producer.produce(old.topic, b"aborted", partition=partition)
    producer.flush(WAIT_SECONDS)
    producer.abort_transaction(WAIT_SECONDS)
    for group in groups:
        group.await_reads(PER_SECOND)


@contextmanager
def mirror_maker(source: Cluster, target: Cluster, groups: list[str], directory: Path) -> Iterator[ConnectProcess]:
    """The whole of MirrorMaker in one process, in one direction."""
    link = f"{source.name}->{target.name}"
    internal = ("config.storage", "offset.storage", "status.storage", "checkpoints.topic", "heartbeats.topic")
    properties = {
        "clusters": f"{source.name}, {target.name}",
        f"{source.name}.bootstrap.servers": source.bootstrap,
        f"{target.name}.bootstrap.servers": target.bootstrap,
        f"{link}.enabled": "true",
        f"{link}.topics": source.topic,
        f"{link}.groups": ", ".join(groups),
        f"{source.name}.consumer.isolation.level": "read_committed",
        f"{target.name}.producer.enable.idempotence": "true",
        "emit.heartbeats.enabled": "false",
        "replication.factor": "3",
        **{f"{kind}.replication.factor": "3" for kind in internal},
        "offset-syncs.topic.replication.factor": "1",
        **COPYING,
        **SOON,
    }
    with MirrorMaker(properties, directory) as mirror:
        yield mirror


@contextmanager
def worker_back(source: Cluster, target: Cluster, groups: list[str], directory: Path) -> Iterator[ConnectProcess]:
    """A Connect worker beside the target, that copies what comes to the source from now on: nobody writes yet."""
    common = {
        "source.cluster.alias": source.name,
        "target.cluster.alias": target.name,
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "offset-syncs.topic.replication.factor": "3",
        **COPYING,
        **SOON,
    }
    records = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "topics": source.topic,
        "tasks.max": "2",
        "source.consumer.isolation.level": "read_committed",
        **common,
    }
    offsets = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
        "groups": ", ".join(groups),
        "checkpoints.topic.replication.factor": "1",
        **common,
    }
    with ConnectWorker(target.bootstrap, "way-back", 1, directory) as worker:
        assert isinstance(worker, ConnectWorker)
        worker.await_start()
        worker.ask("POST", "/connectors", {"name": "records", "config": records, "initial_state": "STOPPED"})
        worker.ask("PATCH", "/connectors/records/offsets", copied_up_to(source, source.ends()))
        worker.ask("PUT", "/connectors/records/resume")
        worker.ask("POST", "/connectors", {"name": "offsets", "config": offsets})
        worker.await_running("records")
        worker.await_running("offsets")
        yield worker


def copied_up_to(source: Cluster, ends: Offsets) -> dict[str, object]:
    """What the connector is told: the last record of each partition that the target has already."""
    return {
        "offsets": [
            {
                "partition": {"cluster": source.name, "topic": source.topic, "partition": partition},
                "offset": {"offset": end - 1},
            }
            for partition, end in ends.items()
            if end > 0
        ]
    }


def move_groups(groups: list[Group], source: Cluster, target: Cluster) -> None:
    """One after the other, while records are written to the source and copied.

    Only once its offsets are followed closely: those that a group committed long ago are translated roughly.
    """
    for group in groups:
        await_followed(group, source, target, 2 * OFFSET_LAG_MAX)
        group.stop()
        await_followed(group, source, target, 2 * OFFSET_LAG_MAX)
        group.start(target)
        group.await_reads(2 * PER_SECOND)


def judge(old: Cluster, new: Cluster, writer: Writer, groups: list[Group]) -> None:
    """Kafka has all that was ever acknowledged, once, in order; groups read all of it in this order."""
    final = read_all(old.bootstrap, old.topic, PARTITIONS)
    values = {partition: [value.decode() for value in records.values()] for (_, partition), records in final.items()}
    for group in groups:
        group.await_values({values[partition][-1] for partition in range(PARTITIONS)})
        group.stop()
    kept = [value for one in values.values() for value in one]
    deleted = {read.value for read in groups[0].reads} - set(kept)
    assert len(deleted) == sum(DELETED.values())
    assert writer.acked - deleted == set(kept)
    print(f"{len(kept) - len(set(kept))} of {len(kept)} records were copied twice")
    for group in groups:
        again = len(group.reads) - len(set(group.reads))
        print(f"{group.name} read {len(set(group.reads))} records, and {again} of them again")
        for partition in range(PARTITIONS):
            first_reads = dict.fromkeys(read.value for read in group.reads if read.partition == partition)
            in_order = [value for value in first_reads if value not in deleted]
            assert in_order == list(dict.fromkeys(values[partition])), f"{group.name} skipped something"
    assert set(new.begins().values()) == {0}
    copied = read_all(new.bootstrap, new.topic, PARTITIONS, "read_uncommitted")
    assert b"aborted" not in {value for records in copied.values() for value in records.values()}
