from typing import Any

import pytest

from lamina.broker.metadata import config_changes
from lamina.errors import ErrorCode
from lamina.image.configs import OperationType
from lamina.image.image import ConfigResource, ResourceType
from lamina.settings.definition import SettingError
from tests.broker.in_process import InProcessBroker

ALTER = 33
INCREMENTAL = 44
TOPIC = 2
BROKER = 4
SET, DELETE, APPEND, SUBTRACT = OperationType


def resource(resource_type: int, name: str, *configs: tuple[str, str | None, int]) -> dict[str, Any]:
    return {
        "resource_type": resource_type,
        "resource_name": name,
        "configs": [{"name": key, "value": value, "config_operation": type_} for key, value, type_ in configs],
    }


def alter(broker: InProcessBroker, *resources: dict[str, Any], key: int = INCREMENTAL, **flags: Any) -> Any:
    return broker.ask(key, 1, resources=resources, **flags).responses


def topic_configs(broker: InProcessBroker, name: str = "t") -> dict[str, str]:
    return dict(broker.parts.metadata.image.configs_of(ConfigResource(ResourceType.TOPIC, name)))


@pytest.mark.parametrize("version", range(2))
def test_every_version_of_the_incremental_one_sets_a_config_that_holds_at_once_and_stays(
    broker: InProcessBroker, version: int
) -> None:
    broker.create("t", flush_ms="5")
    asked = resource(TOPIC, "t", ("retention.ms", "1000", SET))
    [response] = broker.ask(INCREMENTAL, version, resources=[asked]).responses
    assert (response.resource_type, response.resource_name) == (TOPIC, "t")
    assert (response.error_code, response.error_message) == (0, None)
    assert broker.parts.partitions.get("t", 0).log.config.retention_ms == 1000
    broker.restart()
    assert broker.parts.partitions.get("t", 0).log.config.retention_ms == 1000
    assert topic_configs(broker) == {"flush.ms": "5", "retention.ms": "1000"}


@pytest.mark.parametrize("version", range(3))
def test_every_version_of_the_old_one_replaces_all_that_is_set(broker: InProcessBroker, version: int) -> None:
    broker.create("t", flush_ms="5")
    asked = resource(TOPIC, "t", ("retention.ms", "1000", SET))
    [response] = broker.ask(ALTER, version, resources=[asked]).responses
    assert (response.resource_type, response.resource_name, response.error_code) == (TOPIC, "t", 0)
    assert topic_configs(broker) == {"retention.ms": "1000"}
    assert alter(broker, resource(TOPIC, "t"), key=ALTER)[0].error_code == 0
    assert topic_configs(broker) == {}


def test_lists_are_added_to_and_taken_from_and_configs_deleted(broker: InProcessBroker) -> None:
    broker.create("t", flush_ms="5")
    alter(broker, resource(TOPIC, "t", ("cleanup.policy", "compact", APPEND), ("flush.ms", None, DELETE)))
    assert topic_configs(broker) == {"cleanup.policy": "delete,compact"}
    alter(broker, resource(TOPIC, "t", ("cleanup.policy", "delete", SUBTRACT)))
    assert topic_configs(broker) == {"cleanup.policy": "compact"}
    assert broker.parts.partitions.get("t", 0).log.config.compact


def test_validation_alone_changes_nothing(broker: InProcessBroker) -> None:
    broker.create("t")
    good, bad = alter(
        broker,
        resource(TOPIC, "t", ("retention.ms", "1000", SET)),
        resource(BROKER, "1", ("log.retention.ms", "x", SET)),
        validate_only=True,
    )
    assert (good.error_code, bad.error_code) == (0, ErrorCode.INVALID_REQUEST)
    assert topic_configs(broker) == {}


@pytest.mark.parametrize("name", ["", "1"])
def test_a_brokers_config_reaches_every_topic_that_has_none_of_its_own(broker: InProcessBroker, name: str) -> None:
    for number in range(20):
        broker.create(f"t{number}")
    broker.create("own", retention_ms="7")
    [response] = alter(broker, resource(BROKER, name, ("log.retention.ms", "1000", SET)))
    assert response.error_code == 0
    retention = {partition.topic: partition.log.config.retention_ms for partition in broker.parts.partitions}
    assert retention.pop("own") == 7
    assert set(retention.values()) == {1000}
    broker.restart()
    assert broker.parts.partitions.get("t3", 0).log.config.retention_ms == 1000
    alter(broker, resource(BROKER, name, ("log.retention.ms", None, DELETE)))
    assert broker.parts.partitions.get("t3", 0).log.config.retention_ms == 7 * 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (resource(TOPIC, "none", ("flush.ms", "1", SET)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(TOPIC, "none", ("flush.ms", "x", SET)), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "none", ("flush.ms", None, SET)), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "", ("flush.ms", "1", SET)), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "", ("flush.ms", "x", SET)), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, ""), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "a b", ("flush.ms", "x", SET)), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (resource(TOPIC, "."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (resource(TOPIC, "x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (resource(TOPIC, "__cluster_metadata"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(TOPIC, "t", ("flush.ms", "x", SET)), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("compression.gzip.level", "10", SET)), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("message.format.version", "3.0", SET)), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("follower.replication.throttled.replicas", "1", SET)), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("no.such", "x", SET)), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("flush.ms", None, SET)), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "t", ("flush.ms", "1", SET), ("flush.ms", "2", SET)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("log.retention.ms", "x", SET)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("log.dirs", "/x", SET)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "", ("node.id", "2", SET)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("listeners", "PLAINTEXT://:1", SET)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("ssl.keystore.location", "/k", SET)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "2", ("log.retention.ms", "1", SET)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "x", ("log.retention.ms", "1", SET)), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "²", ("log.retention.ms", "1", SET)), ErrorCode.INVALID_REQUEST),
        (resource(16, "1", ("kafka", "INFO", SET)), ErrorCode.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("key", [ALTER, INCREMENTAL])
def test_a_resource_that_cannot_be_changed_gets_its_error_and_the_others_are_changed(
    broker: InProcessBroker, key: int, asked: dict[str, Any], code: ErrorCode
) -> None:
    broker.create("t")
    broker.create("good")
    bad, good = alter(broker, asked, resource(TOPIC, "good", ("flush.ms", "9", SET)), key=key)
    assert bad.error_code == code
    assert bad.error_message
    assert good.error_code == 0
    assert topic_configs(broker, "good") == {"flush.ms": "9"}
    assert set(broker.parts.metadata.image.configs) == {ConfigResource(ResourceType.TOPIC, "good")}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (resource(TOPIC, "t", ("flush.ms", "1", 9)), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "t", ("flush.ms", "1", APPEND)), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "t", ("cleanup.policy", "shred", APPEND)), ErrorCode.INVALID_CONFIG),
    ],
)
def test_operations_that_make_no_sense_are_refused(
    broker: InProcessBroker, asked: dict[str, Any], code: ErrorCode
) -> None:
    broker.create("t")
    assert alter(broker, asked)[0].error_code == code
    assert topic_configs(broker) == {}


def test_a_resource_that_comes_twice_is_refused_each_time(broker: InProcessBroker) -> None:
    broker.create("t")
    asked = resource(TOPIC, "t", ("flush.ms", "1", SET))
    assert [answer.error_code for answer in alter(broker, asked, asked)] == [ErrorCode.INVALID_REQUEST] * 2
    assert topic_configs(broker) == {}


def test_what_the_broker_could_not_run_with_is_refused_before_it_is_stored(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise SettingError("these do not go together")

    monkeypatch.setattr(config_changes, "with_dynamic", refuse)
    [answer] = alter(broker, resource(BROKER, "", ("log.retention.ms", "1", SET)))
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, "these do not go together")
    assert not broker.parts.metadata.image.configs


def test_lags_that_do_not_go_together_are_refused_whichever_comes_last(broker: InProcessBroker) -> None:
    broker.create("t")
    assert alter(broker, resource(TOPIC, "t", ("min.compaction.lag.ms", "100", SET)))[0].error_code == 0
    [refused] = alter(broker, resource(TOPIC, "t", ("max.compaction.lag.ms", "50", SET)))
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert refused.error_message == "min.compaction.lag.ms = 100: must be at most max.compaction.lag.ms = 50"
    assert topic_configs(broker) == {"min.compaction.lag.ms": "100"}
    replaced = alter(broker, resource(TOPIC, "t", ("max.compaction.lag.ms", "50", SET)), key=ALTER)
    assert replaced[0].error_code == 0
