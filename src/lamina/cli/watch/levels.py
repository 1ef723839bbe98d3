"""``lamina watch log-levels``: how much a broker logs."""

import click

from lamina.cli.administering import admin_options
from lamina.cli.connecting import as_json_option
from lamina.cli.output import print_json, print_table
from lamina.cli.status import FINE
from lamina.client.admin_listener import AdminListener

_DEFAULT = "default"
_LEVELS = ("debug", "info", "warning", "error", "critical", _DEFAULT)


@click.command(
    "log-levels",
    epilog="""\b
Examples:
  lamina watch log-levels
  lamina watch log-levels lamina.log debug
  lamina watch log-levels lamina.log default""",
)
@click.argument("room", required=False)
@click.argument("level", required=False, type=click.Choice(_LEVELS))
@as_json_option
@admin_options
def log_levels(listener: AdminListener, as_json: bool, room: str | None, level: str | None) -> int:
    """Show how much each room of a broker logs, or change it for one until the broker ends."""
    if level == _DEFAULT:
        rows = [listener.delete("v1", "log-levels", room or "")]
    elif level is not None:
        rows = [listener.put("v1", "log-levels", room or "", body={"level": level})]
    else:
        rows = [row for row in listener.get("v1", "log-levels")["rooms"] if room in (None, row["room"])]
        if not rows:
            raise click.BadParameter(f"there is no room {room}; without one, all are shown", param_hint="ROOM")
    if as_json:
        for row in rows:
            print_json({"type": "log_level", **row})
        return FINE
    print_table(
        ("room", "level", "set here"),
        [(row["room"], row["level"], "yes" if row["is_set"] else "") for row in rows],
    )
    return FINE
