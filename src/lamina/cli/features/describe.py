"""``lamina features describe``."""

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json, print_table
from lamina.client.cluster import Cluster


@click.command(
    "describe",
    epilog="""\b
Examples:
  lamina features describe
  lamina features describe --json""",
)
@as_json_option
@cluster_options
def describe(cluster: Cluster, as_json: bool) -> int:
    """Show the features, the levels that the brokers support, and the finalized level; 0 is none."""
    from lamina.client.features import Features

    found = Features(cluster).described()
    if as_json:
        for one in found:
            print_json(
                {
                    "type": "feature",
                    "feature": one.name,
                    "min_level": one.min_level,
                    "max_level": one.max_level,
                    "level": one.level,
                    "epoch": one.epoch,
                }
            )
        return FINE
    print_table(
        ("feature", "min level", "max level", "level", "epoch"),
        [(one.name, *(_shown(n) for n in (one.min_level, one.max_level, one.level, one.epoch))) for one in found],
    )
    return FINE


def _shown(number: int | None) -> str:
    return "" if number is None else str(number)
