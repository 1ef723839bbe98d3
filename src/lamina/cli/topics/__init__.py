"""``lamina topics``: what can be done with topics, one module each."""

import click

from lamina.cli.topics.adding import add_partitions
from lamina.cli.topics.creating import create
from lamina.cli.topics.deleting import delete
from lamina.cli.topics.describing import describe
from lamina.cli.topics.emptying import delete_records
from lamina.cli.topics.finding import offsets
from lamina.cli.topics.naming import list_topics
from lamina.cli.usage import CommandGroup


@click.group(
    "topics",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina topics create orders --partitions 3
  lamina topics describe orders
  lamina topics delete orders""",
)
def command() -> None:
    """Create, describe, change and delete topics."""


for subcommand in (add_partitions, create, delete, delete_records, describe, list_topics, offsets):
    command.add_command(subcommand)
