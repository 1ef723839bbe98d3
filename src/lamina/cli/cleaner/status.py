"""``lamina cleaner status``: how dirty each compacted partition is, and what keeps it so."""

from typing import Any

import click

from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.options.names import internal_option, is_shown, topic_argument
from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import cell, time_text
from lamina.client.admin_listener import AdminListener

_HEADINGS = (
    "topic",
    "partition",
    "state",
    "dirty ratio",
    "cleaned above",
    "first dirty",
    "first uncleanable",
    "log end",
    "overdue",
    "last pass",
    "error",
)

_NO_PASS = "none"
"""The broker's word for a partition over which no pass is open."""


@click.command(
    "status",
    epilog="""\b
Examples:
  lamina cleaner status
  lamina cleaner status orders --json
  lamina cleaner status --internal""",
)
@topic_argument(required=False)
@internal_option
@as_json_option
@admin_options
def status(listener: AdminListener, topic: str | None, internal: bool, as_json: bool) -> int:
    """Show the compacted partitions of a broker.

    The dirty ratio is the share of the closed segments that was written since the last pass. A log is cleaned when it
    is above min.cleanable.dirty.ratio, which is in the column `cleaned above`. A pass cleans the offsets from
    `first dirty` up to `first uncleanable`.
    """
    named = {} if topic is None else {"topic": topic}
    overview = listener.get("v1", "cleaner", **named, limit="1")
    if overview["why_not"] is not None:
        warn(f"nothing is compacted on this broker: {overview['why_not']}")
    partitions = listener.pages("partitions", "v1", "cleaner", **named)
    rows = (row for row in partitions if is_shown(row["topic"], topic, internal))
    if as_json:
        for row in rows:
            print_json({"type": "cleaner_partition", **row})
        return FINE
    if not print_table(_HEADINGS, map(_cells, rows)):
        click.echo("No topic is compacted." if topic is None else f"Topic {topic} is not compacted on this broker.")
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
        f"{row['overdue_ms'] // 1000} s" if row.get("overdue_ms") else "",
        "" if last is None else f"{time_text(last['ended_ms'])} {last['outcome']}",
        "" if row["error"] is None else f"{row['error']} (retried at {time_text(row['retry_at_ms'] or 0)})",
    )


def _state(row: dict[str, Any]) -> str:
    if row["phase"] is not None and row["total_bytes"]:
        return f"{row['phase']} {100 * row['done_bytes'] // row['total_bytes']} %"
    if row["is_uncleanable"]:
        return "uncleanable"
    if row["is_wanted"]:
        return "requested"
    return "idle" if row["state"] == _NO_PASS else str(row["state"])
