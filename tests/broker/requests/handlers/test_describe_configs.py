from typing import Any

import pytest

from lamina.broker.requests.config_entries import ConfigSource, ConfigType
from lamina.errors import ErrorCode
from lamina.settings.lists import BROKER_SETTINGS, TOPIC_SETTINGS
from tests.broker.in_process import InProcessBroker

API_KEY = 32
TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8


def describe(
    broker: InProcessBroker,
    resource_type: int,
    name: str,
    keys: list[str] | None = None,
    version: int = 4,
    **flags: Any,
) -> Any:
    resource = {"resource_type": resource_type, "resource_name": name, "configuration_keys": keys}
    [result] = broker.ask(API_KEY, version, resources=[resource], **flags).results
    assert (result.resource_type, result.resource_name) == (resource_type, name)
    return result


def one(broker: InProcessBroker, resource_type: int, name: str, key: str, **flags: Any) -> Any:
    [config] = describe(broker, resource_type, name, [key], **flags).configs
    assert config.name == key
    return config


def set_dynamically(broker: InProcessBroker, name: str, key: str, value: str) -> None:
    resource = {"resource_type": BROKER, "resource_name": name, "configs": [{"name": key, "value": value}]}
    [response] = broker.ask(44, 1, resources=[resource]).responses
    assert response.error_code == 0, response.error_message


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_a_topics_configs_with_their_sources(broker: InProcessBroker, version: int) -> None:
    broker.create("t", retention_ms="1000")
    result = describe(broker, TOPIC, "t", version=version, include_synonyms=True, include_documentation=True)
    assert (result.error_code, result.error_message) == (0, None)
    configs = {config.name: config for config in result.configs}
    assert list(configs) == sorted(setting.name for setting in TOPIC_SETTINGS.values() if not setting.hidden)
    retention = configs["retention.ms"]
    assert (retention.value, retention.config_source) == ("1000", ConfigSource.TOPIC)
    assert not retention.read_only
    assert not retention.is_sensitive
    assert [(synonym.name, synonym.value, synonym.source) for synonym in retention.synonyms] == [
        ("retention.ms", "1000", ConfigSource.TOPIC),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]
    if version >= 3:
        assert retention.config_type == ConfigType.LONG
        assert configs["cleanup.policy"].config_type == ConfigType.LIST
        assert retention.documentation == TOPIC_SETTINGS["retention.ms"].doc


@pytest.mark.parametrize(
    ("name", "kind", "default", "synonym"),
    [
        ("compression.gzip.level", ConfigType.INT, "-1", "compression.gzip.level"),
        ("compression.lz4.level", ConfigType.INT, "9", "compression.lz4.level"),
        ("compression.zstd.level", ConfigType.INT, "3", "compression.zstd.level"),
        ("unclean.leader.election.enable", ConfigType.BOOLEAN, "false", "unclean.leader.election.enable"),
        ("local.retention.ms", ConfigType.LONG, "-2", "log.local.retention.ms"),
        ("local.retention.bytes", ConfigType.LONG, "-2", "log.local.retention.bytes"),
        ("remote.storage.enable", ConfigType.BOOLEAN, "false", None),
        ("remote.log.copy.disable", ConfigType.BOOLEAN, "false", None),
        ("remote.log.delete.on.disable", ConfigType.BOOLEAN, "false", None),
        ("leader.replication.throttled.replicas", ConfigType.LIST, "", None),
        ("follower.replication.throttled.replicas", ConfigType.LIST, "", None),
    ],
)
def test_what_does_little_here_is_told_as_kafka_tells_it(
    broker: InProcessBroker, name: str, kind: ConfigType, default: str, synonym: str | None
) -> None:
    broker.create("t")
    config = one(broker, TOPIC, "t", name, include_synonyms=True, include_documentation=True)
    assert (config.value, config.config_source, config.config_type) == (default, ConfigSource.DEFAULT, kind)
    assert [(told.name, told.value) for told in config.synonyms] == ([(synonym, default)] if synonym else [])
    assert config.documentation == TOPIC_SETTINGS[name].doc


def test_synonyms_and_documentation_are_told_only_if_asked_for(broker: InProcessBroker) -> None:
    broker.create("t")
    config = one(broker, TOPIC, "t", "retention.ms")
    assert (config.synonyms, config.documentation) == ((), None)


def test_only_the_asked_names_are_told_and_an_empty_list_asks_for_all(broker: InProcessBroker) -> None:
    broker.create("t")
    some = describe(broker, TOPIC, "t", ["flush.ms", "no.such.config"])
    assert [config.name for config in some.configs] == ["flush.ms"]
    assert len(describe(broker, TOPIC, "t", []).configs) == len(describe(broker, TOPIC, "t").configs) > 10


def test_what_is_set_on_a_topic_and_read_by_nobody_is_told_too(broker: InProcessBroker) -> None:
    broker.create("t", min_cleanable_dirty_ratio="0.2")
    config = one(broker, TOPIC, "t", "min.cleanable.dirty.ratio")
    assert (config.value, config.config_source) == ("0.2", ConfigSource.TOPIC)


def test_a_broker_tells_every_setting_it_reads_and_which_cannot_change(broker: InProcessBroker) -> None:
    configs = {config.name: config for config in describe(broker, BROKER, "1").configs}
    assert set(configs) == set(BROKER_SETTINGS) | {"inter.broker.protocol.version"}
    assert (configs["node.id"].value, configs["node.id"].read_only) == ("1", True)
    assert not configs["log.retention.ms"].read_only
    assert configs["delete.topic.enable"].value == "true"
    assert configs["delete.topic.enable"].config_type == ConfigType.BOOLEAN
    assert (configs["broker.rack"].value, configs["broker.rack"].config_source) == (None, ConfigSource.DEFAULT)
    data_dir = configs["lamina.data.dir"]
    assert data_dir.config_source == ConfigSource.STATIC_BROKER


def test_consoles_find_a_protocol_release_that_nobody_can_set(broker: InProcessBroker) -> None:
    level = one(broker, BROKER, "1", "inter.broker.protocol.version")
    assert (level.value, level.read_only) == ("4.1-IV1", True)
    set_dynamically(broker, "1", "inter.broker.protocol.version", "1.0")
    assert one(broker, BROKER, "1", "inter.broker.protocol.version").value == "4.1-IV1"


def test_dynamic_values_win_and_the_others_are_their_synonyms(broker: InProcessBroker) -> None:
    set_dynamically(broker, "", "log.retention.ms", "2000")
    set_dynamically(broker, "1", "log.retention.ms", "3000")
    broker.create("t")
    for config in (
        one(broker, BROKER, "1", "log.retention.ms", include_synonyms=True),
        one(broker, TOPIC, "t", "retention.ms", include_synonyms=True),
    ):
        assert (config.value, config.config_source) == ("3000", ConfigSource.DYNAMIC_BROKER)
        assert [(synonym.value, synonym.source) for synonym in config.synonyms] == [
            ("3000", ConfigSource.DYNAMIC_BROKER),
            ("2000", ConfigSource.DYNAMIC_DEFAULT),
            ("168", ConfigSource.DEFAULT),
        ]


def test_the_empty_name_tells_what_was_set_on_all_brokers_and_nothing_else(broker: InProcessBroker) -> None:
    assert describe(broker, BROKER, "").configs == ()
    set_dynamically(broker, "", "log.retention.ms", "2000")
    set_dynamically(broker, "1", "log.flush.interval.ms", "5")
    [config] = describe(broker, BROKER, "", include_synonyms=True).configs
    assert (config.name, config.value, config.config_source) == (
        "log.retention.ms",
        "2000",
        ConfigSource.DYNAMIC_DEFAULT,
    )
    assert [synonym.source for synonym in config.synonyms] == [ConfigSource.DYNAMIC_DEFAULT]


def test_a_name_that_nobody_knows_may_hold_a_secret_and_is_not_shown(broker: InProcessBroker) -> None:
    set_dynamically(broker, "", "plugin.password.of.somebody", "hush")
    for name in ("", "1"):
        config = one(broker, BROKER, name, "plugin.password.of.somebody", include_synonyms=True)
        assert (config.value, config.is_sensitive) == (None, True)
        assert [synonym.value for synonym in config.synonyms] == [None]
    set_dynamically(broker, "", "log.cleaner.threads", "2")
    config = one(broker, BROKER, "1", "log.cleaner.threads")
    assert (config.value, config.is_sensitive) == ("2", False)


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (0, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_has_no_configs_gets_its_error_and_the_others_are_told(
    broker: InProcessBroker, resource_type: int, name: str, code: ErrorCode
) -> None:
    resources = [
        {"resource_type": resource_type, "resource_name": name},
        {"resource_type": BROKER, "resource_name": "1"},
    ]
    bad, good = broker.ask(API_KEY, 4, resources=resources).results
    assert (bad.error_code, bad.configs) == (code, ())
    assert bad.error_message
    assert good.error_code == 0
