"""``lamina cluster stop``: one broker, or the whole cluster, in order."""

import click

from lamina.cli.cluster.directory import broker_from, local_cluster_option
from lamina.cli.cluster.done import print_broker, print_cluster
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE, warn
from lamina.cli.usage import Complete
from lamina.cluster.layout import ZOOKEEPER
from lamina.cluster.local_cluster import LocalCluster


@click.command(
    "stop",
    epilog="""\b
Examples:
  lamina cluster stop 2
  lamina cluster stop --data-dir /var/lib/lamina-cluster""",
)
@click.argument("broker", metavar="[N]", required=False)
@as_json_option
@local_cluster_option
def stop(cluster: LocalCluster, broker: str | None, as_json: bool) -> int:
    """Stop broker N as SIGTERM does, or, without N, all brokers and then ZooKeeper.

    A broker first hands over what it leads, and flushes its logs. One that has not ended after a minute is killed.
    """
    if broker is None:
        was_running = cluster.is_running()
        cluster.stop(warn)
        done = "Stopped the cluster." if was_running else f"The cluster in {cluster.directory} is not running."
        print_cluster(cluster, done, as_json=as_json)
        return FINE
    if broker == ZOOKEEPER:
        raise Complete(
            "ZooKeeper stops last, with the whole cluster: leave it out; `lamina cluster kill zookeeper` ends it alone"
        )
    broker_id = broker_from(cluster, broker, "or none to stop all")
    cluster.stop_broker(broker_id, warn)
    print_broker(cluster, broker_id, f"Stopped broker {broker_id}.", as_json=as_json)
    return FINE
