"""``lamina cluster stop``: one broker, or the whole cluster, in order."""

import click

from lamina.cli.cluster.directory import local_cluster_option
from lamina.cli.options.numbers import whole
from lamina.cli.outcome import FINE, warn
from lamina.cluster.local_cluster import LocalCluster


@click.command(
    "stop",
    epilog="""\b
Examples:
  lamina cluster stop 2
  lamina cluster stop --data-dir /var/lib/lamina-cluster""",
)
@click.argument("broker_id", metavar="[N]", type=whole(1), required=False)
@local_cluster_option
def stop(cluster: LocalCluster, broker_id: int | None) -> int:
    """Stop broker N as SIGTERM does, or, without N, all brokers and then ZooKeeper.

    A broker first hands over what it leads, and flushes its logs. One that has not ended after a minute is killed.
    """
    if broker_id is None:
        was_running = cluster.is_running()
        cluster.stop(warn)
        click.echo("Stopped the cluster." if was_running else f"The cluster in {cluster.directory} is not running.")
        return FINE
    cluster.stop_broker(broker_id, warn)
    click.echo(f"Stopped broker {broker_id}.")
    return FINE
