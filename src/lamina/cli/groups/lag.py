"""``lamina groups lag``."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from lamina.cli.groups.lookup import Partition, all_groups, committed, describe_all, state_of
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import checked_names, complete_topic, groups_argument
from lamina.cli.outcome import Attempts
from lamina.cli.printing.tables import Value, print_json, print_table
from lamina.cli.printing.text import cell, counted
from lamina.cli.topics.partition_offsets import PartitionOffsets
from lamina.client.cluster import Cluster

_COLUMNS = {
    "topic": "topic",
    "partition": "partition",
    "committed": "committed offset",
    "latest": "log end offset",
    "lag": "lag",
    "client_id": "client id",
    "host": "host",
    "member_id": "member id",
}
"""Fields, with the headings of their columns."""


@click.command(
    "lag",
    epilog="""\b
Examples:
  lamina groups lag
  lamina groups lag billing --topic orders --json""",
)
@groups_argument(required=False)
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC",
    multiple=True,
    callback=checked_names,
    shell_complete=complete_topic,
    help="Only this topic; may be repeated.",
)
@as_json_option
@cluster_options
def lag(cluster: Cluster, groups: tuple[str, ...], topics: tuple[str, ...], as_json: bool) -> int:
    """Show how far groups are behind the end of each partition; all groups if none is named.

    Lag is a difference of offsets: the log end offset minus the committed offset. There are fewer records than that
    where compaction, transactions or deleted records left gaps.
    """
    attempts = Attempts(cluster)
    names = groups or [group.group_id for group in all_groups(cluster, attempts)]
    lookup = PartitionOffsets(cluster, attempts)
    for group in describe_all(cluster, names, attempts):
        rows = _rows(cluster, lookup, group, frozenset(topics))
        known = [row["lag"] for row in rows if isinstance(row["lag"], int)]
        total: dict[str, Value] = {
            "type": "lag_total",
            "group": group.group_id,
            "state": state_of(group),
            "lag": sum(known),
            "partition_count": len(rows),
            "unknown_count": len(rows) - len(known),
        }
        if as_json:
            for row in [*rows, total]:
                print_json(row)
        else:
            _print(group.group_id, rows, total)
    lookup.report()
    return attempts.status


def _rows(cluster: Cluster, lookup: PartitionOffsets, group: Any, topics: frozenset[str]) -> list[dict[str, Value]]:
    done = committed(cluster, group.group_id)
    readers = _readers(group.members)
    partitions = sorted(key for key in done.keys() | readers.keys() if not topics or key[0] in topics)
    latest = lookup.latest(partitions)
    rows: list[dict[str, Value]] = []
    for topic, number in partitions:
        at, end = done.get((topic, number)), latest.get((topic, number))
        reader = readers.get((topic, number))
        rows.append(
            {
                "type": "lag",
                "group": group.group_id,
                "topic": topic,
                "partition": number,
                "committed": at,
                "latest": end,
                "lag": None if at is None or end is None else end - at,
                "client_id": None if reader is None else reader.client_id,
                "host": None if reader is None else reader.host.lstrip("/"),
                "member_id": None if reader is None else reader.member_id,
            }
        )
    return rows


def _readers(members: Iterable[Any]) -> Mapping[Partition, Any]:
    return {(one.topic, one.partition): member for member in members for one in member.assignment.topic_partitions}


def _counted_offsets(lag: Value) -> str:
    return f"{lag} offset" if lag == 1 else f"{lag} offsets"


def _print(group: str, rows: list[dict[str, Value]], total: Mapping[str, Value]) -> None:
    click.echo(f"{group}  (state {total['state']})")
    print_table(tuple(_COLUMNS.values()), [tuple(cell(row[name]) for name in _COLUMNS) for row in rows])
    uncommitted = sum(row["committed"] is None for row in rows)
    endless = sum(row["committed"] is not None and row["latest"] is None for row in rows)
    unknown = f"; without a committed offset: {uncommitted}" if uncommitted else ""
    unknown += f"; whose end is not known: {endless}" if endless else ""
    partitions = counted(len(rows), "partition")
    click.echo(f"Total lag: {_counted_offsets(total['lag'])} in {partitions}{unknown}")
    click.echo()
