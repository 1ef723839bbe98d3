"""Which values the settings of groups can have, on a broker and on one group, and which of the two holds.

Kafka does not compare the settings of the classic protocol, so neither is that done here. Must not know what a group
does with them.
"""

from collections.abc import Mapping
from typing import TypeVar

from lamina.settings.definition import Setting, SettingError
from lamina.settings.groups import (
    CONSUMER_HEARTBEAT_INTERVAL_MS,
    CONSUMER_SESSION_TIMEOUT_MS,
    GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
    GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
    GROUP_CONSUMER_SESSION_TIMEOUT_MS,
)
from lamina.settings.lists import GROUP_SETTINGS
from lamina.settings.values import BrokerSettings, Resolved, Source, Synonym

T = TypeVar("T")

_RANGES = {
    CONSUMER_SESSION_TIMEOUT_MS.name: (GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS, GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS),
    CONSUMER_HEARTBEAT_INTERVAL_MS.name: (
        GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
        GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
    ),
}

_AT_MOST: tuple[tuple[Setting[int], Setting[int]], ...] = (
    (GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS, GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS),
    (GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS, GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS),
    (GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS, GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS),
    (GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS, GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS),
    (GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS, GROUP_CONSUMER_SESSION_TIMEOUT_MS),
    (GROUP_CONSUMER_SESSION_TIMEOUT_MS, GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS),
)
"""The first may not be above the second."""


# Of a broker


def check_group_limits(settings: BrokerSettings) -> None:
    """Raise SettingError, with both names, for two values that do not go together."""
    for low, high in _AT_MOST:
        if settings[low] > settings[high]:
            raise SettingError(f"{_shown(settings, low)}: must be at most {_shown(settings, high)}")
    interval, session = GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS, GROUP_CONSUMER_SESSION_TIMEOUT_MS
    if settings[interval] >= settings[session]:
        raise SettingError(f"{_shown(settings, interval)}: must be less than {_shown(settings, session)}")


def _shown(settings: BrokerSettings, setting: Setting[int]) -> str:
    return f"{setting.name} = {settings[setting]}"


# Of one group


def check_group_names(overrides: Mapping[str, str]) -> None:
    """Raise SettingError for a name that no group can have, or a value that is none."""
    for name, text in overrides.items():
        setting = GROUP_SETTINGS.get(name)
        if setting is None:
            raise SettingError(f"{name}: unknown; a group has {', '.join(sorted(GROUP_SETTINGS))}")
        setting.parse(text)


def check_group_overrides(broker: BrokerSettings, overrides: Mapping[str, str]) -> None:
    """Raise SettingError for a value that a group cannot have on this broker."""
    for name, text in overrides.items():
        value = GROUP_SETTINGS[name].parse(text)
        least, most = _RANGES[name]
        if not broker[least] <= value <= broker[most]:
            raise SettingError(
                f"{name}: {value} is not between {least.name}={broker[least]} and {most.name}={broker[most]}"
            )
    session_ms = group_value(CONSUMER_SESSION_TIMEOUT_MS, broker, overrides)
    if session_ms <= group_value(CONSUMER_HEARTBEAT_INTERVAL_MS, broker, overrides):
        raise SettingError(f"{CONSUMER_SESSION_TIMEOUT_MS.name}: must be longer than the heartbeat interval")


def group_value(setting: Setting[T], broker: BrokerSettings, overrides: Mapping[str, str]) -> T:
    return resolve_group(setting, broker, overrides).value


def resolve_group(setting: Setting[T], broker: BrokerSettings, overrides: Mapping[str, str]) -> Resolved[T]:
    """One setting of a group with its source and synonyms."""
    assert setting.pair is not None
    inherited = broker.resolved(setting.pair)
    assert inherited is not None, f"{setting.name} has a default"
    text = overrides.get(setting.name)
    if text is None:
        return inherited
    synonym = Synonym(setting.name, text, Source.GROUP)
    return Resolved(setting.parse(text), Source.GROUP, (synonym, *inherited.synonyms))
