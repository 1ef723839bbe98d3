"""Loggers as configs of a broker (resource type 8); checked against Kafka 4.1 in tests/peers/test_answers.py."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from lamina.broker.requests.config_entries import ConfigSource, ConfigType
from lamina.errors import ErrorCode
from lamina.image.configs import OperationType
from tests.broker.in_process import InProcessBroker

ALTER, INCREMENTAL, DESCRIBE = 33, 44, 32
BROKER_LOGGER = 8
NAME = "lamina.broker.of_a_test"
SET, DELETE, APPEND, SUBTRACT = OperationType


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    """A logger that nobody else uses, without a level of its own."""
    logger = logging.getLogger(NAME)
    yield logger
    logger.setLevel(logging.NOTSET)


def resource(*configs: tuple[str, str | None, int], name: str = "1") -> dict[str, Any]:
    asked = [{"name": key, "value": value, "config_operation": type_} for key, value, type_ in configs]
    return {"resource_type": BROKER_LOGGER, "resource_name": name, "configs": asked}


def alter(broker: InProcessBroker, *resources: dict[str, Any], key: int = INCREMENTAL, **flags: Any) -> list[int]:
    return [told.error_code for told in broker.ask(key, 1, resources=resources, **flags).responses]


def describe(broker: InProcessBroker, name: str = "1", keys: list[str] | None = None) -> Any:
    asked = {"resource_type": BROKER_LOGGER, "resource_name": name, "configuration_keys": keys}
    [result] = broker.ask(DESCRIBE, 4, resources=[asked], include_synonyms=True, include_documentation=True).results
    return result


def test_every_package_is_told_with_kafkas_name_of_its_level(broker: InProcessBroker) -> None:
    configs = {config.name: config for config in describe(broker).configs}
    assert {"root", "lamina", "lamina.broker", "lamina.log", NAME} <= set(configs)
    told = configs["lamina"]
    assert told.value in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
    assert (told.config_source, told.config_type) == (ConfigSource.BROKER_LOGGER, ConfigType.UNKNOWN)
    assert (told.read_only, told.is_sensitive, told.synonyms, told.documentation) == (False, False, (), None)


@pytest.mark.parametrize(
    ("name", "level", "told"),
    [
        ("TRACE", logging.DEBUG, "DEBUG"),
        ("DEBUG", logging.DEBUG, "DEBUG"),
        ("INFO", logging.INFO, "INFO"),
        ("WARN", logging.WARNING, "WARN"),
        ("ERROR", logging.ERROR, "ERROR"),
        ("FATAL", logging.CRITICAL, "FATAL"),
    ],
)
def test_a_level_is_set_told_and_taken_away(
    broker: InProcessBroker, logger: logging.Logger, name: str, level: int, told: str
) -> None:
    assert alter(broker, resource((NAME, name, SET))) == [0]
    assert logger.level == level
    assert [config.value for config in describe(broker, keys=[NAME, "no.such"]).configs] == [told]
    assert alter(broker, resource((NAME, None, DELETE))) == [0]
    assert logger.level == logging.NOTSET


def test_a_level_between_two_names_is_told_as_the_lower(broker: InProcessBroker, logger: logging.Logger) -> None:
    for level, told in ((logging.WARNING + 5, "WARN"), (1, "DEBUG")):
        logger.setLevel(level)
        assert [config.value for config in describe(broker, keys=[NAME]).configs] == [told]


def test_validation_alone_sets_nothing(broker: InProcessBroker, logger: logging.Logger) -> None:
    assert alter(broker, resource((NAME, "DEBUG", SET)), validate_only=True) == [0]
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (resource(("no.such", "DEBUG", SET)), ErrorCode.INVALID_CONFIG),
        (resource(("no.such", None, DELETE)), ErrorCode.INVALID_CONFIG),
        (resource(("", "DEBUG", SET)), ErrorCode.INVALID_CONFIG),
        (resource(("no.such", "BAD", SET)), ErrorCode.INVALID_CONFIG),
        (resource(("root", "debug", SET)), ErrorCode.INVALID_CONFIG),
        (resource(("root", "OFF", SET)), ErrorCode.INVALID_CONFIG),
        (resource(("root", "", SET)), ErrorCode.INVALID_CONFIG),
        (resource(("root", None, SET)), ErrorCode.INVALID_REQUEST),
        (resource(("root", None, DELETE)), ErrorCode.INVALID_REQUEST),
        (resource(("root", "DEBUG", APPEND)), ErrorCode.INVALID_REQUEST),
        (resource(("root", "DEBUG", SUBTRACT)), ErrorCode.INVALID_REQUEST),
        (resource((NAME, "INFO", SET), (NAME, "WARN", SET)), ErrorCode.INVALID_REQUEST),
        (resource((NAME, "INFO", SET), name=""), ErrorCode.INVALID_REQUEST),
        (resource((NAME, "INFO", SET), name="7"), ErrorCode.INVALID_REQUEST),
        (resource((NAME, "INFO", SET), name="x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_set_gets_kafkas_error_and_other_resources_are_set(
    broker: InProcessBroker, logger: logging.Logger, asked: dict[str, Any], code: ErrorCode
) -> None:
    topic = {"resource_type": 2, "resource_name": "t", "configs": [{"name": "flush.ms", "value": "5"}]}
    broker.create("t")
    assert alter(broker, asked, topic) == [code, 0]
    assert broker.parts.metadata.config_of("t").flush_ms == 5
    assert logger.level == logging.NOTSET


def test_one_wrong_level_of_a_request_leaves_all_as_they_were(broker: InProcessBroker, logger: logging.Logger) -> None:
    assert alter(broker, resource((NAME, "DEBUG", SET), ("root", "LOUD", SET))) == [ErrorCode.INVALID_CONFIG]
    assert logger.level == logging.NOTSET


def test_a_broker_that_is_named_twice_is_refused_twice(broker: InProcessBroker, logger: logging.Logger) -> None:
    asked = resource((NAME, "DEBUG", SET))
    assert alter(broker, asked, asked) == [ErrorCode.INVALID_REQUEST] * 2
    assert logger.level == logging.NOTSET


def test_the_old_request_knows_no_loggers(broker: InProcessBroker) -> None:
    assert alter(broker, resource((NAME, "DEBUG", SET)), key=ALTER) == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("name", ["", "7", "x"])
def test_loggers_are_told_of_this_broker_only(broker: InProcessBroker, name: str) -> None:
    assert describe(broker, name).error_code == ErrorCode.INVALID_REQUEST
