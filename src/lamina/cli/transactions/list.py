"""``lamina transactions list``."""

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.tables import print_json, print_table
from lamina.client.cluster import Cluster


@click.command(
    "list",
    epilog="""\b
Examples:
  lamina transactions list
  lamina transactions list --state Ongoing --state PrepareCommit --json""",
)
@click.option("--state", "states", metavar="STATE", multiple=True, help="Only those in this state; may be repeated.")
@click.option(
    "--producer-id", "producer_ids", metavar="N", type=int, multiple=True, help="Only this producer's; may be repeated."
)
@as_json_option
@cluster_options
def list_transactions(cluster: Cluster, states: tuple[str, ...], producer_ids: tuple[int, ...], as_json: bool) -> int:
    """List transactional ids with their states."""
    from lamina.client.transactions import Transactions

    found = Transactions(cluster).listed(states, producer_ids)
    if as_json:
        for one in found:
            print_json(
                {
                    "type": "transaction",
                    "transactional_id": one.transactional_id,
                    "coordinator": one.coordinator,
                    "producer_id": one.producer_id,
                    "state": one.state,
                }
            )
        return FINE
    shown = print_table(
        ("transactional id", "coordinator", "producer id", "state"),
        [(one.transactional_id, str(one.coordinator), str(one.producer_id), one.state) for one in found],
    )
    if not shown:
        warn(f"there are no {'such ' if states or producer_ids else ''}transactional ids")
    return FINE
