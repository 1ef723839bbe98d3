"""``lamina cluster restart``: one process begins anew on what it left."""

import click

from lamina.cli.cluster.directory import local_cluster_option, member_argument
from lamina.cli.outcome import FINE, warn
from lamina.cluster.local_cluster import LocalCluster


@click.command(
    "restart",
    epilog="""\b
Examples:
  lamina cluster restart 2
  lamina cluster restart zookeeper
  lamina cluster restart 2 --data-dir /var/lib/lamina-cluster""",
)
@member_argument
@local_cluster_option
def restart(cluster: LocalCluster, member: int | str) -> int:
    """Start broker N, or ZooKeeper, on what it left; one that runs is stopped first."""
    if isinstance(member, int):
        started = cluster.restart_broker(member, warn)
        click.echo(f"Broker {member} is ready on {started.address} (process {started.pid}).")
    else:
        pid = cluster.restart_zookeeper(warn)
        click.echo(f"ZooKeeper is ready on {cluster.zookeeper_address()} (process {pid}).")
    return FINE
