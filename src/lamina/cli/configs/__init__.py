"""``lamina configs``: settings of topics and brokers while they run, one module for each thing to do."""

import click

from lamina.cli.configs.get import get_configs
from lamina.cli.configs.set import set_configs, unset_configs
from lamina.cli.usage import CommandGroup


@click.group(
    "configs",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina configs get --topic orders
  lamina configs set --topic orders retention.ms=3600000
  lamina configs unset --topic orders retention.ms""",
)
def command() -> None:
    """Show and change the settings of topics and brokers."""


for subcommand in (get_configs, set_configs, unset_configs):
    command.add_command(subcommand)
