"""``lamina cluster kill``: one process ends at once, as if its machine lost its power."""

import click

from lamina.cli.cluster.directory import local_cluster_option, member_argument, member_from
from lamina.cli.cluster.done import print_broker, print_cluster
from lamina.cli.options.cluster import as_json_option
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
@as_json_option
@local_cluster_option
def kill(cluster: LocalCluster, member: str, as_json: bool) -> int:
    """Kill broker N, or ZooKeeper, with SIGKILL, to see what the others do.

    Its data stays: `lamina cluster restart` starts it again.
    """
    found = member_from(cluster, member)
    if isinstance(found, int):
        done = f"Killed broker {found} (process {cluster.kill_broker(found)})."
        print_broker(cluster, found, done, as_json=as_json)
    else:
        done = f"Killed ZooKeeper (process {cluster.kill_zookeeper()})."
        print_cluster(cluster, done, as_json=as_json)
    return FINE
