"""``lamina cleaner status``: how dirty each compacted partition is, and what keeps it so."""

from typing import Any

import click

from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.options.names import internal_option, is_shown, topic_argument
from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import ago_text, offsets_text, time_text
from lamina.client.admin_listener import AdminListener
from lamina.clocks import SYSTEM_CLOCKS

HEADINGS = ("partition", "state", "dirty ratio", "dirty offsets", "last pass")
"""Few enough for a terminal of 80 columns; --json has the rest."""


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

    The dirty ratio is the share of the closed segments that was written since the last pass; behind the slash is
    min.cleanable.dirty.ratio, above which a log is cleaned. A pass cleans the dirty offsets. Errors are below the
    table.
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
    errors: list[str] = []
    waits: dict[str, None] = {}
    now_ms = SYSTEM_CLOCKS.now_ms()

    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        if row["error"] is not None:
            again = "" if row["retry_at_ms"] is None else f" (retried at {time_text(row['retry_at_ms'])})"
            errors.append(f"{row['topic']}-{row['partition']}: {row['error']}{again}")
        if waits_for(row) is not None:
            waits[f"Passes wait: {waits_for(row)}."] = None
        return status_cells(row, now_ms)

    if not print_table(HEADINGS, map(cells, rows)):
        click.echo("No topic is compacted." if topic is None else f"Topic {topic} is not compacted on this broker.")
    for line in (*errors, *waits):
        click.echo(line)
    return FINE


def status_cells(row: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    last, ratio = row["last_pass"], row.get("dirty_ratio")
    least = f"{row['min_cleanable_dirty_ratio']:g}"
    return (
        f"{row['topic']}-{row['partition']}",
        _state(row),
        "" if ratio is None else f"{ratio:.2f} / {least}",
        _dirty_offsets(row.get("first_dirty_offset"), row.get("first_uncleanable_offset")),
        "" if last is None else f"{last['outcome']} {ago_text(now_ms - last['ended_ms'])}",
    )


def waits_for(row: dict[str, Any]) -> str | None:
    """What the pass over a partition waits for; an older broker does not tell."""
    said: str | None = row.get("waits_for")
    return said


def _dirty_offsets(start: int | None, end: int | None) -> str:
    if start is None or end is None:
        return ""
    return offsets_text(start, end) if start < end else "none"


def _state(row: dict[str, Any]) -> str:
    if row["phase"] is not None and row["total_bytes"]:
        return f"{row['phase']} {100 * row['done_bytes'] // row['total_bytes']}%"
    if row["is_uncleanable"]:
        return "uncleanable"
    if row["is_wanted"]:
        return "requested"
    if row["state"] is not None:
        return str(row["state"])
    return f"overdue {row['overdue_ms'] // 1000}s" if row.get("overdue_ms") else "idle"
