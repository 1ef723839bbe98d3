"""Lamina beside a real Kafka 4.1, the same clients, in one run: ``make bench-kafka``.

Both brokers run on this machine, in turns: while one is measured the other is up and idle, except for the start,
where it is down. After the idle figures both are warmed up alike: a JVM that has just started answers a tenth of the
requests that it answers later, so without this the ratios would follow from the order of the rows. Every figure is
the best of three, and --json has all three; only the ratios mean anything on another machine. For a bar
that is missed the table says by how much, and the profile of that trial follows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.callbacks import BAR_MS, Phases, measure_callbacks, worst_ms
from bench.duel import Result, measure
from bench.group_memory import GroupMemory, measure_group_memory
from bench.load import LoadError
from bench.picture import draw
from bench.profiled import profile_of
from bench.subjects import new_kafka, new_lamina
from bench.trials import TRIALS, WARM_UP, Trial
from tests.peers.kafka import KafkaMissingError

CALLBACKS = "callbacks"
GROUP_MEMORY = "group-memory"
PICTURE = Path(__file__).parent.parent / "docs" / "bench-kafka.png"
CALLBACKS_SHOWN = 3


def main() -> str | None:
    names = [trial.name for trial in TRIALS if trial is not WARM_UP] + [GROUP_MEMORY, CALLBACKS]
    parser = argparse.ArgumentParser(prog="bench-kafka", description="Lamina beside a real Kafka, in one run.")
    parser.add_argument("--only", action="append", choices=names, metavar="ROW", help=f"one of {', '.join(names)}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--no-profile", action="store_true", help="show no profile where a bar is missed")
    options = parser.parse_args()
    wanted = options.only or names
    needs_warmth = any(trial.name in wanted for trial in TRIALS[TRIALS.index(WARM_UP) + 1 :])
    trials = [trial for trial in TRIALS if trial.name in wanted or (trial is WARM_UP and needs_warmth)]
    console = Console(stderr=True)
    try:
        results = compare(trials, console) if trials else []
        memory = measure_group_memory() if GROUP_MEMORY in wanted else None
        phases = measure_callbacks() if CALLBACKS in wanted else {}
    except (KafkaMissingError, LoadError) as missing:
        return str(missing)
    if results and not options.only:
        draw(results, PICTURE)
    missed = {result.trial for result in results if not result.is_met}
    profiled = [trial for trial in trials if trial.name in missed and trial.rounds > 1 and not trial.needs_stopped]
    profiles = {} if options.no_profile else {trial.name: profile_of(trial) for trial in profiled}
    if options.json:
        print(json.dumps(as_json(results, memory, phases, profiles), indent=2))
    else:
        show(results, memory, phases, profiles)
    return None


def compare(trials: Sequence[Trial], console: Console) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as scratch:
        kafka, lamina = new_kafka(Path(scratch)), new_lamina(Path(scratch))
        try:
            return measure(trials, kafka, lamina, lambda name: console.print(f"measuring {name} …"))
        finally:
            kafka.kill()
            lamina.kill()


def show(results: Sequence[Result], memory: GroupMemory | None, phases: Phases, profiles: dict[str, str]) -> None:
    console = Console(width=120)
    if results:
        table = Table("what", "Kafka 4.1", "Lamina", "ratio", "bar", "")
        for result in results:
            figure = result.figure
            table.add_row(
                figure.name,
                f"{number(result.kafka)} {figure.unit}",
                f"{number(result.lamina)} {figure.unit}",
                f"{result.measured:.2f}",
                f"{figure.sign} {figure.bar}",
                "✓" if result.is_met else f"✗ {result.note}",
            )
        console.print(table)
    if memory is not None:
        table = Table("memory of groups, Lamina", "each")
        table.add_row("a group with one committed offset", f"{memory.bytes_per_group:,.0f} B")
        table.add_row("a committed offset of a group with 1,000", f"{memory.bytes_per_offset:,.0f} B")
        table.add_row("a group with one member (consumer protocol)", f"{memory.bytes_per_member:,.0f} B")
        console.print(table)
    if phases:
        table = Table("longest callbacks of the loop while", "CPU time", "what ran", f"bar ≤ {BAR_MS:g} ms")
        for phase, callbacks in phases.items():
            for place, callback in enumerate(callbacks[:CALLBACKS_SHOWN]):
                verdict = "✓" if callback.cpu_ms <= BAR_MS else f"✗ {callback.cpu_ms / BAR_MS:.1f} × the bar"
                table.add_row("" if place else phase, f"{callback.cpu_ms:.1f} ms", callback.name, verdict)
        console.print(table)
    for name, profile in profiles.items():
        console.print(f"\n[bold]Where Lamina's time goes in {name}[/bold] (under a profiler; shares, not times)")
        console.print(profile, markup=False, highlight=False)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def as_json(
    results: Sequence[Result], memory: GroupMemory | None, phases: Phases, profiles: dict[str, str]
) -> dict[str, object]:
    rows = [
        {
            "row": result.trial,
            "figure": result.figure.name.strip(),
            "unit": result.figure.unit,
            "kafka": result.kafka,
            "lamina": result.lamina,
            "kafka_rounds": result.kafka_rounds,
            "lamina_rounds": result.lamina_rounds,
            "ratio": result.ratio,
            "bar": f"{result.figure.sign} {result.figure.bar}",
            "met": result.is_met,
        }
        for result in results
    ]
    longest = {phase: [callback._asdict() for callback in callbacks] for phase, callbacks in phases.items()}
    met = {"longest_callback_ms": worst_ms(phases), "callbacks_met": worst_ms(phases) <= BAR_MS} if phases else {}
    of_groups = {} if memory is None else {"group_memory": memory._asdict()}
    return {"figures": rows, **of_groups, "callbacks": longest, **met, "profiles": profiles}


if __name__ == "__main__":
    sys.exit(main())
