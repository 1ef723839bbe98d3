"""What has to hold between the settings of consumer groups."""

import pytest

from lamina.settings.definition import SettingError
from lamina.settings.resolve import resolve_broker

PREFIX = "group.consumer."


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
