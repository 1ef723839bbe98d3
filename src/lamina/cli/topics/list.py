"""``lamina topics list``."""

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import internal_option
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.cli.printing.text import cell
from lamina.cli.topics.lookup import all_names, describe_all, id_text, replication_factor
from lamina.client.cluster import Cluster


@click.command(
    "list",
    epilog="""\b
Examples:
  lamina topics list
  lamina topics list --internal --json""",
)
@internal_option
@as_json_option
@cluster_options
def list_topics(cluster: Cluster, internal: bool, as_json: bool) -> int:
    """List topics."""
    attempts = Attempts(cluster)
    rows: list[Row] = [
        {
            "type": "topic",
            "name": topic.name,
            "id": id_text(topic),
            "internal": topic.is_internal,
            "partition_count": len(topic.partitions),
            "replication_factor": replication_factor(topic),
        }
        for topic in describe_all(cluster, all_names(cluster), attempts)
        if internal or not topic.is_internal
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return attempts.status
    shown = ("name", "partition_count", "replication_factor", "id")
    print_table(
        ("topic", "partitions", "replication factor", "id"), [tuple(cell(row[name]) for name in shown) for row in rows]
    )
    if not rows:
        if cluster.shows_who_asks:
            warn("there are no topics that you may describe; ask for the permission, or create one")
        else:
            warn("there are no topics; create one with `lamina topics create NAME`")
    return attempts.status
