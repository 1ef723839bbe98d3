"""``lamina watch slow-requests``: what took long, and where."""

import click

from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import time_text
from lamina.client.admin_listener import AdminListener

_PARTS = ("arriving_ms", "queued_ms", "handling_ms", "threads_ms", "sending_ms", "waiting_ms")


@click.command(
    "slow-requests",
    epilog="""\b
Examples:
  lamina watch slow-requests
  lamina configs set --broker 1 lamina.slow.request.ms=100""",
)
@as_json_option
@admin_options
def slow_requests(listener: AdminListener, as_json: bool) -> int:
    """Show a broker's last slow requests, newest first, and where their time went.

    Times are in milliseconds. The time that a fetch waits for new records is not part of its total. A request is slow
    if it takes longer than lamina.slow.request.ms.
    """
    rows = listener.get("v1", "slow-requests")["slow_requests"]
    if as_json:
        for row in rows:
            print_json({"type": "slow_request", **row})
        return FINE
    shown = print_table(
        ("ended", "client", "api", "bytes", "total", *(part.removesuffix("_ms") for part in _PARTS), "error"),
        (
            (
                time_text(row["ended_at_ms"]) or "",
                row["client_id"] or row["peer"],
                f"{row['api']} v{row['api_version']}",
                str(row["size_bytes"]),
                f"{row['total_ms']:.0f}",
                *(f"{row[part]:.0f}" for part in _PARTS),
                row["error"] or "",
            )
            for row in rows
        ),
    )
    if not shown:
        click.echo("No slow requests since the broker started.")
    return FINE
