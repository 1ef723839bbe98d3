"""``lamina topics delete``."""

import click

from lamina.cli.confirmation import delete_found, yes_option
from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import topics_argument
from lamina.cli.outcome import Attempts
from lamina.cli.topics.lookup import describe_all
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
    return delete_found(attempts, "topic", found, "all records", cluster.admin().delete_topics, yes)
