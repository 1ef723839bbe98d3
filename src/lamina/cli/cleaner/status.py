"""``lamina cleaner status``: how dirty each compacted partition is, and what keeps it so."""

from typing import Any

import click

from lamina.cli.administering import admin_options
from lamina.cli.connecting import as_json_option, warn
from lamina.cli.listing import cell, time_text
from lamina.cli.output import print_json, print_table
from lamina.cli.status import FINE
from lamina.client.admin_listener import AdminListener

_HEADINGS = (
    "topic",
    "partition",
    "state",
    "dirty",
    "of",
    "first dirty",
    "uncleanable",
    "end",
    "overdue s",
    "last pass",
    "error",
)


@click.command(
    "status",
    epilog="""\b
Examples:
  lamina cleaner status
  lamina cleaner status orders --json""",
)
@click.argument("topic", required=False)
@as_json_option
@admin_options
def status(listener: AdminListener, topic: str | None, as_json: bool) -> int:
    """Show the compacted partitions of a broker.

    `dirty` is the share of closed segments that was written since the last pass; a log is compacted when that is above
    `of`, its min.cleanable.dirty.ratio. A pass goes from `first dirty` to `uncleanable`.
    """
    named = {} if topic is None else {"topic": topic}
    overview = listener.get("v1", "cleaner", **named, limit="1")
    if overview["why_not"] is not None:
        warn(f"no topic is being compacted: {overview['why_not']}")
    rows = listener.pages("partitions", "v1", "cleaner", **named)
    if as_json:
        for row in rows:
            print_json({"type": "cleaner_partition", **row})
        return FINE
    if not print_table(_HEADINGS, map(_cells, rows)):
        click.echo("there are no compacted topics" if topic is None else f"{topic} is not compacted here")
    return FINE


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    last = row["last_pass"]
    ratio = row.get("dirty_ratio")
    return (
        row["topic"],
        str(row["partition"]),
        _state(row),
        "" if ratio is None else f"{ratio:.2f}",
        f"{row['min_cleanable_dirty_ratio']:g}",
        cell(row.get("first_dirty_offset")),
        cell(row.get("first_uncleanable_offset")),
        cell(row.get("log_end_offset")),
        str(row["overdue_ms"] // 1000) if row.get("overdue_ms") else "",
        "" if last is None else f"{time_text(last['ended_ms'])} {last['outcome']}",
        "" if row["error"] is None else f"{row['error']} (again at {time_text(row['retry_at_ms'] or 0)})",
    )


def _state(row: dict[str, Any]) -> str:
    if row["phase"] is not None and row["total_bytes"]:
        return f"{row['phase']} {100 * row['done_bytes'] // row['total_bytes']} %"
    if row["is_uncleanable"]:
        return "uncleanable"
    return "asked for" if row["is_wanted"] else str(row["state"])
