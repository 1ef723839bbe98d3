"""``lamina cleaner explain``: why a record is still there."""

from base64 import b64decode, b64encode
from typing import Any

import click

from lamina.cli.near_topics import suggesting_topics
from lamina.cli.options.admin import admin_options
from lamina.cli.options.cluster import as_json_option
from lamina.cli.options.names import topic_argument
from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import print_json
from lamina.cli.printing.text import readable, time_text
from lamina.client.admin_listener import AdminListener


@click.command(
    "explain",
    epilog="""\b
Examples:
  lamina cleaner explain orders --key customer-7
  lamina cleaner explain orders --partition 2 --offset 1500""",
)
@topic_argument()
@click.option("--key", metavar="TEXT", help="The last record with this key.")
@click.option("--offset", type=whole(), metavar="N", help="The record at this offset.")
@click.option("--partition", type=whole(largest=PARTITION_MAX), metavar="N", help="Only in this partition.")
@as_json_option
@admin_options
def explain(
    listener: AdminListener, topic: str, key: str | None, offset: int | None, partition: int | None, as_json: bool
) -> int:
    """Explain why a record is still there, and when compaction can remove it at the earliest.

    With --key every partition is searched, the newest segments first. A search ends after 15 seconds, and says where it
    did not search. The result shows keys, so the broker wants one of its admin tokens.
    """
    if (key is None) == (offset is None):
        raise click.UsageError("Give either --key or --offset.")
    query = {"topic": topic}
    if key is not None:
        query["key_base64"] = b64encode(key.encode(errors="surrogateescape")).decode()
    else:
        query["offset"] = str(offset)
    if partition is not None:
        query["partition"] = str(partition)
    with suggesting_topics(listener, topic):
        records = listener.get("v1", "cleaner", "explain", **query)["records"]
    for row in records:
        if as_json:
            print_json({"type": "explanation", "topic": topic, **row})
        else:
            _print(topic, row)
    return FINE


def _print(topic: str, row: dict[str, Any]) -> None:
    what = f"{topic}-{row['partition']}"
    if row["offset"] is not None:
        what += f" offset {row['offset']}"
    if row.get("is_marker"):
        what += ", the marker of a transaction"
    elif row.get("key_base64") is not None:
        text, encoding = readable(b64decode(row["key_base64"]))
        what += f", key {text}" if encoding == "text" else f", key {text} (base64)"
    if row.get("is_tombstone"):
        what += ", a tombstone"
    if "goes" in row:
        what += ": will be removed" if row["goes"] else ": stays"
    click.echo(what)
    for reason in row["reasons"]:
        click.echo(f"  {reason}")
    if row.get("earliest_ms") is not None:
        click.echo(f"  not before {time_text(row['earliest_ms']) or 'the end of time'}")
