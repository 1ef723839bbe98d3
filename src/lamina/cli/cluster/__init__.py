"""``lamina cluster``: a cluster on this machine, found by its directory alone; and what moves a cluster of any kind."""

import click

from lamina.cli.cluster.add_broker import add_broker
from lamina.cli.cluster.adopt import adopt
from lamina.cli.cluster.backup import backup
from lamina.cli.cluster.kill import kill
from lamina.cli.cluster.remove_broker import remove_broker
from lamina.cli.cluster.restart import restart
from lamina.cli.cluster.restore import restore
from lamina.cli.cluster.status import status
from lamina.cli.cluster.stop import stop
from lamina.cli.cluster.up import up
from lamina.cli.usage import CommandGroup


@click.group(
    "cluster",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina cluster up --brokers 3
  lamina cluster status
  lamina cluster kill 2
  lamina cluster restart 2
  lamina cluster add-broker
  lamina cluster stop""",
)
def command() -> None:
    """Run a cluster on this machine: a ZooKeeper and some brokers.

    For trying, testing and small installations. Everything is in one directory, and by it any terminal finds the
    cluster. `adopt`, `backup` and `restore` are for clusters of any kind. What else acts on any cluster is under
    `lamina brokers` and `lamina topics`.
    """


for subcommand in (add_broker, adopt, backup, kill, remove_broker, restart, restore, status, stop, up):
    command.add_command(subcommand)
