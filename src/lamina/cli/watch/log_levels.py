"""``lamina watch log-levels``: the loggers of a broker and their levels."""

import difflib

import click

from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json, print_table
from lamina.client.admin_listener import AdminListener

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
