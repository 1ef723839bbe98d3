"""``lamina cleaner history``: the last passes, with their figures."""

from itertools import islice
from typing import Any

import click

from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.options.names import internal_option, is_shown, topic_argument
from lamina.cli.options.numbers import whole
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import bytes_text, time_text
from lamina.client.admin_listener import AdminListener

_HEADINGS = (
    "ended",
    "topic",
    "partition",
    "outcome",
    "offsets",
    "records",
    "bytes",
    "keys",
    "seconds",
    "of which job",
    "reason",
)


@click.command(
    "history",
    epilog="""\b
Examples:
  lamina cleaner history
  lamina cleaner history orders --limit 5
  lamina cleaner history --json | jq '.dropped'""",
)
@topic_argument(required=False)
@click.option("--limit", type=whole(1), default=20, show_default=True, metavar="N", help="How many, at most.")
@internal_option
@as_json_option
@admin_options
def history(listener: AdminListener, topic: str | None, limit: int, internal: bool, as_json: bool) -> int:
    """Show the last cleaning passes since the broker started, newest first."""
    named = {} if topic is None else {"topic": topic}
    passes = listener.pages("passes", "v1", "cleaner", "history", **named)
    rows = islice((row for row in passes if is_shown(row["topic"], topic, internal)), limit)
    if as_json:
        for row in rows:
            print_json({"type": "pass", **row})
        return FINE
    if not print_table(_HEADINGS, map(_cells, rows)):
        click.echo(f"No pass {'' if topic is None else f'over {topic} '}since the broker started.")
    return FINE


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    figures = ("", "", "", "")
    if "before" in row:
        before, after = row["before"], row["after"]
        figures = (
            f"{before['records']} → {after['records']}",
            f"{bytes_text(before['bytes'])} → {bytes_text(after['bytes'])}",
            str(row["keys"]),
            f"{row['job_seconds']['total']:.2f}",
        )
    return (
        time_text(row["ended_ms"]) or "",
        row["topic"],
        str(row["partition"]),
        row["outcome"],
        f"{row['first_dirty_offset']}-{row['first_uncleanable_offset']}",
        *figures[:3],
        f"{row['seconds']['total']:.2f}",
        figures[3],
        row["reason"] or "",
    )
