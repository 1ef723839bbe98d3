"""``lamina topics delete``."""

import click

from lamina.cli.attempts import Attempts
from lamina.cli.connecting import cluster_options, yes_option
from lamina.cli.deleting import delete_found
from lamina.cli.names import topics_argument
from lamina.cli.topics.descriptions import describe_all
from lamina.client.cluster import Cluster


@click.command(
    "delete",
    epilog="""\b
Examples:
  lamina topics delete orders
  lamina topics delete orders payments --yes""",
)
@topics_argument()
@yes_option
@cluster_options
def delete(cluster: Cluster, topics: tuple[str, ...], yes: bool) -> int:
    """Delete topics with all their records."""
    attempts = Attempts(cluster)
    found = [topic.name for topic in describe_all(cluster, topics, attempts)]
    return delete_found(attempts, found, "all records", cluster.admin().delete_topics, yes)
