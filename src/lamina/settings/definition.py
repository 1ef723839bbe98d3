"""One setting: Kafka's name for it and everything that is true of it before anybody gives it a value.

Owns the shape of a definition and the sentence that a bad value earns. Must not know which settings exist,
nor where a value came from.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from lamina.settings.kinds import PASSWORD, TRIMMED, Kind, Rule

T = TypeVar("T")

SHOWN_LENGTH = 80


class SettingError(ValueError):
    """A setting that cannot be used; the message is one sentence that names it."""


class Scope(Enum):
    """What a setting belongs to."""

    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"


class Update(Enum):
    """When a broker's setting may change, in Kafka's words; a topic's may always."""

    READ_ONLY = "read-only"
    CLUSTER_WIDE = "cluster-wide"
    PER_BROKER = "per-broker"
    """For one listener of one broker."""
    PER_TOPIC = "per-topic"
    PER_GROUP = "per-group"


@dataclass(frozen=True, slots=True)
class Fallback:
    """A setting that speaks when a better one is silent; times ``factor`` it has the better one's unit."""

    setting: "Setting[Any]"
    factor: int = 1

    def convert(self, value: Any) -> Any:
        return value if self.factor == 1 else value * self.factor


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A setting whose values have a type.

    ``fallbacks`` are asked in order when the setting itself has no value. ``pair`` is the broker's setting
    that a topic's stands on. ``hidden`` ones work but are not documented. ``difference`` says how Lamina's
    default is not Kafka's. ``unread`` says why nothing here reads the value: it is checked, kept and told, and no more.
    """

    name: str
    kind: Kind[T]
    default: T | None
    doc: str
    scope: Scope
    update: Update
    rule: Rule[T] | None = None
    fallbacks: tuple[Fallback, ...] = ()
    pair: "Setting[T] | None" = None
    hidden: bool = False
    difference: str = ""
    unread: str = ""

    @property
    def sensitive(self) -> bool:
        return self.kind.name == PASSWORD.name

    @property
    def chain(self) -> tuple[Fallback, ...]:
        """The setting and its fallbacks, best first."""
        return (Fallback(self), *self.fallbacks)

    def parse(self, text: str) -> T:
        trimmed = text.strip(TRIMMED)
        try:
            value = self.kind.parse(trimmed)
        except ValueError as problem:
            raise SettingError(f"{self.name} = {self.shown(trimmed)}: {problem}") from None
        if self.rule is not None and not self.rule.holds(value):
            near = self.rule.suggestion(trimmed)
            question = "" if near is None else f"; did you mean {near}?"
            raise SettingError(f"{self.name} = {self.shown(trimmed)}: must be {self.rule.text}{question}")
        return value

    def format(self, value: T) -> str:
        return self.kind.format(value)

    def shown(self, text: str) -> str:
        if self.sensitive:
            return "[hidden]"
        if not text:
            return "(empty)"
        short = text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"
        return short if short.isprintable() else repr(short)


def broker_setting(
    name: str,
    kind: Kind[T],
    default: T | None,
    doc: str,
    *,
    update: Update = Update.READ_ONLY,
    rule: Rule[T] | None = None,
    fallbacks: tuple[Fallback, ...] = (),
    difference: str = "",
    unread: str = "",
) -> Setting[T]:
    return Setting(
        name, kind, default, doc, Scope.BROKER, update, rule, fallbacks, difference=difference, unread=unread
    )


def topic_setting(name: str, kind: Kind[T], pair: Setting[T], doc: str, rule: Rule[T] | None = None) -> Setting[T]:
    """A topic's setting whose default is whatever the broker's pair resolves to."""
    default = next(step.convert(step.setting.default) for step in pair.chain if step.setting.default is not None)
    return Setting(name, kind, default, doc, Scope.TOPIC, Update.PER_TOPIC, rule, pair=pair, unread=pair.unread)


def lone_topic_setting(
    name: str, kind: Kind[T], default: T, doc: str, rule: Rule[T] | None = None, *, unread: str = ""
) -> Setting[T]:
    """A topic's setting that has no pair on the broker."""
    return Setting(name, kind, default, doc, Scope.TOPIC, Update.PER_TOPIC, rule, unread=unread)


def group_setting(name: str, kind: Kind[T], pair: Setting[T], doc: str) -> Setting[T]:
    """A group's setting whose default is the broker's."""
    return Setting(name, kind, pair.default, doc, Scope.GROUP, Update.PER_GROUP, pair.rule, pair=pair)
