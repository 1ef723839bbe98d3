"""What may be set on one group: DescribeConfigs and IncrementalAlterConfigs of resources of type 32."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.broker.requests.config_entries import ConfigSource
from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker
from tests.broker.requests.handlers.groups_world import Groups

GROUP_RESOURCE = 32
SET, DELETE = 0, 1
SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def alter(broker: InProcessBroker, name: str, *changes: tuple[str, str | None]) -> Any:
    configs = [
        {"name": key, "config_operation": DELETE if value is None else SET, "value": value} for key, value in changes
    ]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configs": configs}
    (answer,) = broker.ask(44, 1, resources=[resource]).responses
    return answer


def described(broker: InProcessBroker, name: str) -> dict[str, tuple[str, int]]:
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": name}
    (result,) = broker.ask(32, 4, resources=[resource]).results
    assert result.error_code == 0
    return {config.name: (config.value, config.config_source) for config in result.configs}


def test_a_group_has_the_brokers_values_until_its_own_are_set(broker: InProcessBroker) -> None:
    assert described(broker, "g")[SESSION] == ("45000", ConfigSource.DEFAULT)
    assert alter(broker, "g", (SESSION, "50000"), (INTERVAL, "6000")).error_code == 0
    assert described(broker, "g")[SESSION][0] == "50000"
    assert described(broker, "other")[SESSION][0] == "45000"
    broker.restart()
    assert described(broker, "g")[INTERVAL][0] == "6000"
    assert alter(broker, "g", (SESSION, None), (INTERVAL, None)).error_code == 0
    assert described(broker, "g") == described(broker, "other")


@pytest.mark.parametrize(
    ("name", "value"),
    [(SESSION, "44999"), (SESSION, "60001"), (INTERVAL, "4999"), (INTERVAL, "15001"), (SESSION, "long")],
)
def test_values_outside_the_brokers_range_are_refused(broker: InProcessBroker, name: str, value: str) -> None:
    answer = alter(broker, "g", (name, value))
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert name in answer.error_message


def test_names_that_no_group_has_are_refused(broker: InProcessBroker) -> None:
    assert alter(broker, "g", ("retention.ms", "1")).error_code == ErrorCode.INVALID_CONFIG
    assert alter(broker, "", (SESSION, "50000")).error_code == ErrorCode.INVALID_REQUEST


def test_what_is_set_holds_for_the_groups_members(broker: InProcessBroker) -> None:
    broker.create("t")
    groups = Groups(broker).found()
    joined = groups.consumer("m", 0, "t")
    assert joined.heartbeat_interval == timedelta(seconds=5)
    assert alter(broker, "g", (INTERVAL, "7000")).error_code == 0
    assert groups.consumer("m", joined.member_epoch).heartbeat_interval == timedelta(seconds=7)
