"""The figures of passes, as a table: what was there before, what is there now, and what keeps the rest.

Must not know where they come from.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from lamina.cli.printing.tables import print_table
from lamina.cli.printing.text import bytes_text, counted, time_text

_HEADINGS = ("topic", "partition", "records", "bytes", "segments", "keys", "tombstones", "seconds")


def print_figures(passes: Iterable[Mapping[str, Any]]) -> None:
    """Each has ``topic``, ``partition``, ``before``, ``after``, ``keys``, ``total_seconds``."""
    print_table(
        _HEADINGS,
        (
            (
                one["topic"],
                str(one["partition"]),
                _change(one, "records"),
                f"{bytes_text(one['before']['bytes'])} → {bytes_text(one['after']['bytes'])}",
                _change(one, "segments"),
                str(one["keys"]),
                _change(one, "tombstones"),
                f"{one['total_seconds']:.2f}",
            )
            for one in passes
        ),
    )


def _change(one: Mapping[str, Any], name: str) -> str:
    return f"{one['before'][name]} → {one['after'][name]}"


def print_blockers(one: Mapping[str, Any], held_back: Iterable[str]) -> None:
    """Why what remained could not go."""
    lines = []
    tombstones, markers = one["after"]["tombstones"], one["after"]["markers"]
    if tombstones:
        its = "its" if tombstones == 1 else "their"
        lines.append(f"{counted(tombstones, 'tombstone')} left, until {its} delete horizon")
    if markers:
        lines.append(
            f"{counted(markers, 'transaction marker')} left, until the records are gone and the delete horizon is past"
        )
    earliest = one["horizons"]["earliest_ms"]
    if lines and earliest is not None:
        lines.append(f"the first delete horizon is {time_text(earliest) or 'the end of time'}")
    if one["after"]["header_only_batches"]:
        count = one["after"]["header_only_batches"]
        batches = "1 batch without records" if count == 1 else f"{count:,} batches without records"
        lines.append(f"{batches} kept: a producer's last one, or the last one that was cleaned")
    for line in (*lines, *held_back):
        click.echo(f"  {one['topic']}-{one['partition']}: {line}")
