"""The longest turn of a broker's loop while one request has 10,000 entries, API by API: ``make bench-turns``.

While a turn computes, every other client waits. Time is CPU time of the loop's thread. Two brokers are asked: with one
topic of 10,000 partitions, and with 10,000 topics.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.callbacks import Callback, take_report
from bench.long_requests import Client, LongRequests
from bench.subjects import new_lamina

ENTRIES = 10_000
BAR_MS = 20.0
PARTITIONS, TOPICS = "partitions", "topics"
SETTINGS = {"log.segment.delete.delay.ms": "60000", "lamina.spark.master": "none"}


class Turn(NamedTuple):
    of: str
    """What the entries are."""
    request: str
    longest: Callback


def main() -> str | None:
    parser = argparse.ArgumentParser(prog="bench-turns", description="The longest turns of a broker's loop.")
    parser.add_argument("--entries", type=int, default=ENTRIES, help="how many a request has; %(default)s")
    parser.add_argument("--dir", type=Path, help="where the data lies, instead of the system's temporary directory")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    progress = Console(stderr=True)
    turns = []
    with tempfile.TemporaryDirectory(prefix="lamina-bench-turns-", dir=options.dir) as root:
        for turn in chain.from_iterable(measure(Path(root), options.entries, of) for of in (PARTITIONS, TOPICS)):
            turns.append(turn)
            progress.print(f"{turn.of}: {turn.request}: {turn.longest.cpu_ms:.1f} ms", highlight=False)
    if options.json:
        print(json.dumps([{**turn._asdict(), **turn.longest._asdict()} for turn in turns], indent=2))
    else:
        show(turns, options.entries)
    over = [f"{turn.request} ({turn.of})" for turn in turns if turn.longest.cpu_ms > BAR_MS]
    return f"over the bar: {'; '.join(over)}" if over else None


def measure(root: Path, entries: int, of: str) -> Iterator[Turn]:
    """One broker, from its first topic to its stop."""
    report = root / f"{of}.json"
    command = [sys.executable, "-m", "bench.timed_loop", str(report)]
    with new_lamina(root / of, command, SETTINGS) as lamina:
        with Client(lamina) as client:
            requests = LongRequests(client, entries, is_one_topic=of == PARTITIONS)
            for asked in chain(requests.rows_without_topics() if of == PARTITIONS else (), requests.rows()):
                take_report(lamina.process_id, report)
                for _ in range(asked.times):
                    client.send(asked.api_key, [asked.facts], asked.version)
                yield Turn(of, asked.name, take_report(lamina.process_id, report)[0])
        # What was made for the stop is no part of it.
        take_report(lamina.process_id, report)
        lamina.stop()
        cpu_ns, name = json.loads(report.read_text())[0]
        yield Turn(of, "(the stop)", Callback(cpu_ns / 1e6, name))


def show(turns: Sequence[Turn], entries: int) -> None:
    table = Table(f"with {entries:,}", "longest turn while", "CPU time", "what ran", f"bar ≤ {BAR_MS:g} ms")
    for turn in turns:
        cpu_ms = turn.longest.cpu_ms
        verdict = "✓" if cpu_ms <= BAR_MS else f"✗ {cpu_ms / BAR_MS:.1f} × the bar"
        table.add_row(turn.of, turn.request, f"{cpu_ms:.1f} ms", turn.longest.name, verdict)
    Console(width=160).print(table)


if __name__ == "__main__":
    sys.exit(main())
