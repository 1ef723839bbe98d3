"""``lamina watch``: what a running broker is doing, and how much it logs; one module each."""

import click

from lamina.cli.usage import CommandGroup
from lamina.cli.watch.connections import connections
from lamina.cli.watch.follow import follow
from lamina.cli.watch.log_levels import log_levels
from lamina.cli.watch.slow_requests import slow_requests


@click.group(
    "watch",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina watch connections
  lamina watch slow-requests
  lamina watch log-levels lamina.log debug
  lamina watch follow my-client""",
)
def command() -> None:
    """Show connections and slow requests, and change log levels."""


for subcommand in (connections, follow, log_levels, slow_requests):
    command.add_command(subcommand)
