"""``lamina groups delete-offsets``."""

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.groups.chosen import Chosen, chosen_option, is_chosen
from lamina.cli.groups.lookup import committed, describe_all
from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import group_argument
from lamina.cli.outcome import Attempts
from lamina.cli.printing.text import counted
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.offset_deletion import delete_offsets as delete_from


@click.command(
    "delete-offsets",
    epilog="""\b
Examples:
  lamina groups delete-offsets billing --topic orders
  lamina groups delete-offsets billing --topic orders:0,2 --topic payments --yes""",
)
@group_argument()
@chosen_option("A topic, or some of its partitions; may be repeated.")
@yes_option
@cluster_options
def delete_offsets(cluster: Cluster, group: str, chosen: tuple[Chosen, ...], yes: bool) -> int:
    """Delete committed offsets of a group, for topics to which no member is subscribed."""
    if not chosen:
        raise click.UsageError("Give --topic TOPIC, or --topic TOPIC:0,2.")
    attempts = Attempts(cluster)
    for _ in describe_all(cluster, [group], attempts):
        gone = [key for key in committed(cluster, group) if is_chosen(chosen, *key)]
        if not gone:
            raise ClientError(
                f"{group} has no committed offsets there; `lamina groups lag {group}` shows those that it has"
            )
        topics = ", ".join(dict.fromkeys(topic for topic, _ in gone))
        confirm(f"Delete the committed offsets of {group} for {counted(len(gone), 'partition')} of {topics}?", yes)
        for (topic, number), error in delete_from(cluster, group, gone).items():
            if error is None:
                click.echo(f"Deleted the committed offset for {topic}-{number}.")
            else:
                attempts.fail(f"{topic}-{number}", error)
    return attempts.status
