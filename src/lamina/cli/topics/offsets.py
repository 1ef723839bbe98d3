"""``lamina topics offsets``."""

from typing import TYPE_CHECKING

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.moments import FORMS, parse_moment
from lamina.cli.options.names import topic_argument
from lamina.cli.outcome import Attempts
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.cli.printing.text import cell, counted, time_text
from lamina.cli.topics.lookup import EARLIEST, LATEST, MAX_TIMESTAMP, describe_all
from lamina.cli.topics.partition_offsets import PartitionOffsets
from lamina.client.cluster import Cluster
from lamina.clocks import SYSTEM_CLOCKS

if TYPE_CHECKING:
    from confluent_kafka.admin import TopicDescription

_NAMED = {"earliest": EARLIEST, "latest": LATEST, "max-timestamp": MAX_TIMESTAMP}


@click.command(
    "offsets",
    epilog=f"""\b
Examples:
  lamina topics offsets orders
  lamina topics offsets orders --at max-timestamp
  lamina topics offsets orders --at -1h
\b
A time is {FORMS}; without a zone it is UTC.""",
)
@topic_argument()
@click.option(
    "--at",
    metavar="WHERE",
    help="earliest, latest, max-timestamp, or a time: the first record of that time or later.  "
    "[default: earliest and latest]",
)
@as_json_option
@cluster_options
def offsets(cluster: Cluster, topic: str, at: str | None, as_json: bool) -> int:
    """Show the earliest and the latest offset of each partition.

    With --at, the offset that belongs to a time.
    """
    wanted = None if at is None else _place(at)
    attempts = Attempts(cluster)
    lookup = PartitionOffsets(cluster, attempts)
    for found in describe_all(cluster, [topic], attempts):
        if wanted is None:
            _print_ends(lookup, found, as_json)
        else:
            _print_one(lookup, found, wanted, as_json)
    lookup.report()
    return attempts.status


def _place(at: str) -> int:
    try:
        return _NAMED[at] if at in _NAMED else parse_moment(at, SYSTEM_CLOCKS.now_ms())
    except ValueError as error:
        raise click.BadParameter(f"{error}, or earliest, latest or max-timestamp.", param_hint="--at") from error


def _print_ends(lookup: PartitionOffsets, topic: "TopicDescription", as_json: bool) -> None:
    earliest, latest = lookup.find([topic], EARLIEST), lookup.find([topic], LATEST)
    rows: list[Row] = []
    total = 0
    for number in (partition.id for partition in topic.partitions):
        key = (topic.name, number)
        start = earliest[key].offset if key in earliest else None
        end = latest[key].offset if key in latest else None
        count = None if start is None or end is None else end - start
        total += count or 0
        rows.append(
            {
                "type": "partition_ends",
                "topic": topic.name,
                "partition": number,
                "earliest": start,
                "latest": end,
                "count": count,
            }
        )
    _print({"partition": "partition", "earliest": "earliest", "latest": "latest", "count": "offsets"}, rows, as_json)
    if not as_json:
        click.echo(f"Total: {counted(total, 'offset')}")


def _print_one(lookup: PartitionOffsets, topic: "TopicDescription", at: int, as_json: bool) -> None:
    """Where no record is that late, or none at all, a broker answers -1."""
    found = lookup.find([topic], at)
    rows: list[Row] = []
    for number in (partition.id for partition in topic.partitions):
        answer = found.get((topic.name, number))
        offset = answer.offset if answer is not None and answer.offset >= 0 else None
        timestamp = answer.timestamp if answer is not None and answer.timestamp >= 0 else None
        rows.append(
            {
                "type": "partition_offset",
                "topic": topic.name,
                "partition": number,
                "offset": offset,
                "timestamp": timestamp,
                "time": None if timestamp is None else time_text(timestamp),
            }
        )
    _print({"partition": "partition", "offset": "offset", "time": "time"}, rows, as_json)


def _print(columns: dict[str, str], rows: list[Row], as_json: bool) -> None:
    """``columns`` are the fields of a row, with their headings."""
    if as_json:
        for row in rows:
            print_json(row)
        return
    print_table(tuple(columns.values()), [tuple(cell(row[name]) for name in columns) for row in rows])
