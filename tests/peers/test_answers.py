"""Requests about offsets, topics and configs that go wrong in some way: Lamina answers them as Kafka does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.wire.codec import encode_request
from tests.broker.raw import RawClient, batch_of, metadata_request
from tests.peers.kafka import Kafka
from tests.peers.lamina import Lamina
from tests.peers.side_by_side import Broker, same

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

LIST_OFFSETS, CREATE_TOPICS, DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 2, 19, 32, 33, 44
TOPIC_RESOURCE, GROUP_RESOURCE, LOGGER_RESOURCE = 2, 32, 8
SET = 0

Brokers = tuple[Broker, Broker]

CONFIGS = [
    ("compression.gzip.level", "10"),
    ("compression.gzip.level", "-1"),
    ("compression.gzip.level", "0"),
    ("compression.lz4.level", "18"),
    ("compression.zstd.level", "23"),
    ("leader.replication.throttled.replicas", "0:1,1:2"),
    ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", "0-1"),
    ("follower.replication.throttled.replicas", ":"),
    ("message.format.version", "3.0"),
    ("message.downconversion.enable", "false"),
    ("unclean.leader.election.enable", "maybe"),
    ("unclean.leader.election.enable", "true"),
    ("min.insync.replicas", "0"),
    ("min.insync.replicas", "2"),
    ("retention.ms", "-2"),
    ("retention.ms", "-1"),
    ("retention.ms", "7d"),
    ("retention.ms", ""),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "compact,compact"),
    ("cleanup.policy", "compact,drop"),
    ("cleanup.policy", ""),
    ("compression.type", "snappy"),
    ("compression.type", "brotli"),
    ("segment.bytes", "13"),
    ("segment.bytes", "99999999999"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("min.cleanable.dirty.ratio", "half"),
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "logappendtime"),
    ("local.retention.ms", "-2"),
    ("local.retention.ms", "-3"),
    ("local.retention.bytes", "1"),
    ("remote.storage.enable", "perhaps"),
    ("flush.messages", "0"),
    ("index.interval.bytes", "-1"),
    ("no.such.config", "1"),
]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, lamina: Lamina) -> Iterator[Brokers]:
    """Kafka first, and Lamina."""
    with Kafka(tmp_path_factory.mktemp("kafka")) as kafka:
        both = (Broker(kafka.bootstrap), Broker(lamina.bootstrap))
        for broker in both:
            create(broker, "empty")
            create(broker, "written")
            broker.produce("written", batch_of((b"a", b"1"), (b"b", b"2"), now_ms=1_700_000_000_000))
        yield both
        for broker in both:
            broker.close()


def create(broker: Broker, name: str, *configs: tuple[str, str | None], **more: Any) -> int:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    topic |= {"configs": [{"name": one, "value": value} for one, value in configs]} | more
    (answer,) = broker.ask(CREATE_TOPICS, 7, topics=[topic], timeout=60_000).topics
    assert isinstance(answer.error_code, int)
    return answer.error_code


# Offsets


@pytest.mark.parametrize("topic", ["empty", "written"])
@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_by_special_timestamps(brokers: Brokers, version: int, topic: str) -> None:
    def offset(broker: Broker, timestamp: int) -> Any:
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
        asked = [{"name": topic, "partitions": [partition]}]
        (told,) = broker.ask(LIST_OFFSETS, version, replica_id=-1, topics=asked, timeout=60_000).topics[0].partitions
        return told.error_code, told.offset, told.timestamp, getattr(told, "leader_epoch", None)

    for timestamp in (*range(-8, 2), 1_700_000_000_000, 1_800_000_000_000):
        same(brokers, lambda broker, timestamp=timestamp: (timestamp, offset(broker, timestamp)))  # type: ignore[misc]


# Topics


def test_topics_with_configs_of_every_kind(brokers: Brokers) -> None:
    def created(broker: Broker) -> Any:
        return {
            f"{name}={value}": create(broker, f"config-{number}", (name, value))
            for number, (name, value) in enumerate(CONFIGS)
        }

    codes = same(brokers, created)
    assert codes["compression.gzip.level=10"] == ErrorCode.INVALID_CONFIG


def test_topics_that_cannot_be_made(brokers: Brokers) -> None:
    lags = [("min.compaction.lag.ms", "2000"), ("max.compaction.lag.ms", "1000")]
    cases: dict[str, Callable[[Broker], int]] = {
        "lags that do not go together": lambda broker: create(broker, "lags", *lags),
        "a null value": lambda broker: create(broker, "null", ("retention.ms", None)),
        "Kafka's own metadata": lambda broker: create(broker, "__cluster_metadata"),
        "no name": lambda broker: create(broker, ""),
        "a dot": lambda broker: create(broker, "."),
        "a bad name": lambda broker: create(broker, "a/b"),
        "a long name": lambda broker: create(broker, "a" * 250),
        "a name that collides": lambda broker: create(broker, "co.llides") or create(broker, "co_llides"),
        "no partitions": lambda broker: create(broker, "none", num_partitions=0),
        "more replicas than brokers": lambda broker: create(broker, "many", replication_factor=3),
        "no replicas": lambda broker: create(broker, "zero", replication_factor=0),
        "there already": lambda broker: create(broker, "written"),
    }
    same(brokers, lambda broker: {case: ask(broker) for case, ask in cases.items()})


def test_more_replicas_asked_for_than_a_topic_has_are_capped(brokers: Brokers) -> None:
    def produced(broker: Broker) -> Any:
        create(broker, "capped", ("min.insync.replicas", "2"))
        batch = batch_of((b"k", b"v"), now_ms=time.time_ns() // 1_000_000)
        deadline = time.monotonic() + 30
        # Kafka's broker may hear that it leads only after the topic was created.
        while (answer := broker.produce("capped", batch)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            assert time.monotonic() < deadline
        return answer.error_code, answer.base_offset

    assert same(brokers, produced) == (0, 0)


# Configs


def test_the_configs_of_a_topic(brokers: Brokers) -> None:
    def described(broker: Broker) -> Any:
        resource = {"resource_type": TOPIC_RESOURCE, "resource_name": "empty", "configuration_keys": None}
        (told,) = broker.ask(DESCRIBE_CONFIGS, 4, resources=[resource], include_documentation=False).results
        facts = {
            one.name: (one.config_type, one.is_sensitive, one.read_only, one.value, one.config_source)
            for one in told.configs
        }
        return told.error_code, facts

    kafkas, ours = (described(broker) for broker in brokers)
    assert ours[0] == kafkas[0] == 0
    # Kafka's controller writes this one down for the whole cluster, for the sake of eligible leader replicas.
    for told in (kafkas[1], ours[1]):
        told["min.insync.replicas"] = told["min.insync.replicas"][:-1]
    assert {name: ours[1].get(name) for name in kafkas[1]} == kafkas[1]


def test_configs_set_one_by_one(brokers: Brokers) -> None:
    def changed(broker: Broker, name: str, value: str | None, operation: int, resource: str = "empty") -> int:
        config = {"name": name, "config_operation": operation, "value": value}
        asked = {"resource_type": TOPIC_RESOURCE, "resource_name": resource, "configs": [config]}
        (told,) = broker.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=True).responses
        assert isinstance(told.error_code, int)
        return told.error_code

    def all_changed(broker: Broker) -> Any:
        codes: dict[Any, int] = {(name, value): changed(broker, name, value, SET) for name, value in CONFIGS}
        for operation in range(4):
            codes["null", operation] = changed(broker, "retention.ms", None, operation)
            codes["a list", operation] = changed(broker, "cleanup.policy", "compact", operation)
        for name in ("", "a/b", "absent", "a" * 250):
            codes["topic", name] = changed(broker, "retention.ms", "1", SET, name)
        return codes

    same(brokers, all_changed)


@pytest.mark.parametrize("name", ["", "a/b", "absent", "a" * 250, "empty"])
def test_configs_set_all_at_once(brokers: Brokers, name: str) -> None:
    def altered(broker: Broker, *configs: tuple[str, str | None]) -> int:
        asked = {
            "resource_type": TOPIC_RESOURCE,
            "resource_name": name,
            "configs": [{"name": one, "value": value} for one, value in configs],
        }
        (told,) = broker.ask(ALTER_CONFIGS, 2, resources=[asked], validate_only=True).responses
        assert isinstance(told.error_code, int)
        return told.error_code

    same(brokers, altered)
    same(brokers, lambda broker: altered(broker, ("retention.ms", "1")))
    same(brokers, lambda broker: altered(broker, ("retention.ms", None)))
    same(brokers, lambda broker: altered(broker, ("retention.ms", "x")))


# Clients


def test_a_client_id_that_is_no_text(brokers: Brokers) -> None:
    def answered(broker: Broker) -> Any:
        frame = bytearray(encode_request(metadata_request("empty", create=False), 1, "abc"))
        at = frame.index(b"abc")
        frame[at : at + 3] = b"\xff\xfe\xfd"
        with RawClient(broker) as client:
            client.send(bytes(frame))
            return [topic.error_code for topic in client.answer(3, 12).topics]

    assert same(brokers, answered) == [0]
