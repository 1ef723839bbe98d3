"""``lamina watch follow``: every request of somebody in the broker's log."""

import click

from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json
from lamina.client.admin_listener import AdminListener


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
        click.echo("lamina: no requests are logged", err=True)
    return FINE
