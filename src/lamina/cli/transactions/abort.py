"""``lamina transactions abort``."""

import click

from lamina.cli.confirmation import confirm, yes_option
from lamina.cli.options.cluster import cluster_options
from lamina.cli.options.names import topic_argument
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
@click.option("--partition", metavar="N", type=click.IntRange(0, 2**31 - 1), required=True, help="Which partition.")
@click.option(
    "--start-offset",
    metavar="N",
    type=click.IntRange(0, 2**63 - 1),
    required=True,
    help="Where the transaction begins, as find-hanging shows it.",
)
@yes_option
@cluster_options
def abort(cluster: Cluster, topic: str, partition: int, start_offset: int, yes: bool) -> int:
    """Abort a transaction that hangs in a partition: readers of committed records pass it by and go on."""
    from lamina.client.transactions import Transactions

    transactions = Transactions(cluster)
    open_ones = transactions.open_in(transactions.partitions(topic, partition))
    found = next((one for one in open_ones if one.start_offset == start_offset), None)
    if found is None:
        begins = ", ".join(str(one.start_offset) for one in open_ones)
        there = f"there are some at {begins}" if begins else "there is none at all"
        raise ClientError(
            f"no transaction that is open in {topic}-{partition} begins at offset {start_offset}: {there}"
        )
    known = not transactions.hanging([found])
    warning = " Its coordinator knows it and will end it by itself: this may tear it apart." if known else ""
    confirm(
        f"Abort the transaction of producer {found.producer_id} in {topic}-{partition} "
        f"from offset {start_offset} on?{warning}",
        yes,
    )
    transactions.abort(found)
    click.echo(f"aborted: {topic}-{partition}, producer {found.producer_id} epoch {found.producer_epoch}")
    return FINE
