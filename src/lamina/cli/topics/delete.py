"""``lamina topics delete``."""

import click

from lamina.cli.confirmation import delete_found, yes_option
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import topics_argument
from lamina.cli.outcome import Attempts
from lamina.cli.printing.tables import print_json
from lamina.cli.topics.lookup import describe_all
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError

_LOST_WITH = {
    "__consumer_offsets": "the committed offsets of all groups",
    "__transaction_state": "all transactions that are under way, and who may write in them",
}


@click.command(
    "delete",
    epilog="""\b
Examples:
  lamina topics delete orders
  lamina topics delete orders payments --yes""",
)
@topics_argument()
@click.option("--internal", is_flag=True, help="Also internal topics: what groups and transactions need is lost.")
@yes_option
@as_json_option
@cluster_options
def delete(cluster: Cluster, topics: tuple[str, ...], internal: bool, yes: bool, as_json: bool) -> int:
    """Delete topics with all their records."""
    attempts = Attempts(cluster)
    found = []
    lost = ["all records"]
    for topic in describe_all(cluster, topics, attempts):
        with_it = _LOST_WITH.get(topic.name, "what the cluster keeps in it")
        if topic.is_internal and not internal:
            attempts.fail(
                topic.name, ClientError(f"it is an internal topic: {with_it} would be lost; --internal deletes it")
            )
            continue
        found.append(topic.name)
        if topic.is_internal:
            lost.append(with_it)

    def tell(name: str) -> None:
        if as_json:
            print_json({"type": "topic_deletion", "name": name})
        else:
            click.echo(f"Deleted topic {name}.")

    return delete_found(attempts, "topic", found, " and ".join(lost), cluster.admin().delete_topics, yes, tell)
