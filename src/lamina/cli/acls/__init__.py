"""``lamina acls``: who may do what."""

import click

from lamina.cli.acls.add import add
from lamina.cli.acls.list import list_acls
from lamina.cli.acls.remove import remove
from lamina.cli.usage import CommandGroup


@click.group(
    "acls",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina acls list
  lamina acls add --allow-principal User:alice --operation Read --topic orders
  lamina acls remove --principal User:alice --topic orders""",
)
def command() -> None:
    """Show, add and remove access rules (ACLs)."""


for subcommand in (add, list_acls, remove):
    command.add_command(subcommand)
