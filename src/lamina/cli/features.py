"""``lamina features``: the levels that a cluster agrees on."""

from collections.abc import Mapping

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.settings import pairs_from
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.usage import CommandGroup
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
    """Show the features, the levels that the broker asked supports, and the finalized level; 0 is none."""
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


_LARGEST_LEVEL = 2**15 - 1

levels_argument = click.argument("levels", metavar="FEATURE=LEVEL…", nargs=-1, required=True)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only check whether it could be done.")


@click.command(
    "upgrade",
    epilog="""\b
Examples:
  lamina features upgrade transaction.version=2
  lamina features upgrade transaction.version=2 --dry-run --json""",
)
@levels_argument
@dry_run_option
@as_json_option
@cluster_options
def upgrade(cluster: Cluster, levels: tuple[str, ...], dry_run: bool, as_json: bool) -> int:
    """Raise the levels of features: all, or none if one is refused."""
    from lamina.client.features import Change, Features

    wanted = _levels_from(levels)
    Features(cluster).update(wanted, Change.UPGRADE, is_dry_run=dry_run)
    return _told(wanted, dry_run, as_json)


@click.command(
    "downgrade",
    epilog="""\b
Examples:
  lamina features downgrade transaction.version=1
  lamina features downgrade transaction.version=0 --dry-run
  lamina features downgrade metadata.version=20 --unsafe""",
)
@levels_argument
@click.option("--unsafe", is_flag=True, help="Even if metadata is lost; asks first.")
@dry_run_option
@as_json_option
@yes_option
@cluster_options
def downgrade(cluster: Cluster, levels: tuple[str, ...], unsafe: bool, dry_run: bool, as_json: bool, yes: bool) -> int:
    """Lower the levels of features: all, or none if one is refused. Level 0 disables a feature."""
    from lamina.client.features import Change, Features

    wanted = _levels_from(levels)
    if unsafe and not dry_run:
        confirm(f"Lower {', '.join(wanted)} even if metadata is lost?", yes)
    change = Change.UNSAFE_DOWNGRADE if unsafe else Change.SAFE_DOWNGRADE
    Features(cluster).update(wanted, change, is_dry_run=dry_run)
    return _told(wanted, dry_run, as_json)


def _levels_from(texts: tuple[str, ...]) -> dict[str, int]:
    levels = {}
    for name, text in pairs_from(texts, "FEATURE=LEVEL").items():
        if not text.isascii() or not text.isdigit() or int(text) > _LARGEST_LEVEL:
            raise click.BadParameter(
                f"{text!r} is not a level: a number up to {_LARGEST_LEVEL}", param_hint="FEATURE=LEVEL"
            )
        levels[name] = int(text)
    return levels


def _told(wanted: Mapping[str, int], dry_run: bool, as_json: bool) -> int:
    for name, level in wanted.items():
        if as_json:
            print_json({"type": "feature_update", "feature": name, "level": level, "dry_run": dry_run})
        else:
            click.echo(f"{name} could be set to {level}" if dry_run else f"{name} = {level}")
    return FINE


@click.group(
    "features",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina features describe
  lamina features upgrade transaction.version=2
  lamina features downgrade transaction.version=1 --dry-run""",
)
def command() -> None:
    """Show and change the feature levels of a cluster."""


for subcommand in (describe, downgrade, upgrade):
    command.add_command(subcommand)
