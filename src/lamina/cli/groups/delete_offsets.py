"""``lamina groups delete-offsets``."""

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.groups.chosen import Chosen, chosen_option, is_chosen
from lamina.cli.groups.lookup import committed, describe_all
from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import group_argument
from lamina.cli.outcome import Attempts
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.offset_deletion import REFUSAL
from lamina.client.offset_deletion import delete_offsets as delete_from


@click.command(
    "delete-offsets",
    epilog="""\b
Examples:
  lamina groups delete-offsets billing --topic orders
  lamina groups delete-offsets billing --topic orders:0,2 --topic payments --yes""",
)
@group_argument()
@chosen_option("Whose offsets; may be repeated.")
@yes_option
@cluster_options
def delete_offsets(cluster: Cluster, group: str, chosen: tuple[Chosen, ...], yes: bool) -> int:
    """Delete what a group committed for topics that none of its members reads.

    Asked over a connection of the command's own, without TLS or login: librdkafka's binding cannot ask for it.
    """
    if not chosen:
        raise click.UsageError("Say whose offsets: --topic TOPIC, or --topic TOPIC:0,2.")
    cluster.require_plain(REFUSAL)
    attempts = Attempts(cluster)
    for _ in describe_all(cluster, [group], attempts):
        gone = [key for key in committed(cluster, group) if is_chosen(chosen, *key)]
        if not gone:
            raise ClientError(f"{group} committed nothing there; `lamina groups lag {group}` shows what it has")
        topics = ", ".join(dict.fromkeys(topic for topic, _ in gone))
        confirm(f"Delete what {group} committed for {len(gone)} partitions of {topics}?", yes)
        for (topic, number), error in delete_from(cluster, group, gone).items():
            if error is None:
                click.echo(f"{topic}-{number}: deleted")
            else:
                attempts.fail(f"{topic}-{number}", error)
    return attempts.status
