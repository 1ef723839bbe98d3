"""``lamina security``: making what brokers and clients trust each other by, one module for each command."""

import click

from lamina.cli.security.init import init
from lamina.cli.usage import CommandGroup


@click.group(
    "security",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina security init secure
  lamina security init secure --broker 1=m1.example.com --broker 2=m2.example.com --zookeeper zk1:2181/lamina""",
)
def command() -> None:
    """Make certificates, passwords and settings for brokers and clients."""


command.add_command(init)
