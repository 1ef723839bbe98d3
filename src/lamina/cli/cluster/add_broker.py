"""``lamina cluster add-broker``: one more."""

import click

from lamina.cli.cluster.directory import local_cluster_option
from lamina.cli.cluster.done import print_broker
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE, warn
from lamina.cluster.local_cluster import LocalCluster


@click.command(
    "add-broker",
    epilog="""\b
Examples:
  lamina cluster add-broker
  lamina cluster add-broker --data-dir /var/lib/lamina-cluster""",
)
@as_json_option
@local_cluster_option
def add_broker(cluster: LocalCluster, as_json: bool) -> int:
    """Add a broker with the next id and port to a cluster that runs.

    New topics use it; the partitions that exist stay where they are.
    """
    added = cluster.add_broker(warn)
    done = f"Broker {added.id} is ready on {added.address} (process {added.pid})."
    print_broker(cluster, added.id, done, as_json=as_json)
    return FINE
