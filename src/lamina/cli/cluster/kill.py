"""``lamina cluster kill``: one process ends at once, as if its machine lost its power."""

import click

from lamina.cli.cluster.directory import local_cluster_option, member_argument
from lamina.cli.outcome import FINE
from lamina.cluster.local_cluster import LocalCluster


@click.command(
    "kill",
    epilog="""\b
Examples:
  lamina cluster kill 2
  lamina cluster kill zookeeper
  lamina cluster kill 2 --data-dir /var/lib/lamina-cluster""",
)
@member_argument
@local_cluster_option
def kill(cluster: LocalCluster, member: int | str) -> int:
    """Kill broker N, or ZooKeeper, with SIGKILL, to see what the others do.

    Its data stays: `lamina cluster restart` starts it again.
    """
    if isinstance(member, int):
        click.echo(f"Killed broker {member} (process {cluster.kill_broker(member)}).")
    else:
        click.echo(f"Killed ZooKeeper (process {cluster.kill_zookeeper()}).")
    return FINE
