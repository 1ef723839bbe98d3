"""``lamina watch connections``: who is connected."""

import click

from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import time_text
from lamina.client.admin_listener import AdminListener

_HEADINGS = ("id", "peer", "client id", "software", "connected since", "requests", "bytes in", "bytes out", "idle s")


@click.command(
    "connections",
    epilog="""\b
Examples:
  lamina watch connections
  lamina watch connections --json | jq 'select(.idle_ms > 60000)'""",
)
@as_json_option
@admin_options
def connections(listener: AdminListener, as_json: bool) -> int:
    """Show the connections of a broker."""
    rows = listener.pages("connections", "v1", "connections")
    if as_json:
        for row in rows:
            print_json({"type": "connection", **row})
        return FINE
    print_table(
        _HEADINGS,
        (
            (
                str(row["id"]),
                row["peer"],
                row["client_id"] or "",
                row["client_software"] or "",
                time_text(row["opened_ms"]) or "",
                str(row["requests"]),
                str(row["in_bytes"]),
                str(row["out_bytes"]),
                f"{row['idle_ms'] / 1000:.1f}",
            )
            for row in rows
        ),
    )
    return FINE
