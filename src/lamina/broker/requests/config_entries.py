"""Configs as clients are shown them: value, source, synonyms, type.

Owns the step from settings to what DescribeConfigs and CreateTopics tell of them. A value that is sensitive is
never shown. Must not know any message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from lamina.settings.definition import Setting, Update
from lamina.settings.group_config import resolve_group
from lamina.settings.lists import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS, broker_ignored, listener_setting
from lamina.settings.resolve import NOTHING
from lamina.settings.topic_config import resolve_topic
from lamina.settings.values import BrokerSettings, Resolved, Source, Synonym

PROTOCOL_LEVEL = "inter.broker.protocol.version"
COMPACTION = "lamina.compaction"


class ConfigSource(IntEnum):
    """With the protocol's numbers."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    GROUP = 8


class ConfigType(IntEnum):
    """With the protocol's numbers, by the names that settings' kinds have."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType = ConfigType.STRING
    synonyms: tuple[ConfigSynonym, ...] = ()
    is_read_only: bool = False
    is_sensitive: bool = False
    documentation: str | None = None


_SOURCES = {
    Source.TOPIC: ConfigSource.TOPIC,
    Source.GROUP: ConfigSource.GROUP,
    Source.DYNAMIC_BROKER: ConfigSource.DYNAMIC_BROKER,
    Source.DYNAMIC_DEFAULT: ConfigSource.DYNAMIC_DEFAULT,
    Source.SET: ConfigSource.STATIC_BROKER,
    Source.FLAG: ConfigSource.STATIC_BROKER,
    Source.FILE: ConfigSource.STATIC_BROKER,
    Source.DEFAULT: ConfigSource.DEFAULT,
}

_PROTOCOL_LEVEL = ConfigEntry(
    PROTOCOL_LEVEL,
    "4.1-IV1",
    ConfigSource.DEFAULT,
    is_read_only=True,
    documentation="The release of Kafka whose protocol this broker follows; tools read it to know what to offer.",
)
"""Kafka itself has dropped the setting; consoles that find neither it nor `metadata.version` guess a release
below 2.6 and hide what they could do (protocol.md §2.3)."""


def not_compacted(why_not: str) -> ConfigEntry:
    """What a compacted topic shows while nothing is compacted."""
    return ConfigEntry(
        COMPACTION,
        f"off: {why_not}",
        ConfigSource.DEFAULT,
        is_read_only=True,
        documentation="Why this topic is not being compacted, though its cleanup.policy says so.",
    )


def topic_entries(settings: BrokerSettings, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Everything that can be set on a topic and what holds; also what is set on it and not read."""
    entries = [
        _entry(setting, resolve_topic(setting, settings, overrides), is_read_only=False)
        for setting in TOPIC_SETTINGS.values()
        if not setting.hidden or setting.name in overrides
    ]
    entries += [
        ConfigEntry(name, text, ConfigSource.TOPIC, synonyms=(ConfigSynonym(name, text, ConfigSource.TOPIC),))
        for name, text in overrides.items()
        if name not in TOPIC_SETTINGS
    ]
    return _sorted(entries)


def group_entries(settings: BrokerSettings, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Everything that can be set on a group and what holds."""
    return _sorted(
        [
            _entry(setting, resolve_group(setting, settings, overrides), is_read_only=False)
            for setting in GROUP_SETTINGS.values()
        ]
    )


def broker_entries(settings: BrokerSettings, actual_values: Mapping[str, str] = NOTHING) -> list[ConfigEntry]:
    """Everything that a broker reads and what holds; also what was set on it while running and is not read.

    ``actual_values`` are shown in place of those that were given.
    """
    entries = [_broker_entry(setting, settings.resolved(setting)) for setting in BROKER_SETTINGS.values()]
    entries = [replace(entry, value=actual_values.get(entry.name, entry.value)) for entry in entries]
    unread: dict[str, ConfigEntry] = {}
    for source, layer in settings.layers:
        if source in (Source.DYNAMIC_BROKER, Source.DYNAMIC_DEFAULT):
            for name, text in layer.items():
                if name not in BROKER_SETTINGS:
                    unread.setdefault(name, _unread(name, text, source))
    unread[PROTOCOL_LEVEL] = _PROTOCOL_LEVEL
    return _sorted([*entries, *unread.values()])


def default_entries(dynamic_default: Mapping[str, str]) -> list[ConfigEntry]:
    """What was set on all brokers while running, and nothing else."""
    source = Source.DYNAMIC_DEFAULT
    entries = []
    for name, text in dynamic_default.items():
        setting = BROKER_SETTINGS.get(name)
        if setting is None:
            entries.append(_unread(name, text, source))
        else:
            resolved = Resolved(setting.parse(text), source, (Synonym(name, text, source),))
            entries.append(_broker_entry(setting, resolved))
    return _sorted(entries)


def _broker_entry(setting: Setting[Any], resolved: Resolved[Any] | None) -> ConfigEntry:
    return _entry(setting, resolved, is_read_only=setting.update is Update.READ_ONLY)


def _entry(setting: Setting[Any], resolved: Resolved[Any] | None, *, is_read_only: bool) -> ConfigEntry:
    hidden = setting.sensitive
    return ConfigEntry(
        setting.name,
        None if resolved is None or hidden else setting.format(resolved.value),
        ConfigSource.DEFAULT if resolved is None else _SOURCES[resolved.source],
        ConfigType[setting.kind.name.upper()],
        () if resolved is None else tuple(_synonym(synonym, hidden) for synonym in resolved.synonyms),
        is_read_only,
        hidden,
        setting.doc,
    )


def _synonym(synonym: Synonym, hidden: bool) -> ConfigSynonym:
    return ConfigSynonym(synonym.name, None if hidden else synonym.text, _SOURCES[synonym.source])


def _unread(name: str, text: str, source: Source) -> ConfigEntry:
    """A name that Lamina does not read. An unknown one may hold a secret."""
    of_listener = listener_setting(name)
    hidden = broker_ignored(name) is None if of_listener is None else of_listener.sensitive
    synonym = _synonym(Synonym(name, text, source), hidden)
    kind = ConfigType.UNKNOWN if hidden else ConfigType.STRING
    return ConfigEntry(name, synonym.value, synonym.source, kind, (synonym,), is_sensitive=hidden)


def _sorted(entries: list[ConfigEntry]) -> list[ConfigEntry]:
    return sorted(entries, key=lambda entry: entry.name)
