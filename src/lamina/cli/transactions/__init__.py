"""``lamina transactions``: what can be done with transactions, one module each."""

import click

from lamina.cli.transactions.abort import abort
from lamina.cli.transactions.describe import describe
from lamina.cli.transactions.find_hanging import find_hanging
from lamina.cli.transactions.list import list_transactions
from lamina.cli.usage import CommandGroup


@click.group(
    "transactions",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina transactions list --state Ongoing
  lamina transactions find-hanging
  lamina transactions abort orders --partition 0 --start-offset 1234""",
)
def command() -> None:
    """Show transactions, find those that hang, and abort them."""


for subcommand in (abort, describe, find_hanging, list_transactions):
    command.add_command(subcommand)
