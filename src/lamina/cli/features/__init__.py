"""``lamina features``: the levels that a cluster agrees on, one module for each thing to do."""

import click

from lamina.cli.features.describe import describe
from lamina.cli.features.upgrade import downgrade, upgrade
from lamina.cli.usage import CommandGroup


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
