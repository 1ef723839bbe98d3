"""``lamina configs get``."""

from typing import TYPE_CHECKING

import click

from lamina.cli.configs.requests import check_names, entries_of
from lamina.cli.configs.resource import Resource, resource_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.tables import Row, Value, print_json, print_table
from lamina.client.cluster import Cluster

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigEntry


@click.command(
    "get",
    epilog="""\b
Examples:
  lamina configs get --topic orders
  lamina configs get --topic orders retention.ms cleanup.policy
  lamina configs get --broker 1 --all --json
  lamina configs get --broker-default""",
)
@click.argument("names", metavar="[NAME]…", nargs=-1)
@click.option(
    "--all", "everything", is_flag=True, help="Also settings at their default, and where each value comes from."
)
@as_json_option
@resource_options
def get_configs(cluster: Cluster, resource: Resource, names: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Show settings: the named ones, or those that are not at their default."""
    attempts = Attempts(cluster)
    entries = entries_of(cluster, resource, attempts)
    if entries is None:
        return attempts.status
    names = tuple(dict.fromkeys(names))
    check_names(resource, names, entries, attempts)
    shown = [
        entry for name, entry in entries.items() if (name in names if names else everything or not entry.is_default)
    ]
    rows = [_row(resource, entry) for entry in shown]
    if as_json:
        for row in rows:
            print_json(row)
    elif everything:
        print_table(
            ("name", "value", "source", "", "comes from"),
            [(entry.name, _value(entry), _source(entry), _marks(entry), _synonyms(entry)) for entry in shown],
        )
    else:
        print_table(
            ("name", "value", "source", ""),
            [(entry.name, _value(entry), _source(entry), _marks(entry)) for entry in shown],
        )
    if not rows and not names:
        advice = "`lamina configs get --broker ID` shows all values" if resource.is_every_broker else "--all shows them"
        warn(f"every setting of {resource} is at its default; {advice}")
    return attempts.status


def _row(resource: Resource, entry: "ConfigEntry") -> Row:
    synonyms: list[Value] = [
        {"name": synonym.name, "value": synonym.value, "source": _source(synonym)}
        for synonym in entry.synonyms.values()
    ]
    return {
        "type": "config",
        "resource_type": resource.type,
        "resource": resource.name,
        "name": entry.name,
        "value": entry.value,
        "source": _source(entry),
        "default": entry.is_default,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "synonyms": synonyms,
    }


def _source(entry: "ConfigEntry") -> str:
    """As Kafka names it; librdkafka gives its number."""
    from confluent_kafka.admin import ConfigSource

    try:
        return ConfigSource(entry.source).name
    except ValueError:
        return ConfigSource.UNKNOWN_CONFIG.name


def _value(entry: "ConfigEntry") -> str:
    if entry.is_sensitive:
        return "(hidden)"
    return "" if entry.value is None else entry.value


def _marks(entry: "ConfigEntry") -> str:
    return "read-only" if entry.is_read_only else ""


def _synonyms(entry: "ConfigEntry") -> str:
    return ", ".join(f"{one.name}={_value(one)} ({_source(one)})" for one in entry.synonyms.values())
