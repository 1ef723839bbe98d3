"""What holds for one group, and which values it may have."""

import pytest

from lamina.settings.definition import SettingError
from lamina.settings.group import CONSUMER_HEARTBEAT_INTERVAL_MS, CONSUMER_SESSION_TIMEOUT_MS
from lamina.settings.group_config import check_group_names, check_group_overrides, group_value
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import BrokerSettings

SESSION, INTERVAL = CONSUMER_SESSION_TIMEOUT_MS.name, CONSUMER_HEARTBEAT_INTERVAL_MS.name


def broker(**sets: str) -> BrokerSettings:
    return resolve_broker(sets={name.replace("_", "."): value for name, value in sets.items()})


def test_a_groups_own_value_goes_before_the_brokers() -> None:
    settings = broker(group_consumer_session_timeout_ms="50000")
    assert group_value(CONSUMER_SESSION_TIMEOUT_MS, settings, {}) == 50_000
    assert group_value(CONSUMER_SESSION_TIMEOUT_MS, settings, {SESSION: "55000"}) == 55_000
    assert group_value(CONSUMER_HEARTBEAT_INTERVAL_MS, settings, {SESSION: "55000"}) == 5_000


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({SESSION: "44999"}, "group.consumer.min.session.timeout.ms=45000"),
        ({SESSION: "60001"}, "group.consumer.max.session.timeout.ms=60000"),
        ({INTERVAL: "1"}, "group.consumer.min.heartbeat.interval.ms=5000"),
    ],
)
def test_a_value_outside_the_brokers_range_is_refused(overrides: dict[str, str], told: str) -> None:
    with pytest.raises(SettingError, match=told):
        check_group_overrides(broker(), overrides)


def test_a_session_must_be_longer_than_the_time_between_heartbeats() -> None:
    settings = broker(group_consumer_min_session_timeout_ms="1000")
    check_group_overrides(settings, {SESSION: "5001"})
    with pytest.raises(SettingError, match="longer than the heartbeat interval"):
        check_group_overrides(settings, {SESSION: "5000"})


@pytest.mark.parametrize("overrides", [{"retention.ms": "1"}, {SESSION: "soon"}, {SESSION: "0"}])
def test_names_and_values_that_are_none_are_refused(overrides: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        check_group_names(overrides)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.consumer.assignors", "sticky"),
        ("group.consumer.assignors", ""),
        ("offsets.topic.compression.codec", "5"),
        ("group.consumer.migration.policy", "sideways"),
        ("group.consumer.regex.refresh.interval.ms", "9999"),
    ],
)
def test_a_broker_does_not_start_with_values_that_mean_nothing(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name):
        resolve_broker(sets={name: value})
