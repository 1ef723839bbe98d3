"""Lamina's broker by itself, without a Kafka: ``make bench-broker``.

Shows the longest callbacks of its loop and what groups cost it in memory; with ``--profile ROW`` where its time goes in
a row of ``make bench-kafka``.
"""

from __future__ import annotations

import argparse
import json
import sys

from rich.console import Console
from rich.table import Table

from bench.amounts import FULL
from bench.callbacks import BAR_MS, Phases, measure_callbacks, worst_ms
from bench.group_memory import GroupMemory, measure_group_memory
from bench.profiled import profile_of
from bench.programs import LoadError
from bench.trials import all_trials

CALLBACKS_SHOWN = 3


def main() -> str | None:
    trials = {trial.name: trial for trial in all_trials(FULL) if trial.api}
    parser = argparse.ArgumentParser(prog="bench-broker", description="Lamina's broker by itself.")
    parser.add_argument("--profile", choices=list(trials), metavar="ROW", help=f"one of {', '.join(trials)}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    try:
        if options.profile:
            print(profile_of(trials[options.profile]))
            return None
        memory, phases = measure_group_memory(), measure_callbacks()
    except LoadError as missing:
        return str(missing)
    if options.json:
        longest = {phase: [callback._asdict() for callback in callbacks] for phase, callbacks in phases.items()}
        found = {"group_memory": memory._asdict(), "callbacks": longest, "longest_callback_ms": worst_ms(phases)}
        print(json.dumps(found, indent=2))
    else:
        show(memory, phases)
    return None


def show(memory: GroupMemory, phases: Phases) -> None:
    console = Console(width=120)
    table = Table("memory of groups", "each")
    table.add_row("a group with one committed offset", f"{memory.bytes_per_group:,.0f} B")
    table.add_row("a committed offset of a group with 1,000", f"{memory.bytes_per_offset:,.0f} B")
    table.add_row("a group with one member (consumer protocol)", f"{memory.bytes_per_member:,.0f} B")
    console.print(table)
    table = Table("longest callbacks of the loop while", "CPU time", "what ran", f"bar ≤ {BAR_MS:g} ms")
    for phase, callbacks in phases.items():
        for place, callback in enumerate(callbacks[:CALLBACKS_SHOWN]):
            verdict = "✓" if callback.cpu_ms <= BAR_MS else f"✗ {callback.cpu_ms / BAR_MS:.1f} × the bar"
            table.add_row("" if place else phase, f"{callback.cpu_ms:.1f} ms", callback.name, verdict)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
