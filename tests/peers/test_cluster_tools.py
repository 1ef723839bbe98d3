"""The command-line tools that come with Kafka, against three Lamina brokers, one of which dies and comes back."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import pytest

from tests.broker.process import eventually
from tests.cluster.three_brokers import ALL, WAIT_SECONDS, ThreeBrokers
from tests.peers.driver import Record
from tests.peers.kafka import KafkaFailedError, driver_of, run_tool

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


class Row(NamedTuple):
    """A partition, as kafka-topics describes it."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: set[int]


def topics(brokers: ThreeBrokers, *arguments: str) -> str:
    return run_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", brokers.bootstrap, *arguments)


def configs(brokers: ThreeBrokers, *arguments: str) -> str:
    return run_tool("kafka.admin.ConfigCommand", "--bootstrap-server", brokers.bootstrap, *arguments)


def create(brokers: ThreeBrokers, topic: str, partitions: int, *arguments: str) -> None:
    sizes = ("--partitions", str(partitions), "--replication-factor", "3")
    assert f"Created topic {topic}." in topics(brokers, "--create", "--topic", topic, *sizes, *arguments)


def describe(brokers: ThreeBrokers, topic: str, *arguments: str) -> dict[int, Row]:
    """The partitions that were asked for, each with its row."""
    row = r"Partition: (\d+)\s+Leader: (\d+|none)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]*)"
    return {
        int(partition): Row(-1 if leader == "none" else int(leader), ids_in(replicas), set(ids_in(in_sync)))
        for partition, leader, replicas, in_sync in re.findall(
            row, topics(brokers, "--describe", "--topic", topic, *arguments)
        )
    }


def ids_in(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word)


def test_kafka_topics_makes_describes_grows_and_deletes_a_topic_of_three_copies(
    brokers: ThreeBrokers, topic: str
) -> None:
    create(brokers, topic, 3, "--config", "segment.bytes=1048576")
    described = topics(brokers, "--describe", "--topic", topic)
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: 3\s+Configs: .*segment.bytes=1048576", described)
    topics(brokers, "--alter", "--topic", topic, "--partitions", "6")
    rows = describe(brokers, topic)
    assert set(rows) == set(range(6))
    assert {row.leader for row in rows.values()} == set(ALL), "every broker leads something"
    for row in rows.values():
        assert (row.leader, set(row.replicas), row.in_sync) == (row.replicas[0], set(ALL), set(ALL))
    topics(brokers, "--delete", "--topic", topic)
    assert topic not in topics(brokers, "--list").split()
    eventually(lambda: not any(brokers.replica(one, topic).exists() for one in ALL), WAIT_SECONDS)


def test_kafka_topics_places_copies_where_it_is_told(brokers: ThreeBrokers, topic: str) -> None:
    topics(brokers, "--create", "--topic", topic, "--replica-assignment", "3:1,2:1")
    rows = describe(brokers, topic)
    assert {partition: row.replicas for partition, row in rows.items()} == {0: (3, 1), 1: (2, 1)}
    assert {partition: row.leader for partition, row in rows.items()} == {0: 3, 1: 2}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--partitions", "1", "--replication-factor", "4"), "InvalidReplicationFactorException"),
        (("--replica-assignment", "1:2:9"), "InvalidReplicaAssignmentException"),
    ],
    ids=["more copies than brokers", "a broker that is absent"],
)
def test_kafka_topics_is_told_why_a_topic_cannot_be_made(
    brokers: ThreeBrokers, topic: str, arguments: tuple[str, ...], error: str
) -> None:
    with pytest.raises(KafkaFailedError, match=error):
        topics(brokers, "--create", "--topic", topic, *arguments)
    assert topic not in topics(brokers, "--list").split()


def test_kafka_topics_is_told_why_a_topic_cannot_be_changed(brokers: ThreeBrokers, topic: str) -> None:
    create(brokers, topic, 2)
    with pytest.raises(KafkaFailedError, match="TopicExistsException"):
        create(brokers, topic, 2)
    with pytest.raises(KafkaFailedError, match="InvalidPartitionsException"):
        topics(brokers, "--alter", "--topic", topic, "--partitions", "1")
    with pytest.raises(KafkaFailedError, match="does not exist"):
        topics(brokers, "--describe", "--topic", f"{topic}-absent")


def test_kafka_topics_shows_what_lacks_copies_while_a_broker_is_dead(brokers: ThreeBrokers, topic: str) -> None:
    create(brokers, topic, 3, "--config", "min.insync.replicas=3")
    assert describe(brokers, topic, "--under-replicated-partitions") == {}
    killed, alive = 2, {1, 3}
    brokers.kill(killed)
    brokers.await_in_sync(topic, alive)
    rows = describe(brokers, topic, "--under-replicated-partitions")
    assert set(rows) == {0, 1, 2}
    for row in rows.values():
        assert (row.leader in alive, set(row.replicas), row.in_sync) == (True, set(ALL), alive)
    assert set(describe(brokers, topic, "--under-min-isr-partitions")) == {0, 1, 2}
    assert describe(brokers, topic, "--unavailable-partitions") == {}
    brokers.restart(killed)
    brokers.await_in_sync(topic)
    assert describe(brokers, topic, "--under-replicated-partitions") == {}
    assert all(row.in_sync == set(ALL) for row in describe(brokers, topic).values())


def test_kafka_topics_shows_a_partition_whose_only_copy_is_dead(brokers: ThreeBrokers, topic: str) -> None:
    topics(brokers, "--create", "--topic", topic, "--replica-assignment", "1,2,3")
    brokers.kill(3)
    eventually(lambda: brokers.leader(topic, 2) == -1, WAIT_SECONDS)
    assert describe(brokers, topic, "--unavailable-partitions") == {2: Row(-1, (3,), {3})}
    with pytest.raises(KafkaFailedError, match="InvalidReplicationFactorException"):
        create(brokers, f"{topic}-later", 1)
    brokers.restart(3)
    eventually(lambda: brokers.leader(topic, 2) == 3, WAIT_SECONDS)
    assert describe(brokers, topic, "--unavailable-partitions") == {}


def test_kafka_configs_sets_describes_and_deletes_a_config_of_a_topic(brokers: ThreeBrokers, topic: str) -> None:
    create(brokers, topic, 1)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    configs(brokers, *of_topic, "--alter", "--add-config", "retention.ms=86400000")
    assert "retention.ms=86400000" in configs(brokers, *of_topic, "--describe")
    configs(brokers, *of_topic, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in configs(brokers, *of_topic, "--describe")
    with pytest.raises(KafkaFailedError, match="InvalidConfigurationException"):
        configs(brokers, *of_topic, "--alter", "--add-config", "min.insync.replicas=none")


def test_kafka_configs_of_one_broker_and_of_all(brokers: ThreeBrokers) -> None:
    def of(broker_id: int) -> tuple[str, ...]:
        return ("--entity-type", "brokers", "--entity-name", str(broker_id))

    of_all = ("--entity-type", "brokers", "--entity-default")
    configs(brokers, *of_all, "--alter", "--add-config", "log.retention.ms=7200000")
    configs(brokers, *of(2), "--alter", "--add-config", "log.retention.ms=3600000")
    assert "log.retention.ms=7200000" in configs(brokers, *of_all, "--describe")
    for broker_id, wanted in ((2, "3600000"), (3, "7200000")):
        assert f"log.retention.ms={wanted}" in configs(brokers, *of(broker_id), "--describe", "--all")
    configs(brokers, *of(2), "--alter", "--delete-config", "log.retention.ms")
    configs(brokers, *of_all, "--alter", "--delete-config", "log.retention.ms")


def test_offsets_and_groups_are_the_same_before_and_after_their_broker_died(brokers: ThreeBrokers, topic: str) -> None:
    create(brokers, topic, 3)
    group = f"{topic}-group"

    def offsets(time: str) -> list[str]:
        arguments = ("--bootstrap-server", brokers.bootstrap, "--topic", topic, "--time", time)
        printed = run_tool("org.apache.kafka.tools.GetOffsetShell", *arguments)
        # Beside them are warnings of a connection to the broker that is dead.
        return [line for line in printed.splitlines() if line.startswith(f"{topic}:")]

    def committed() -> list[list[str]]:
        arguments = ("--bootstrap-server", brokers.bootstrap, "--describe", "--group", group)
        printed = run_tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", *arguments)
        return sorted(line.split()[1:6] for line in printed.splitlines() if line.startswith(group))

    with driver_of(brokers.bootstrap) as driver:
        driver.open_producer("producer", {})
        for partition in range(3):
            driver.send("producer", topic, [Record(None, b"value")] * (10 + partition), partition)
        driver.consume(group, topic, 33)
    ends = [f"{topic}:{partition}:{10 + partition}" for partition in range(3)]
    starts = [f"{topic}:{partition}:0" for partition in range(3)]
    wanted = [[topic, str(partition), str(10 + partition), str(10 + partition), "0"] for partition in range(3)]
    assert (offsets("-1"), offsets("-2"), committed()) == (ends, starts, wanted)
    coordinator = brokers.leader("__consumer_offsets")
    brokers.kill(coordinator)
    brokers.await_leader("__consumer_offsets", other_than=coordinator)
    brokers.await_in_sync(topic, set(ALL) - {coordinator})
    assert (offsets("-1"), offsets("-2"), committed()) == (ends, starts, wanted)


def test_tools_find_all_brokers(brokers: ThreeBrokers, topic: str) -> None:
    create(brokers, topic, 1)
    where = ("--bootstrap-server", brokers.bootstrap)
    printed = run_tool("org.apache.kafka.tools.BrokerApiVersionsCommand", *where)
    assert sorted(map(int, re.findall(r"\(id: (\d+) rack: null[^)]*\) -> ", printed))) == list(ALL)
    printed = run_tool("org.apache.kafka.tools.LogDirsCommand", *where, "--describe", "--topic-list", topic)
    (described,) = (json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    assert {
        broker["broker"]: [
            partition["partition"] for directory in broker["logDirs"] for partition in directory["partitions"]
        ]
        for broker in described["brokers"]
    } == {broker_id: [f"{topic}-0"] for broker_id in ALL}


def test_kafka_transactions_cannot_write_markers_where_brokers_have_a_listener_of_their_own(
    brokers: ThreeBrokers, topic: str
) -> None:
    """On the clients' listener nobody is told of WriteTxnMarkers: whoever sends it could end anybody's transaction."""
    create(brokers, topic, 1)
    of_partition = ("--topic", topic, "--partition", "0")
    of_producer = ("--producer-id", "1", "--producer-epoch", "0", "--coordinator-epoch", "0")
    tool = ("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", brokers.bootstrap)
    with pytest.raises(KafkaFailedError, match="does not support WRITE_TXN_MARKERS"):
        run_tool(*tool, "abort", *of_partition, *of_producer)
