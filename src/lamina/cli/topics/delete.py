"""``lamina topics delete``."""

import click

from lamina.cli.confirmation import delete_found, yes_option
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import topics_argument
from lamina.cli.outcome import Attempts
from lamina.cli.printing.tables import print_json
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
@as_json_option
@cluster_options
def delete(cluster: Cluster, topics: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Delete topics with all their records."""
    attempts = Attempts(cluster)
    found = [topic.name for topic in describe_all(cluster, topics, attempts)]

    def tell(name: str) -> None:
        if as_json:
            print_json({"type": "topic_deletion", "name": name})
        else:
            click.echo(f"Deleted topic {name}.")

    return delete_found(attempts, "topic", found, "all records", cluster.admin().delete_topics, yes, tell)
