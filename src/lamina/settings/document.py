"""docs/settings.md, written from the definitions and the lists.

Owns the page's words and tables. Must not know anything that a definition does not say.
"""

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from lamina.settings import spark
from lamina.settings.definition import Setting
from lamina.settings.ignored import BROKER_IGNORED, Family
from lamina.settings.lists import AREAS, BROKER_SETTINGS, TOPIC_SETTINGS, settings_of, unread_families
from lamina.settings.log_config import DAY_MS, HOUR_MS, INT_MAX, LONG_MAX, MEBIBYTE
from lamina.settings.refused import BROKER_REFUSED, Refusal
from lamina.settings.values import Source

LARGEST = {INT_MAX: "2^31 - 1", LONG_MAX: "2^63 - 1"}
UNITS = (
    (".ms", ((DAY_MS, "d"), (HOUR_MS, "h"), (60_000, "min"), (1000, "s"))),
    (".bytes", ((1024 * MEBIBYTE, "GiB"), (MEBIBYTE, "MiB"), (1024, "KiB"))),
)

INTRODUCTION = """\
# Settings

Written by `make docs` from the definitions in `src/lamina/settings/`; do not edit.

Settings carry Kafka's names and meanings, and a Kafka `server.properties` is read unchanged. A name that
Kafka knows is on one of three lists: it is **honoured**, it is accepted and **ignored** (one line at start),
or it is **refused** because what it asks for is not built: the broker does not start. Any other name gets a
warning with the nearest known one, or stops the start if it sounds like security (`security.protocol=SSL`).
An impossible value stops the start with one sentence, and so does a `listener.name.NAME.*` that is meant for a
listener which does not exist.
"""
PRECEDENCE = """\
## Which value wins

The first of these that has a value:

{sources}

Within one of them a setting comes before those it falls back to, in the order given in its row. So a
`log.retention.ms` in the file wins over a `log.retention.hours` in the file, but not over a
`--set log.retention.hours`.

*read-only* settings need a restart. *cluster-wide* ones can change while a broker runs, for one broker or for all.
*per-broker* ones can change for one listener of one broker: as `listener.name.NAME.ssl.keystore.location`.
"""
IGNORED_ON_A_TOPIC = "Checked as in Kafka, kept and told by DescribeConfigs, without effect."
REFUSED_ON_A_TOPIC = """\
## Refused on a topic

`remote.storage.enable=true`: INVALID_CONFIG, as by a Kafka without tiered storage. A name that Kafka 4.1 does not know,
such as `message.format.version`, is INVALID_CONFIG too.
"""


def page() -> str:
    sections = [INTRODUCTION, PRECEDENCE.format(sources=_sources())]
    sections += [_area(title, module) for title, module in AREAS]
    sections += [
        _families(
            "Ignored",
            "Accepted in a broker's file without effect.",
            (*BROKER_IGNORED, *unread_families(BROKER_SETTINGS.values())),
        ),
        _families("Ignored on a topic", IGNORED_ON_A_TOPIC, unread_families(TOPIC_SETTINGS.values())),
        _families("Refused", "An empty value, or one given as harmless, is let through.", BROKER_REFUSED),
        REFUSED_ON_A_TOPIC,
    ]
    return "\n".join(sections)


def _sources() -> str:
    return "\n".join(f"{place}. {source.value}" for place, source in enumerate(Source, start=1))


def _area(title: str, module: ModuleType) -> str:
    rows = sorted(_row(setting) for setting in settings_of(module) if not (setting.hidden or setting.unread))
    text = spark.SPARK_CONF_DOC if module is spark else ""
    return _table(title, text, ("name", "type", "default", "must be", "update", "what it does"), rows)


def _row(setting: Setting[Any]) -> tuple[str, ...]:
    doc = setting.doc
    if setting.difference:
        doc += f" ({setting.difference}.)"
    must_be = setting.rule.text if setting.rule else ""
    return (f"`{setting.name}`", setting.kind.name, _default(setting), must_be, setting.update.value, doc)


def _default(setting: Setting[Any]) -> str:
    if setting.pair is not None:
        return f"`{setting.pair.name}`"
    if setting.default is None:
        return ", then ".join(f"`{step.setting.name}`" for step in setting.fallbacks) or "none"
    if setting.default == ():
        return "empty"
    if setting.default in LARGEST:
        return LARGEST[setting.default]
    text = f"`{setting.format(setting.default)}`"
    for ending, units in UNITS:
        if setting.name.endswith(ending):
            for size, unit in units:
                if setting.default >= size and setting.default % size == 0:
                    return f"{text} ({setting.default // size} {unit})"
    return text


def _families(title: str, text: str, families: tuple[Family, ...] | tuple[Refusal, ...]) -> str:
    by_reason: dict[str, list[str]] = {}
    for family in families:
        names = [*sorted(family.names), *(f"{prefix}*" for prefix in family.prefixes)]
        harmless = sorted(family.harmless) if isinstance(family, Refusal) else []
        shown = [f"`{name}`" + (f" (harmless: `{'`, `'.join(harmless)}`)" if harmless else "") for name in names]
        by_reason.setdefault(family.reason, []).extend(shown)
    rows = [(reason, ", ".join(sorted(names))) for reason, names in by_reason.items()]
    return _table(title, text, ("why", "names"), rows)


def _table(title: str, text: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"## {title}", ""] + ([text, ""] if text else [])
    lines += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
