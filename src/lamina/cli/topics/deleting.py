"""``lamina topics delete``."""

import click

from lamina.cli.attempts import Attempts
from lamina.cli.connecting import cluster_options, confirm, yes_option
from lamina.cli.topic_names import topics_argument
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
    if not found:
        return attempts.status
    confirm(f"Delete {', '.join(found)} with all records?", yes)
    for topic, _ in attempts.answers(cluster.admin().delete_topics(found).items()):
        click.echo(f"{topic}: deleted")
    return attempts.status
