"""Kafka 4.1: KafkaApis.handleListConfigResources (KIP-1142)."""

from typing import Any

import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY, INCREMENTAL_ALTER_CONFIGS = 74, 44
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def ask(broker: InProcessBroker, *types: int) -> list[tuple[int, str]]:
    response = broker.ask(API_KEY, 1, resource_types=types)
    assert response.error_code == ErrorCode.NONE
    return [(one.resource_type, one.resource_name) for one in response.config_resources]


def set_config(broker: InProcessBroker, resource_type: int, name: str, config: str, value: str) -> None:
    configs = [{"name": config, "config_operation": 0, "value": value}]
    asked: dict[str, Any] = {"resource_type": resource_type, "resource_name": name, "configs": configs}
    (told,) = broker.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked]).responses
    assert told.error_code == ErrorCode.NONE, told.error_message


@pytest.fixture
def told(broker: InProcessBroker) -> InProcessBroker:
    """A broker with a topic, and with a config on a group, on all brokers and on another topic."""
    broker.create("t")
    broker.create("u", retention_ms="1000")
    set_config(broker, GROUP, "g", "consumer.session.timeout.ms", "50000")
    set_config(broker, BROKER, "", "log.retention.ms", "1000")
    return broker


def test_all_resources_are_listed(told: InProcessBroker) -> None:
    assert ask(told) == [(GROUP, "g"), (BROKER_LOGGER, "1"), (BROKER, "1"), (TOPIC, "t"), (TOPIC, "u")]


@pytest.mark.parametrize(
    ("types", "names"),
    [((TOPIC,), ["t", "u"]), ((GROUP, BROKER), ["g", "1"]), ((BROKER_LOGGER,), ["1"]), ((CLIENT_METRICS,), [])],
)
def test_the_asked_types_are_listed(told: InProcessBroker, types: tuple[int, ...], names: list[str]) -> None:
    assert [name for _, name in ask(told, *types)] == names


def test_version_0_knows_client_metrics_alone(told: InProcessBroker) -> None:
    response = told.ask(API_KEY, 0)
    assert (response.error_code, response.config_resources) == (ErrorCode.NONE, ())


@pytest.mark.parametrize("unknown", [0, 1, 99, -1])
def test_a_type_that_there_is_not_is_refused(told: InProcessBroker, unknown: int) -> None:
    response = told.ask(API_KEY, 1, resource_types=[TOPIC, unknown])
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())
