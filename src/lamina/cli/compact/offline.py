"""Compacting a directory that no broker uses, with a progress bar.

Must not know how a log is compacted.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.compact.figures import print_blockers, print_figures
from lamina.cli.options.settings import settings_pairs_from
from lamina.cli.outcome import FINE, SOMETHING_WRONG, warn
from lamina.cli.printing.progress import ProgressLine
from lamina.cli.printing.tables import print_json
from lamina.cli.printing.text import bytes_text

if TYPE_CHECKING:
    from lamina.broker.cleaner.process_engine import ProcessEngine
    from lamina.cleaning.contract import Plan
    from lamina.cleaning.engine_messages import Answer
    from lamina.offline.compact import Result


def compact_offline(
    directory: str,
    topics: tuple[str, ...],
    partition: int | None,
    sets: tuple[str, ...],
    *,
    roll: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    from lamina.broker.cleaner.process_engine import ProcessEngine
    from lamina.offline.compact import OfflineError, Wish, compact_directory

    if roll and dry_run:
        raise click.UsageError("--roll changes the log, and --dry-run changes nothing: leave out one of them.")
    engine = ProcessEngine()
    missing = engine.missing()
    if missing is not None:
        warn(f"nothing can be compacted: {missing}")
        return SOMETHING_WRONG
    overrides = settings_pairs_from(sets, "--set")
    wish = Wish(frozenset(topics), partition, overrides or None, dry_run, roll)
    status = FINE
    done: list[Result] = []
    progress = ProgressLine()
    try:
        for result in compact_directory(directory, wish, _clean(engine, progress)):
            progress.clear()
            if result.manifest is None:
                status = SOMETHING_WRONG if result.is_failure else status
                if not as_json:
                    warn(f"{result.topic}-{result.partition}: {result.reason}")
            done.append(result)
            if as_json:
                print_json({"type": "pass", "dry_run": dry_run, **_row(result)})
    except OfflineError as error:
        progress.clear()
        warn(str(error))
        return SOMETHING_WRONG
    rows = [_row(result) for result in done if result.manifest is not None]
    if not as_json:
        print_figures(rows)
        for row in rows:
            print_blockers(row, row["held_back"])
        if dry_run and rows:
            click.echo("Nothing was changed. Without --dry-run this would be the result.")
        if not done:
            click.echo("No topic in it is compacted.")
    return status


def _clean(engine: "ProcessEngine", progress: ProgressLine) -> Callable[["Plan"], "Answer"]:
    """Does a plan in a process of its own, showing how far it is."""

    def clean(plan: "Plan") -> "Answer":
        def told(done_bytes: int, total_bytes: int) -> None:
            name = f"{plan.topic}-{plan.partition}"
            progress.show(lambda: f"{name}: {bytes_text(done_bytes)} of {bytes_text(total_bytes)}")

        return asyncio.run(engine.clean(plan, told))

    return clean


def _row(result: "Result") -> dict[str, Any]:
    manifest = result.manifest
    row: dict[str, Any] = {"topic": result.topic, "partition": result.partition, "reason": result.reason}
    row["held_back"] = list(result.held_back)
    if manifest is None:
        return row
    return row | {
        "before": asdict(manifest.before),
        "after": asdict(manifest.after),
        "keys": manifest.keys,
        "dropped": asdict(manifest.dropped),
        "horizons": asdict(manifest.horizons),
        "total_seconds": manifest.seconds.total,
        "end_offset": manifest.end_offset,
    }
