"""``lamina configs set`` and ``unset``: one request for all names, so that either all are changed or none."""

from collections.abc import Mapping

import click

from lamina.cli.configs.requests import alter, check_names, entries_of
from lamina.cli.configs.resource import Resource, resource_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.options.settings import settings_pairs_from
from lamina.cli.outcome import Attempts
from lamina.cli.printing.tables import print_json
from lamina.client.cluster import Cluster


@click.command(
    "set",
    epilog="""\b
Examples:
  lamina configs set --topic orders retention.ms=7d cleanup.policy=compact,delete
  lamina configs set --broker 1 log.retention.ms=3600000
  lamina configs set --broker-default log.retention.ms=3600000""",
)
@click.argument("settings", metavar="KEY=VALUE…", nargs=-1, required=True)
@as_json_option
@resource_options
def set_configs(cluster: Cluster, resource: Resource, settings: tuple[str, ...], as_json: bool) -> int:
    """Change settings: all, or none if one is refused.

    A value may have a unit where the setting's name has one: retention.ms=7d, retention.bytes=10GiB.
    """
    given = settings_pairs_from(settings, "KEY=VALUE")
    return _alter(cluster, resource, given, as_json)


@click.command(
    "unset",
    epilog="""\b
Examples:
  lamina configs unset --topic orders retention.ms
  lamina configs unset --broker 1 log.retention.ms""",
)
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@as_json_option
@resource_options
def unset_configs(cluster: Cluster, resource: Resource, names: tuple[str, ...], as_json: bool) -> int:
    """Remove settings, so that their defaults apply again."""
    attempts = Attempts(cluster)
    known = entries_of(cluster, resource, attempts)
    if known is not None:
        check_names(resource, names, known, attempts)
    return attempts.status or _alter(cluster, resource, dict.fromkeys(names), as_json)


def _alter(cluster: Cluster, resource: Resource, wanted: Mapping[str, str | None], as_json: bool) -> int:
    """None takes a setting back."""
    attempts = Attempts(cluster)
    if alter(cluster, resource, wanted, attempts):
        for name, value in wanted.items():
            if as_json:
                print_json(
                    {
                        "type": "config_change",
                        "resource_type": resource.type,
                        "resource": resource.name,
                        "name": name,
                        "value": value,
                    }
                )
            elif value is None:
                click.echo(f"{resource}: {name} is back at its default")
            else:
                click.echo(f"{resource}: {name} = {value}")
    return attempts.status
