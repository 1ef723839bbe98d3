"""``lamina groups delete``."""

import click

from lamina.cli.confirmation import delete_found, yes_option
from lamina.cli.groups.lookup import describe_all
from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import groups_argument
from lamina.cli.outcome import Attempts
from lamina.client.cluster import Cluster


@click.command(
    "delete",
    epilog="""\b
Examples:
  lamina groups delete billing
  lamina groups delete billing shipping --yes""",
)
@groups_argument()
@yes_option
@cluster_options
def delete(cluster: Cluster, groups: tuple[str, ...], yes: bool) -> int:
    """Delete groups that have no members, with their committed offsets."""
    attempts = Attempts(cluster)
    found = [group.group_id for group in describe_all(cluster, groups, attempts)]
    return delete_found(attempts, "group", found, "all committed offsets", cluster.admin().delete_consumer_groups, yes)
