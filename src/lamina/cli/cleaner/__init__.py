"""``lamina cleaner``: what a broker compacts, what it has compacted, and why a record is still there."""

import click

from lamina.cli.cleaner.explain import explain
from lamina.cli.cleaner.history import history
from lamina.cli.cleaner.status import status
from lamina.cli.usage import CommandGroup


@click.group(
    "cleaner",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina cleaner status
  lamina cleaner history orders
  lamina cleaner explain orders --key customer-7""",
)
def command() -> None:
    """Show what is compacted and when, and why a record is still there."""


for subcommand in (explain, history, status):
    command.add_command(subcommand)
