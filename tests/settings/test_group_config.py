"""Which values the settings of groups can have, on a broker and on one group, and which of the two holds."""

import pytest

from lamina.settings.definition import SettingError
from lamina.settings.group_config import check_group_names, check_group_overrides, group_value
from lamina.settings.groups import CONSUMER_HEARTBEAT_INTERVAL_MS, CONSUMER_SESSION_TIMEOUT_MS
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import BrokerSettings

PREFIX = "group.consumer."
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


# Of a broker


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ({"min.heartbeat.interval.ms": 16_000}, "min.heartbeat.interval.ms", "max.heartbeat.interval.ms"),
        ({"max.heartbeat.interval.ms": 4_999}, "min.heartbeat.interval.ms", "max.heartbeat.interval.ms"),
        ({"heartbeat.interval.ms": 4_999}, "min.heartbeat.interval.ms", "heartbeat.interval.ms"),
        ({"heartbeat.interval.ms": 15_001}, "heartbeat.interval.ms", "max.heartbeat.interval.ms"),
        ({"min.session.timeout.ms": 60_001}, "min.session.timeout.ms", "max.session.timeout.ms"),
        ({"session.timeout.ms": 44_999}, "min.session.timeout.ms", "session.timeout.ms"),
        ({"session.timeout.ms": 60_001}, "session.timeout.ms", "max.session.timeout.ms"),
        (
            {"min.session.timeout.ms": 1, "session.timeout.ms": 5_000},
            "heartbeat.interval.ms",
            "session.timeout.ms",
        ),
    ],
)
def test_what_does_not_go_together_stops_the_start_and_both_are_named(
    given: dict[str, int], low: str, high: str
) -> None:
    sets = {PREFIX + name: str(value) for name, value in given.items()}
    with pytest.raises(SettingError) as caught:
        resolve_broker(sets=sets)
    sentence = str(caught.value)
    assert sentence.startswith(f"{PREFIX}{low} = ")
    assert f" {PREFIX}{high} = " in sentence
    assert sentence.count("\n") == 0


def test_equal_bounds_leave_one_value() -> None:
    names = ("min.session.timeout.ms", "session.timeout.ms", "max.session.timeout.ms")
    resolve_broker(sets={PREFIX + name: "50000" for name in names})


def test_kafka_does_not_compare_the_bounds_of_classic_sessions() -> None:
    resolve_broker(sets={"group.min.session.timeout.ms": "2000000"})
