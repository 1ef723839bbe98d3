from typing import Any
from uuid import UUID

import pytest

from lamina.errors import ErrorCode
from lamina.image.image import ConfigResource, ResourceType
from tests.broker.in_process import InProcessBroker

API_KEY = 19


def create(broker: InProcessBroker, *topics: dict[str, Any], version: int = 7, validate_only: bool = False) -> Any:
    whole = [{"num_partitions": -1, "replication_factor": -1, **topic} for topic in topics]
    return broker.ask(API_KEY, version, topics=whole, validate_only=validate_only).topics


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_makes_a_topic_that_is_ready_at_once(broker: InProcessBroker, version: int) -> None:
    [made] = create(broker, {"name": "t", "num_partitions": 3, "replication_factor": 1}, version=version)
    assert (made.name, made.error_code, made.error_message) == ("t", ErrorCode.NONE, None)
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (3, 1)
        policy = next(config for config in made.configs if config.name == "cleanup.policy")
        assert (policy.value, policy.config_source, policy.read_only, policy.is_sensitive) == (
            "delete",
            5,
            False,
            False,
        )
    if version >= 7:
        assert made.topic_id == UUID(bytes=broker.parts.metadata.image.topics["t"].id)
    assert broker.produce("t", 1, partition=2) == 0


def test_minus_one_means_the_brokers_defaults(broker: InProcessBroker) -> None:
    broker.restart(**{"num.partitions": "4"})
    [made] = create(broker, {"name": "t"})
    assert (made.num_partitions, made.replication_factor) == (4, 1)


def test_configs_are_set_and_told_with_their_source(broker: InProcessBroker) -> None:
    [made] = create(broker, {"name": "t", "configs": [{"name": "retention.ms", "value": "1000"}]})
    retention = next(config for config in made.configs if config.name == "retention.ms")
    assert (retention.value, retention.config_source) == ("1000", 1)
    assert broker.parts.metadata.config_of("t").retention_ms == 1000
    broker.restart()
    assert broker.parts.metadata.config_of("t").retention_ms == 1000


def test_of_a_config_that_comes_twice_the_last_value_holds(broker: InProcessBroker) -> None:
    twice = [{"name": "retention.ms", "value": value} for value in ("1000", "2000")]
    [made] = create(broker, {"name": "t", "configs": twice})
    assert made.error_code == 0
    assert broker.parts.metadata.config_of("t").retention_ms == 2000


def test_replicas_may_be_assigned_by_hand(broker: InProcessBroker) -> None:
    assignments = [{"partition_index": index, "broker_ids": [1]} for index in (1, 0)]
    [made] = create(broker, {"name": "t", "assignments": assignments})
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 1)


def test_validation_alone_makes_nothing_and_tells_no_id(broker: InProcessBroker) -> None:
    [made] = create(broker, {"name": "t", "num_partitions": 2}, validate_only=True)
    assert (made.error_code, made.num_partitions, made.topic_id) == (0, 2, None)
    assert not broker.parts.metadata.image.topics


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "here"}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"name": "t", "num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "t", "replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "t", "replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "t", "configs": [{"name": "retention.ms", "value": "x"}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "t", "configs": [{"name": "no.such", "value": "x"}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "t", "configs": [{"name": "retention.ms", "value": None}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "here", "configs": [{"name": "retention.ms", "value": None}]}, ErrorCode.TOPIC_ALREADY_EXISTS),
        (
            {"name": "t", "replication_factor": 2, "configs": [{"name": "retention.ms", "value": "x"}]},
            ErrorCode.INVALID_CONFIG,
        ),
        (
            {
                "name": "t",
                "configs": [
                    {"name": "min.compaction.lag.ms", "value": "2"},
                    {"name": "max.compaction.lag.ms", "value": "1"},
                ],
            },
            ErrorCode.INVALID_CONFIG,
        ),
        ({"name": "__cluster_metadata"}, ErrorCode.INVALID_REQUEST),
        (
            {"name": "t", "assignments": [{"partition_index": 0, "broker_ids": [9]}]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            {"name": "t", "assignments": [{"partition_index": 0, "broker_ids": [1]}] * 2},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            {"name": "t", "num_partitions": 1, "assignments": [{"partition_index": 0, "broker_ids": [1]}]},
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_a_topic_that_cannot_be_made_gets_its_error_and_the_others_are_made(
    broker: InProcessBroker, topic: dict[str, Any], code: ErrorCode
) -> None:
    broker.create("here")
    bad, good = create(broker, topic, {"name": "good"})
    assert bad.error_code == code
    assert bad.error_message
    assert (bad.num_partitions, bad.replication_factor, bad.topic_id) == (-1, -1, None)
    assert good.error_code == 0
    assert set(broker.parts.metadata.image.topics) == {"here", "good"}


def test_a_name_that_comes_twice_is_refused_once(broker: InProcessBroker) -> None:
    first, other = create(broker, {"name": "t"}, {"name": "other"}, {"name": "t"})
    assert (first.name, first.error_code) == ("t", ErrorCode.INVALID_REQUEST)
    assert (other.name, other.error_code) == ("other", 0)


def test_more_partitions_than_one_request_may_make_are_refused_with_all_its_topics(broker: InProcessBroker) -> None:
    broker.restart(**{"num.partitions": "6000"})
    both = create(broker, {"name": "a"}, {"name": "b"})
    assert [topic.error_code for topic in both] == [ErrorCode.POLICY_VIOLATION] * 2


def test_a_failed_topic_leaves_no_configs_behind(broker: InProcessBroker) -> None:
    create(broker, {"name": "t", "num_partitions": 0, "configs": [{"name": "retention.ms", "value": "1"}]})
    assert not broker.parts.metadata.image.configs_of(ConfigResource(ResourceType.TOPIC, "t"))
