"""``lamina topics``: what can be done with topics, one module each."""

import click

from lamina.cli.topics.add_partitions import add_partitions
from lamina.cli.topics.create import create
from lamina.cli.topics.delete import delete
from lamina.cli.topics.delete_records import delete_records
from lamina.cli.topics.describe import describe
from lamina.cli.topics.elect import elect
from lamina.cli.topics.list import list_topics
from lamina.cli.topics.move import move
from lamina.cli.topics.offsets import offsets
from lamina.cli.topics.reassign import reassign
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


SUBCOMMANDS = (
    add_partitions,
    create,
    delete,
    delete_records,
    describe,
    elect,
    list_topics,
    move,
    offsets,
    reassign,
)
for subcommand in SUBCOMMANDS:
    command.add_command(subcommand)
