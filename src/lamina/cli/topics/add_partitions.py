"""``lamina topics add-partitions``."""

import click

from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import topic_argument
from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.text import counted
from lamina.cli.topics.lookup import describe_all
from lamina.client.cluster import Cluster


@click.command(
    "add-partitions",
    epilog="""\b
Examples:
  lamina topics add-partitions orders --total 6""",
)
@topic_argument()
@click.option(
    "--total",
    metavar="N",
    type=whole(1, PARTITION_MAX),
    required=True,
    help="How many partitions the topic will have in total.",
)
@cluster_options
def add_partitions(cluster: Cluster, topic: str, total: int) -> int:
    """Add partitions to a topic.

    Most producers choose a record's partition by its key and the number of partitions. With another number, later
    records of a key may go to another partition than earlier ones, and readers lose the order between them.
    """
    from confluent_kafka.admin import NewPartitions

    attempts = Attempts(cluster)
    for before in describe_all(cluster, [topic], attempts):
        for _ in attempts.answers(cluster.admin().create_partitions([NewPartitions(topic, total)]).items()):
            click.echo(f"Topic {topic} now has {counted(total, 'partition')}; it had {len(before.partitions)}.")
            warn("later records of a key may now go to another partition than earlier ones")
    return attempts.status
