"""What has to hold between the settings of consumer groups, as Kafka wants it before it starts.

Owns which of them go together. Kafka does not compare those of the classic protocol, so neither is that done here. Must
not know what a group does with them.
"""

from lamina.settings.definition import Setting, SettingError
from lamina.settings.groups import (
    GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
    GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
    GROUP_CONSUMER_SESSION_TIMEOUT_MS,
)
from lamina.settings.values import BrokerSettings

_AT_MOST: tuple[tuple[Setting[int], Setting[int]], ...] = (
    (GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS, GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS),
    (GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS, GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS),
    (GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS, GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS),
    (GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS, GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS),
    (GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS, GROUP_CONSUMER_SESSION_TIMEOUT_MS),
    (GROUP_CONSUMER_SESSION_TIMEOUT_MS, GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS),
)
"""The first may not be above the second."""


def check_group_limits(settings: BrokerSettings) -> None:
    """Raise SettingError, with both names, for two values that do not go together."""
    for low, high in _AT_MOST:
        if settings[low] > settings[high]:
            raise SettingError(f"{_said(settings, low)}: must be at most {_said(settings, high)}")
    interval, session = GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS, GROUP_CONSUMER_SESSION_TIMEOUT_MS
    if settings[interval] >= settings[session]:
        raise SettingError(f"{_said(settings, interval)}: must be less than {_said(settings, session)}")


def _said(settings: BrokerSettings, setting: Setting[int]) -> str:
    return f"{setting.name} = {settings[setting]}"
