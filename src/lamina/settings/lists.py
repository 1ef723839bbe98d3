"""The three lists: every name that Kafka knows is honoured, ignored or refused.

Owns the answer to "what becomes of this name", for a broker and for a topic. The honoured ones are the
constants of the definition modules, so that writing a definition is all it takes, unless it says that nothing reads
the setting: then it is ignored, as the families are that have no definition. Every topic setting of Kafka has one. Must
not know values, except to tell a refused one that asks for nothing.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from lamina.settings import (
    authorization,
    broker,
    cleaner,
    cluster,
    groups,
    log,
    network,
    quotas,
    replication,
    sasl,
    spark,
    ssl,
    topic,
    transactions,
    zookeeper,
)
from lamina.settings.definition import Scope, Setting
from lamina.settings.ignored import BROKER_IGNORED, Family
from lamina.settings.refused import BROKER_REFUSED, Refusal

F = TypeVar("F", Family, Refusal)

_MISSPELLING = 0.9

# One listener's own copy of a setting; for SASL the mechanism's name stands before it.
_LISTENER_PREFIX = re.compile(
    r"listener\.name\.[^.]+\.(?:(?P<mechanism>[^.]+)\.(?=sasl\.|connections\.max\.reauth\.ms))?"
)

# The definition modules; a new one is added here and nowhere else.
AREAS: tuple[tuple[str, ModuleType], ...] = (
    ("The broker", broker),
    ("The cluster", zookeeper),
    ("Listeners and requests", network),
    ("TLS", ssl),
    ("SASL", sasl),
    ("Quotas", quotas),
    ("Access rules", authorization),
    ("Replication", replication),
    ("Failover", cluster),
    ("Consumer groups", groups),
    ("Transactions", transactions),
    ("Compacting topics", cleaner),
    ("Spark", spark),
    ("Every topic's default", log),
    ("One topic", topic),
)


def settings_of(module: ModuleType) -> tuple[Setting[Any], ...]:
    return tuple(value for value in vars(module).values() if isinstance(value, Setting))


def _settings_with(scope: Scope) -> dict[str, Setting[Any]]:
    defined = (setting for _, module in AREAS for setting in settings_of(module))
    return {setting.name: setting for setting in defined if setting.scope is scope}


_OF_TLS = frozenset(setting.name for setting in settings_of(ssl))

# Those that Kafka reads for one listener alone and that Lamina does too.
_PER_LISTENER = frozenset(
    {network.MAX_CONNECTIONS.name, network.MAX_CONNECTION_CREATION_RATE.name} | _OF_TLS | sasl.FOR_ONE_LISTENER
)

BROKER_SETTINGS: Mapping[str, Setting[Any]] = _settings_with(Scope.BROKER)
TOPIC_SETTINGS: Mapping[str, Setting[Any]] = _settings_with(Scope.TOPIC)
GROUP_SETTINGS: Mapping[str, Setting[Any]] = _settings_with(Scope.GROUP)


def unread_families(settings: Iterable[Setting[Any]]) -> tuple[Family, ...]:
    """Those that are defined and ignored, by the reason."""
    by_reason: dict[str, set[str]] = {}
    for setting in settings:
        if setting.unread:
            by_reason.setdefault(setting.unread, set()).add(setting.name)
    return tuple(Family(reason, frozenset(names)) for reason, names in by_reason.items())


def broker_refusal(name: str) -> Refusal | None:
    """A name that is ignored by itself is not refused for what it begins with."""
    bare = _LISTENER_PREFIX.sub("", name, count=1)
    if name in BROKER_SETTINGS or any(bare in family.names for family in BROKER_IGNORED):
        return None
    return _first(BROKER_REFUSED, bare)


def listener_setting(name: str) -> Setting[Any] | None:
    """The setting that a name such as ``listener.name.internal.max.connections`` gives to one listener."""
    prefix = _LISTENER_PREFIX.match(name)
    if prefix is None:
        return None
    bare = name[prefix.end() :]
    is_read = bare in (_PER_LISTENER if prefix["mechanism"] is None else sasl.FOR_ONE_MECHANISM)
    return BROKER_SETTINGS[bare] if is_read else None


def is_of_tls(name: str) -> bool:
    """Whether it is one of the settings of TLS, of a listener or of all."""
    return _LISTENER_PREFIX.sub("", name, count=1) in _OF_TLS


def broker_ignored(name: str) -> Family | None:
    if name in BROKER_SETTINGS or listener_setting(name) or broker_refusal(name):
        return None
    bare = _LISTENER_PREFIX.sub("", name, count=1)
    if bare != name and bare in BROKER_SETTINGS:
        return Family("Lamina does not set this for one listener alone")
    return _first(BROKER_IGNORED, bare)


def nearest_broker_name(name: str) -> str | None:
    """The name that an unknown one was probably meant to be."""
    of_listener = _LISTENER_PREFIX.match(name)
    if of_listener is not None:
        known = _PER_LISTENER if of_listener["mechanism"] is None else sasl.FOR_ONE_MECHANISM
        close = difflib.get_close_matches(name[of_listener.end() :][:100], sorted(known), n=1)
        return of_listener.group() + close[0] if close else None
    mistaken_topic_setting = TOPIC_SETTINGS.get(name)
    if mistaken_topic_setting is not None and mistaken_topic_setting.pair is not None:
        return mistaken_topic_setting.pair.name
    return _nearest(name, BROKER_SETTINGS, BROKER_IGNORED, BROKER_REFUSED)


def is_misspelling(name: str, known: str) -> bool:
    """Whether a name is so near another that nobody could have meant anything else."""
    written = name[:100].lower().replace("_", ".")
    return difflib.SequenceMatcher(None, written, known).ratio() >= _MISSPELLING


def nearest_topic_name(name: str) -> str | None:
    for setting in TOPIC_SETTINGS.values():
        if setting.pair is not None and name in (step.setting.name for step in setting.pair.chain):
            return setting.name
    return _nearest(name, TOPIC_SETTINGS)


def _nearest(
    name: str, known: Mapping[str, Setting[Any]], ignored: Iterable[Family] = (), refused: Iterable[Refusal] = ()
) -> str | None:
    names = {known_name for known_name, setting in known.items() if not setting.hidden}
    names.update(*(family.names for family in ignored), *(refusal.names for refusal in refused))
    # Sorted, so that ties have one winner; cut, because comparing takes time with the square of the length.
    close = difflib.get_close_matches(name[:100], sorted(names), n=1)
    return close[0] if close else None


def _first(families: Iterable[F], name: str) -> F | None:
    return next((family for family in families if name in family), None)
