"""What a command has done to a member of a cluster, or to all of it: a sentence, or how that is now, as JSON.

Must not do anything to it.
"""

import click

from lamina.cli.cluster.rows import broker_row, cluster_row
from lamina.cli.printing.tables import print_json
from lamina.cluster.broker_figures import BrokerWatch
from lamina.cluster.local_cluster import LocalCluster


def print_cluster(cluster: LocalCluster, sentence: str, *, as_json: bool) -> None:
    """Of ZooKeeper too: it is in the cluster's object."""
    if as_json:
        print_json(cluster_row(cluster))
    else:
        click.echo(sentence)


def print_broker(cluster: LocalCluster, broker_id: int, sentence: str, *, as_json: bool) -> None:
    if not as_json:
        click.echo(sentence)
        return
    with BrokerWatch() as watch:
        for view in watch.look(one for one in cluster.brokers() if one.id == broker_id):
            print_json(broker_row(view))
