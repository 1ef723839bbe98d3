"""``lamina groups list``."""

from typing import Any

import click

from lamina.cli.groups.lookup import STATES, all_groups, protocol_of, state_of
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.client.cluster import Cluster


@click.command(
    "list",
    epilog="""\b
Examples:
  lamina groups list
  lamina groups list --state Empty --state Dead
  lamina groups list --type consumer --json""",
)
@click.option(
    "--state",
    "states",
    metavar="STATE",
    multiple=True,
    type=click.Choice([*STATES], case_sensitive=False),
    help=f"Only groups in this state: {', '.join(STATES)}; may be repeated.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(["classic", "consumer"], case_sensitive=False),
    help="Only groups of this protocol; may be repeated.",
)
@as_json_option
@cluster_options
def list_groups(cluster: Cluster, states: tuple[str, ...], types: tuple[str, ...], as_json: bool) -> int:
    """List consumer groups."""
    from confluent_kafka import ConsumerGroupState, ConsumerGroupType

    filters: dict[str, Any] = {}
    if states:
        filters["states"] = {ConsumerGroupState[STATES[state]] for state in states}
    if types:
        filters["types"] = {ConsumerGroupType[name.upper()] for name in types}
    attempts = Attempts(cluster)
    rows: list[Row] = [
        {
            "type": "group",
            "group": group.group_id,
            "state": state_of(group),
            "protocol": protocol_of(group),
            "simple": group.is_simple_consumer_group,
        }
        for group in all_groups(cluster, attempts, **filters)
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return attempts.status
    print_table(
        ("group", "state", "protocol"),
        [tuple(str(row[name]) for name in ("group", "state", "protocol")) for row in rows],
    )
    if not rows and not attempts.status:
        warn(f"there are no {'such ' if filters else ''}groups")
    return attempts.status
