"""``lamina cluster status``: how a cluster on this machine is."""

import click

from lamina.cli.cluster.directory import local_cluster_option
from lamina.cli.cluster.rows import HEADINGS, broker_row, cells, cluster_row, pid_cell, troubles, zookeeper_cells
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE, SOMETHING_WRONG
from lamina.cli.printing.tables import print_json, print_table
from lamina.cluster.broker_figures import BrokerWatch
from lamina.cluster.local_cluster import LocalCluster


@click.command(
    "status",
    epilog="""\b
Exit status: 0 the cluster runs, 1 it does not.

\b
Examples:
  lamina cluster status
  lamina cluster status --data-dir /var/lib/lamina-cluster --json""",
)
@as_json_option
@local_cluster_option
def status(cluster: LocalCluster, as_json: bool) -> int:
    """Show the processes of a cluster, and what each broker says of itself.

    Of the partitions that a broker leads, those that are under-replicated lack a replica in sync. The lag is how many
    offsets the broker is behind its leaders.
    """
    with BrokerWatch() as watch:
        views = watch.look(cluster.brokers())
    zookeeper, is_running = cluster.zookeeper(), cluster.is_running()
    if as_json:
        print_json(cluster_row(cluster))
        for view in views:
            print_json(broker_row(view))
        return FINE if is_running else SOMETHING_WRONG
    rows = [(*zookeeper_cells(zookeeper), pid_cell(zookeeper.pid))]
    rows += [(*cells(view), pid_cell(view.status.pid)) for view in views]
    print_table((*HEADINGS, "pid"), rows)
    if not is_running:
        click.echo(f"The cluster in {cluster.directory} is not running.")
        return SOMETHING_WRONG
    click.echo(f"Clients connect to {cluster.bootstrap_servers()}; ZooKeeper is at {cluster.zookeeper_address()}.")
    for trouble in troubles(cluster, zookeeper, views):
        click.echo(trouble)
    return FINE
