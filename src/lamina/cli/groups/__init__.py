"""``lamina groups``: what can be done with consumer groups, one module each."""

import click

from lamina.cli.groups.delete import delete
from lamina.cli.groups.delete_offsets import delete_offsets
from lamina.cli.groups.describe import describe
from lamina.cli.groups.lag import lag
from lamina.cli.groups.list import list_groups
from lamina.cli.groups.reset_offsets import reset_offsets
from lamina.cli.usage import CommandGroup


@click.group(
    "groups",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina groups list
  lamina groups lag billing
  lamina groups reset-offsets billing --topic orders --to-earliest --execute""",
)
def command() -> None:
    """Show consumer groups and their lag, and reset their offsets."""


for subcommand in (delete, delete_offsets, describe, lag, list_groups, reset_offsets):
    command.add_command(subcommand)
