"""``lamina transactions find-hanging``."""

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import topic_argument
from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import time_text
from lamina.client.cluster import Cluster
from lamina.clocks import SYSTEM_CLOCKS

_LONGEST_TIMEOUT_MINUTES = 15


@click.command(
    "find-hanging",
    epilog="""\b
Examples:
  lamina transactions find-hanging
  lamina transactions find-hanging orders --partition 0 --max-transaction-timeout 1
\b
The status is 1 if there are any.""",
)
@topic_argument(required=False)
@click.option("--partition", metavar="N", type=whole(largest=PARTITION_MAX), help="Only this partition of TOPIC.")
@click.option(
    "--max-transaction-timeout",
    "timeout_minutes",
    metavar="MINUTES",
    type=whole(),
    default=_LONGEST_TIMEOUT_MINUTES,
    show_default=True,
    help="Leave out transactions that wrote within this time.",
)
@as_json_option
@cluster_options
def find_hanging(
    cluster: Cluster, topic: str | None, partition: int | None, timeout_minutes: int, as_json: bool
) -> int:
    """Show open transactions that no coordinator knows, so that nothing will ever end them."""
    from lamina.client.transactions import Transactions

    if partition is not None and topic is None:
        raise click.UsageError("--partition needs TOPIC.")
    transactions = Transactions(cluster)
    oldest_ms = SYSTEM_CLOCKS.now_ms() - timeout_minutes * 60_000
    open_ones = transactions.open_in(transactions.partitions(topic, partition))
    found = transactions.hanging(one for one in open_ones if one.last_timestamp_ms <= oldest_ms)
    if as_json:
        for one, transactional_id in found:
            print_json(
                {
                    "type": "hanging_transaction",
                    "topic": one.topic,
                    "partition": one.partition,
                    "producer_id": one.producer_id,
                    "producer_epoch": one.producer_epoch,
                    "transactional_id": transactional_id,
                    "start_offset": one.start_offset,
                    "last_written": time_text(one.last_timestamp_ms),
                }
            )
    else:
        print_table(
            ("topic", "partition", "producer id", "epoch", "transactional id", "start offset", "last written"),
            [
                (
                    one.topic,
                    str(one.partition),
                    str(one.producer_id),
                    str(one.producer_epoch),
                    transactional_id or "",
                    str(one.start_offset),
                    time_text(one.last_timestamp_ms) or "",
                )
                for one, transactional_id in found
            ],
        )
    if not found and not as_json:
        warn("there are no hanging transactions")
    return SOMETHING_WRONG if found else FINE
