"""``lamina watch``: what a running broker is doing, and how much it logs."""

import difflib

import click

from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.tables import print_json, print_table
from lamina.cli.printing.text import time_text
from lamina.cli.usage import CommandGroup
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


@click.command(
    "follow",
    epilog="""\b
Examples:
  lamina watch follow my-client
  lamina watch follow 127.0.0.1:51234
  lamina watch follow my-client --stop
  lamina watch follow""",
)
@click.argument("who", metavar="[CLIENT]", required=False)
@click.option("--stop", is_flag=True, help="Stop logging them.")
@as_json_option
@admin_options
def follow(listener: AdminListener, as_json: bool, who: str | None, stop: bool) -> int:
    """Log every request of a client, or show which clients are logged.

    CLIENT is a client id, the id of a connection, or an address, as `lamina watch connections` shows them. The requests
    are written to the broker's log.
    """
    if who is None:
        if stop:
            raise click.UsageError("--stop needs CLIENT: `lamina watch follow` shows which clients are logged.")
        answer = listener.get("v1", "followed")
    elif stop:
        answer = listener.delete("v1", "followed", who)
    else:
        answer = listener.put("v1", "followed", who)
    if as_json:
        print_json({"type": "followed", **answer})
        return FINE
    for one in answer["followed"]:
        click.echo(one)
    if not answer["followed"]:
        warn("no requests are logged")
    return FINE


_DEFAULT = "default"
_PACKAGE_DOTS = 1
"""Loggers with no more dots than this are shown: ``lamina`` and its packages."""
_LEVELS = ("debug", "info", "warning", "error", "critical", _DEFAULT)


@click.command(
    "log-levels",
    epilog="""\b
Examples:
  lamina watch log-levels
  lamina watch log-levels lamina.log debug
  lamina watch log-levels lamina.log default
  lamina watch log-levels --all""",
)
@click.argument("logger", metavar="[LOGGER]", required=False)
@click.argument("level", required=False, type=click.Choice(_LEVELS))
@click.option("--all", "everything", is_flag=True, help="Also the loggers of single modules.")
@as_json_option
@admin_options
def log_levels(listener: AdminListener, as_json: bool, logger: str | None, level: str | None, everything: bool) -> int:
    """Show the loggers of a broker with their levels, or change the level of one until the broker stops.

    A level holds for the logger and those below it: lamina.broker for everything in the broker. Shown are packages, and
    whatever was changed.
    """
    if level == _DEFAULT:
        rows = [listener.delete("v1", "log-levels", logger or "")]
    elif level is not None:
        rows = [listener.put("v1", "log-levels", logger or "", body={"level": level})]
    else:
        rows = listener.get("v1", "log-levels")["loggers"]
        if logger is not None:
            names = [row["logger"] for row in rows]
            rows = [row for row in rows if row["logger"] == logger]
            if not rows:
                raise click.BadParameter(_no_logger(logger, names), param_hint="LOGGER")
        elif not everything:
            rows = [row for row in rows if row["is_set"] or row["logger"].count(".") <= _PACKAGE_DOTS]
    if as_json:
        for row in rows:
            print_json({"type": "log_level", **row})
        return FINE
    print_table(
        ("logger", "level", "changed"),
        [(row["logger"], row["level"], "yes" if row["is_set"] else "") for row in rows],
    )
    return FINE


def _no_logger(name: str, names: list[str]) -> str:
    if name.lower() in _LEVELS:
        return f"name the logger before the level: `lamina watch log-levels lamina {name.lower()}`"
    near = difflib.get_close_matches(name[:100], names, n=1)
    return f"there is no logger {name}; " + (f"did you mean {near[0]}?" if near else "--all shows every one")


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


@click.group(
    "watch",
    cls=CommandGroup,
    epilog="""\b
Examples:
  lamina watch connections
  lamina watch slow-requests
  lamina watch log-levels lamina.log debug
  lamina watch follow my-client""",
)
def command() -> None:
    """Show connections and slow requests, and change log levels."""


for subcommand in (connections, follow, log_levels, slow_requests):
    command.add_command(subcommand)
