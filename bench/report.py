"""A run as one JSON document, and what is made of it: ``python -m bench.report FILE [--markdown | --picture PNG]``.

Owns the document's form. A report is written when a run ends; tables and pictures are made from it then, or at any
time later, so that what is published can be traced to one run.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.picture import draw
from bench.results import Figure, Pair, Result, Spread, disturbed
from bench.table import markdown, number, terminal_table


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    contestants: Mapping[str, str]
    """What each is called where it is shown."""
    pairs: Sequence[Pair]
    notes: Sequence[str]
    """What a reader has to know: how everything was started and measured."""
    machine: Mapping[str, str]
    rounds: int
    is_quick: bool
    seconds: float
    missing: Sequence[str]
    """Trials that were not run."""
    results: Sequence[Result]

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "trial": result.trial,
                **asdict(result.figure),
                "rounds": {contestant: list(values) for contestant, values in result.rounds.items()},
                "unsteady": list(result.unsteady),
                "ratios": {f"{pair.ours} / {pair.rival}": _finite(result.ratio(pair)) for pair in self.pairs},
                "ahead": {f"{pair.ours} / {pair.rival}": result.ahead(pair) for pair in self.pairs},
            }
            for result in self.results
        ]
        return {
            "title": self.title,
            "contestants": dict(self.contestants),
            "pairs": [pair._asdict() for pair in self.pairs],
            "notes": list(self.notes),
            "machine": dict(self.machine),
            "rounds": self.rounds,
            "is_quick": self.is_quick,
            "seconds": round(self.seconds, 1),
            "missing": list(self.missing),
            "disturbances": self.disturbances,
            "results": rows,
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Report:
        results = [
            Result(
                row["trial"],
                Figure(row["group"], row["name"], row["unit"], row["better"], row["variant"]),
                {contestant: tuple(values) for contestant, values in row["rounds"].items()},
                tuple(row.get("unsteady", ())),
            )
            for row in document["results"]
        ]
        return Report(
            title=document["title"],
            contestants=document["contestants"],
            pairs=[Pair(**pair) for pair in document["pairs"]],
            notes=document["notes"],
            machine=document["machine"],
            rounds=document["rounds"],
            is_quick=document["is_quick"],
            seconds=document["seconds"],
            missing=document["missing"],
            results=results,
        )

    @property
    def disturbances(self) -> list[str]:
        """What shows that the machine did something else meanwhile, each in a sentence."""
        return [
            f"{self.contestants[who]} gave {number(first)} {figure.unit} in {figure.name}, {figure.variant}, "
            f"and {number(last)} at the end."
            for figure, who, first, last in disturbed(self.results)
        ]

    @property
    def foot(self) -> list[str]:
        """Lines that belong under every table and picture."""
        most = self._most_rounds
        how = f"Medians of {most} interleaved rounds, A B B A, least and most in brackets{self._fewer_rounds()}."
        if most == 1:
            how = "One round only."
        if self.is_quick:
            how += " A short run, to see that everything works: these figures are not for publication."
        if self.disturbances:
            how += f" Not for publication, for the machine was disturbed: {' '.join(self.disturbances)}"
        if self.missing:
            how += f" Not measured: {', '.join(self.missing)}."
        shown = ", ".join(
            f"{value} cores" if name == "cores" else _named(name, value) for name, value in self.machine.items()
        )
        return [
            how,
            *self._unsteady(),
            *self.notes,
            f"{shown}. The run took {max(round(self.seconds / 60), 1)} minutes.",
        ]

    def _unsteady(self) -> list[str]:
        """Such as "Still changing after the longest warm-up: Kafka in rebalance-consumer."."""
        named = [
            f"{self.contestants[who]} in {trial}"
            for trial, unsteady in {result.trial: result.unsteady for result in self.results}.items()
            for who in unsteady
        ]
        return [f"Still changing after the longest warm-up: {', '.join(named)}."] if named else []

    @property
    def _most_rounds(self) -> int:
        """That any row had: a bench may allow fewer than it was asked for."""
        return max((len(values) for result in self.results for values in result.rounds.values()), default=self.rounds)

    def _fewer_rounds(self) -> str:
        """Such as "; 3 of start, memory": trials that ran less often."""
        fewer: dict[int, dict[str, None]] = {}
        for result in self.results:
            count = max(len(values) for values in result.rounds.values())
            if count < self._most_rounds:
                fewer.setdefault(count, {})[result.trial] = None
        return "".join(f"; {count} of {', '.join(trials)}" for count, trials in fewer.items())


def _finite(found: Spread | None) -> list[float | None] | None:
    """JSON has no infinity."""
    return None if found is None else [value if math.isfinite(value) else None for value in found]


def _named(name: str, value: str) -> str:
    return f"{name} {value}" if name in ("memory", "disk", "Lamina", "Kafka", "Python") else value


def write_report(report: Report, path: Path) -> None:
    """A row on each line, so that two runs can be compared."""
    document = report.as_json()
    rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in document.pop("results"))
    head = json.dumps(document, indent=2, ensure_ascii=False).removesuffix("\n}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head},\n  "results": [\n{rows}\n  ]\n}}\n')


def read_report(path: Path) -> Report:
    return Report.from_json(json.loads(path.read_text()))


def show(report: Report) -> None:
    console = Console(width=90 + 60 * len(report.pairs))
    console.print(terminal_table(report.results, report.contestants, report.pairs))
    for line in report.foot:
        console.print(line, highlight=False, markup=False)


def as_markdown(report: Report) -> str:
    return markdown(report.results, report.contestants, report.pairs, report.foot)


def draw_report(report: Report, path: Path) -> None:
    draw(report.title, report.results, report.contestants, report.pairs, report.foot, path)


def main() -> str | None:
    parser = argparse.ArgumentParser(prog="bench.report", description="Shows what a bench wrote.")
    parser.add_argument("file", type=Path, help="a report, such as docs/bench-kafka.json")
    parser.add_argument("--markdown", action="store_true", help="print the table as README.md and docs/ show it")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="draw it there")
    options = parser.parse_args()
    try:
        report = read_report(options.file)
    except (OSError, ValueError, LookupError, TypeError) as unreadable:
        return f"{options.file} is not the report of a bench: {unreadable}"
    if options.picture:
        draw_report(report, options.picture)
    elif options.markdown:
        print(as_markdown(report))
    else:
        show(report)
    return None


if __name__ == "__main__":
    sys.exit(main())
