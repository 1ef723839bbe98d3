"""``lamina transactions abort``."""

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import topic_argument
from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import FINE
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError


@click.command(
    "abort",
    epilog="""\b
Examples:
  lamina transactions find-hanging orders
  lamina transactions abort orders --partition 0 --start-offset 1234""",
)
@topic_argument()
@click.option("--partition", metavar="N", type=whole(largest=PARTITION_MAX), required=True, help="The partition.")
@click.option(
    "--start-offset",
    metavar="N",
    type=whole(),
    required=True,
    help="The start offset of the transaction, as find-hanging shows it.",
)
@yes_option
@cluster_options
def abort(cluster: Cluster, topic: str, partition: int, start_offset: int, yes: bool) -> int:
    """Abort a hanging transaction in a partition, so that read_committed consumers can go on."""
    from lamina.client.transactions import Transactions

    transactions = Transactions(cluster)
    open_ones = transactions.open_in(transactions.partitions(topic, partition))
    found = next((one for one in open_ones if one.start_offset == start_offset), None)
    if found is None:
        begins = ", ".join(str(one.start_offset) for one in open_ones)
        there = f"those that are open start at {begins}" if begins else "no transaction is open in it"
        raise ClientError(f"no open transaction in {topic}-{partition} starts at offset {start_offset}: {there}")
    known = not transactions.hanging([found])
    warning = (
        " Its coordinator knows it and will end it: aborting it here may leave it half committed." if known else ""
    )
    confirm(
        f"Abort the transaction of producer {found.producer_id} in {topic}-{partition} "
        f"from offset {start_offset} on?{warning}",
        yes,
    )
    transactions.abort(found)
    producer = f"producer {found.producer_id} (epoch {found.producer_epoch})"
    click.echo(f"Aborted the transaction of {producer} in {topic}-{partition}.")
    return FINE
