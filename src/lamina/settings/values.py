"""Values that have been given, and which of them wins.

Owns the order of the sources (design: ``--set`` over flag over file over default; dynamic values over all of
these) and, within a source, of a setting and its fallbacks. The source decides first: ``--set
log.retention.hours`` wins over ``log.retention.ms`` in the file. Must not know any one setting.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from lamina.settings.definition import Fallback, Setting, SettingError

T = TypeVar("T")


class Source(Enum):
    """Where a value came from, strongest first."""

    TOPIC = "the topic"
    GROUP = "the group"
    DYNAMIC_BROKER = "this broker, while running"
    DYNAMIC_DEFAULT = "all brokers, while running"
    SET = "--set"
    FLAG = "a flag"
    FILE = "the file"
    DEFAULT = "the default"


@dataclass(frozen=True, slots=True)
class Synonym:
    """One name under which a setting has a value, with that value in the name's own unit."""

    name: str
    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class Resolved(Generic[T]):
    """The value that holds; ``synonyms`` are all that could have held, the winner first."""

    value: T
    source: Source
    synonyms: tuple[Synonym, ...]


Layers = tuple[tuple[Source, Mapping[str, str]], ...]


def resolve(setting: Setting[T], layers: Layers) -> Resolved[T] | None:
    """A broker's strongest value, or None where there is neither a value nor a default."""
    found = list(_candidates(setting, layers))
    if not found:
        return None
    step, winner = found[0]
    # Parsing again is cheap, and every given text was checked by its own definition when it came in.
    value: T = step.convert(step.setting.parse(winner.text))
    if setting.rule is not None and not setting.rule.holds(value):
        meant = f"{setting.name} = {setting.format(value)}, but must be {setting.rule.text}"
        raise SettingError(f"{winner.name} = {winner.text.strip()}: then {meant}")
    return Resolved(value, winner.source, tuple(synonym for _, synonym in found))


def _candidates(setting: Setting[Any], layers: Layers) -> Iterator[tuple[Fallback, Synonym]]:
    for source, given in layers:
        for step in setting.chain:
            if (text := given.get(step.setting.name)) is not None:
                yield step, Synonym(step.setting.name, text, source)
    for step in setting.chain:
        if step.setting.default is not None:
            text = step.setting.format(step.setting.default)
            yield step, Synonym(step.setting.name, text, Source.DEFAULT)


class BrokerSettings:
    """A broker's settings: ``settings[NODE_ID]`` is the typed value. Never changes; a new one replaces it."""

    __slots__ = ("_resolved", "layers", "warnings")

    def __init__(self, known: Mapping[str, Setting[Any]], layers: Layers, warnings: tuple[str, ...]) -> None:
        self.layers = layers
        self.warnings = warnings
        self._resolved = {name: resolve(setting, layers) for name, setting in known.items()}

    def __getitem__(self, setting: Setting[T]) -> T:
        """The value of a setting that has a default or a fallback with one."""
        resolved = self.resolved(setting)
        if resolved is None:
            raise LookupError(f"{setting.name} has no value and no default")
        return resolved.value

    def get(self, setting: Setting[T]) -> T | None:
        """The value of a setting that may have none."""
        resolved = self.resolved(setting)
        return None if resolved is None else resolved.value

    def resolved(self, setting: Setting[T]) -> Resolved[T] | None:
        return self._resolved[setting.name]

    def with_warnings(self, more: Iterable[str]) -> "BrokerSettings":
        """The same, with more for a person to be told at the start."""
        added = object.__new__(BrokerSettings)
        added.layers, added._resolved = self.layers, self._resolved
        added.warnings = (*self.warnings, *more)
        return added

    def of_listener(self, setting: Setting[T], listener_name: str) -> T | None:
        """The strongest value that was given to one listener; ``None`` when none was."""
        name = f"listener.name.{listener_name.lower()}.{setting.name}"
        given = (layer[name] for _, layer in self.layers if name in layer)
        text = next(given, None)
        return None if text is None else setting.parse(text)

    def of_mechanism(self, setting: Setting[T], listener_name: str, mechanism: str) -> T | None:
        """The strongest value that was given to one of a listener's SASL mechanisms; ``None`` when none was."""
        return self.of_listener(replace(setting, name=f"{mechanism.lower()}.{setting.name}"), listener_name)

    def is_given(self, setting: Setting[Any]) -> bool:
        """Whether any source names it."""
        return any(setting.name in layer for _, layer in self.layers)
