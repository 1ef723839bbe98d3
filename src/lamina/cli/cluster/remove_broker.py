"""``lamina cluster remove-broker``: one that keeps nothing any more is forgotten."""

import click

from lamina.cli.cluster.directory import broker_from, local_cluster_option
from lamina.cli.cluster.done import print_cluster
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.text import counted
from lamina.cli.reassignment.following import look
from lamina.client.cluster import Cluster
from lamina.cluster.errors import keeps_replicas
from lamina.cluster.layout import broker_name
from lamina.cluster.local_cluster import LocalCluster
from lamina.settings.broker import DEFAULT_REPLICATION_FACTOR


@click.command(
    "remove-broker",
    epilog="""\b
Exit status: 0 fine, 1 it was not removed.

\b
Examples:
  lamina brokers decommission 3
  lamina cluster remove-broker 3""",
)
@click.argument("broker", metavar="N")
@as_json_option
@local_cluster_option
def remove_broker(cluster: LocalCluster, broker: str, as_json: bool) -> int:
    """Stop broker N, which keeps no replicas any more, and forget it: the next `up` does not start it.

    `lamina brokers decommission N` moves its replicas away first. Its directory is left for you to remove.
    """
    broker_id = broker_from(cluster, broker, "that keeps nothing")

    def check() -> None:
        layout, _ = look(Cluster(cluster.bootstrap_servers()))
        kept = sum(broker_id in placed.replicas for placed in layout.partitions.values())
        if kept:
            raise keeps_replicas(broker_id, counted(kept, "partition"), cluster.bootstrap_servers())

    cluster.remove_broker(broker_id, check, warn)
    left = cluster.layout.data(broker_name(broker_id))
    state = cluster.state()
    name, there = DEFAULT_REPLICATION_FACTOR.name, len(state.brokers)
    factor = int(state.settings.get(name, "1"))
    if factor > there:
        warn(
            f"{name} is {factor}, and the cluster has {counted(there, 'broker')}: create topics with "
            f"--replication-factor {there}, or add a broker with `lamina cluster add-broker`"
        )
    print_cluster(cluster, f"Removed broker {broker_id}. What is left in {left} is not needed.", as_json=as_json)
    return FINE
