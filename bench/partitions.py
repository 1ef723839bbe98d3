"""A cluster of three brokers with 2,000 partitions on each: ``make bench-partitions``.

Shows how long clients wait for changes and after faults, what the brokers cost while nothing happens, and the longest
callbacks of their loops in every phase.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.callbacks import Callback
from bench.machine import describe
from bench.partition_trials import CALLBACK_BAR_MS, FULL, QUICK, Measured, PartitionTrials, Phase
from bench.timed_cluster import TimedCluster
from lamina.cluster.errors import ClusterError

_OF_A_START = ("Server._start", "Parts.start", "Replicas.open.")
"""Callbacks that run before a broker's listeners accept."""


def main() -> str | None:
    parser = argparse.ArgumentParser(prog="bench-partitions", description="A cluster of three brokers by itself.")
    parser.add_argument("--quick", action="store_true", help="few partitions, to see that it works")
    parser.add_argument("--dir", type=Path, help="where the data lies, instead of the system's temporary directory")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console = Console(stderr=True)
    phases: list[Phase] = []
    with tempfile.TemporaryDirectory(prefix="lamina-bench-partitions-", dir=options.dir) as scratch:
        machine = describe(Path(scratch))
        try:
            with TimedCluster(Path(scratch)) as cluster:
                for phase in PartitionTrials(cluster, QUICK if options.quick else FULL).phases():
                    phases.append(phase)
                    console.print(f"{phase.name}: done")
        except (ClusterError, TimeoutError) as failure:
            return str(failure)
    if options.json:
        print(json.dumps({"machine": machine, "phases": [_as_json(phase) for phase in phases]}, indent=2))
    else:
        _show(phases)
        Console(width=140).print(", ".join(f"{name} {value}" for name, value in machine.items()))
    missed = [figure.name for phase in phases for figure in phase.figures if not _is_met(figure)]
    return f"over the bar: {', '.join(missed)}" if missed else None


def _as_json(phase: Phase) -> dict[str, object]:
    return {
        "phase": phase.name,
        "figures": [asdict(figure) for figure in phase.figures],
        "callbacks": [callback._asdict() for callback in phase.callbacks],
    }


def _show(phases: list[Phase]) -> None:
    console = Console(width=140)
    table = Table("while", "measured", "", "bar")
    for phase in phases:
        for place, figure in enumerate(phase.figures):
            table.add_row(
                "" if place else phase.name, figure.name, f"{figure.value:,.3g} {figure.unit}", _verdict(figure)
            )
    console.print(table)
    table = Table("longest callbacks of a loop while", "CPU time", "what ran", f"bar ≤ {CALLBACK_BAR_MS:g} ms")
    for phase in phases:
        for place, one in enumerate(phase.callbacks):
            table.add_row("" if place else phase.name, f"{one.cpu_ms:.1f} ms", one.name, _callback_verdict(one))
    console.print(table)


def _callback_verdict(one: Callback) -> str:
    if one.cpu_ms <= CALLBACK_BAR_MS:
        return "✓"
    if any(part in one.name for part in _OF_A_START):
        return "nobody is served yet"
    return f"✗ {one.cpu_ms / CALLBACK_BAR_MS:.1f} × the bar"


def _verdict(figure: Measured) -> str:
    return "" if figure.bar is None else f"≤ {figure.bar:g} {figure.unit} {'✓' if _is_met(figure) else '✗'}"


def _is_met(figure: Measured) -> bool:
    return figure.bar is None or figure.value <= figure.bar


if __name__ == "__main__":
    sys.exit(main())
