"""``lamina cluster restart``: one process begins anew on what it left."""

import click

from lamina.cli.cluster.directory import local_cluster_option, member_argument, member_from
from lamina.cli.cluster.done import print_broker, print_cluster
from lamina.cli.options.cluster import as_json_option
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
@as_json_option
@local_cluster_option
def restart(cluster: LocalCluster, member: str, as_json: bool) -> int:
    """Start broker N, or ZooKeeper, on what it left; one that runs is stopped first."""
    found = member_from(cluster, member)
    if isinstance(found, int):
        started = cluster.restart_broker(found, warn)
        done = f"Broker {found} is ready on {started.address} (process {started.pid})."
        print_broker(cluster, found, done, as_json=as_json)
    else:
        pid = cluster.restart_zookeeper(warn)
        done = f"ZooKeeper is ready on {cluster.zookeeper_address()} (process {pid})."
        print_cluster(cluster, done, as_json=as_json)
    return FINE
