"""``lamina transactions describe``."""

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import Attempts
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import time_text
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Unreachable
from lamina.clocks import SYSTEM_CLOCKS


@click.command(
    "describe",
    epilog="""\b
Examples:
  lamina transactions describe orders-copier
  lamina transactions describe orders-copier --json""",
)
@click.argument("transactional_ids", metavar="ID…", nargs=-1, required=True)
@as_json_option
@cluster_options
def describe(cluster: Cluster, transactional_ids: tuple[str, ...], as_json: bool) -> int:
    """Show the producer, state, times and partitions of transactional ids."""
    from lamina.client.transactions import Described, Transactions

    transactions, attempts = Transactions(cluster), Attempts(cluster)
    found: list[Described] = []
    for transactional_id in transactional_ids:
        try:
            found.append(transactions.described(transactional_id))
        except Unreachable:
            raise
        except ClientError as error:
            attempts.fail(transactional_id, error)
    now_ms = SYSTEM_CLOCKS.now_ms()
    if as_json:
        for one in found:
            print_json(
                {
                    "type": "transaction_description",
                    "transactional_id": one.transactional_id,
                    "coordinator": one.coordinator,
                    "producer_id": one.producer_id,
                    "producer_epoch": one.producer_epoch,
                    "state": one.state,
                    "timeout_ms": one.timeout_ms,
                    "started": None if one.start_ms is None else time_text(one.start_ms),
                    "open_ms": None if one.start_ms is None else max(now_ms - one.start_ms, 0),
                    "partitions": [{"topic": topic, "partition": index} for topic, index in one.partitions],
                }
            )
        return attempts.status
    print_table(
        ("transactional id", "coordinator", "producer id", "epoch", "state", "timeout ms", "started", "partitions"),
        [
            (
                one.transactional_id,
                str(one.coordinator),
                str(one.producer_id),
                str(one.producer_epoch),
                one.state,
                str(one.timeout_ms),
                "" if one.start_ms is None else time_text(one.start_ms) or "",
                " ".join(f"{topic}-{index}" for topic, index in one.partitions),
            )
            for one in found
        ],
    )
    return attempts.status
