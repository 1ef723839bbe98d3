"""What both benches beside Kafka have in common: their options, their scratch directory, their end, and their report.

However a run ends, by Ctrl-C and SIGTERM too, no broker and no file of it is left. Must not know what is measured.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from rich.console import Console

from bench.machine import PROJECT, describe
from bench.programs import LoadError
from bench.report import Report, draw_report, show, write_report
from bench.results import Pair, Result
from bench.rounds import Contest, Trial
from bench.small_requests import WrongAnswer
from bench.spark_session import SparkFailedError
from bench.subjects import Subject, kill_all
from bench.waits import WrongRecords
from lamina.cluster.errors import ClusterError
from tests.peers.kafka import KafkaFailedError, KafkaMissingError
from tests.peers.lamina import LaminaFailedError
from tests.peers.spark import SparkMissingError

PUBLISHED, UNPUBLISHED = PROJECT / "docs", PROJECT / "build"
ROUNDS = 5
QUICK_ROUNDS = 3
FAILURES = (
    KafkaMissingError,
    KafkaFailedError,
    LaminaFailedError,
    SparkFailedError,
    SparkMissingError,
    KafkaException,
    LoadError,
    WrongAnswer,
    WrongRecords,
    ClusterError,
    BufferError,
    OSError,
)


@dataclass(frozen=True, slots=True)
class Bench:
    name: str
    """Of the command, and of the report and the picture in docs/ that a whole run leaves there, to be committed."""
    title: str
    contestants: Mapping[str, str]
    """What each is called where it is shown."""
    pairs: Sequence[Pair]
    notes: Sequence[str]
    kept_up: Sequence[str]
    """Brokers that stay up from one trial to the next."""
    new_subjects: Callable[[Path], Mapping[str, Subject]]
    """Brokers over a directory, none of them started."""
    new_trials: Callable[[bool, Path], Sequence[Trial]]
    """Of a quick run or a whole one, with a directory for what they need."""
    is_published: bool = True
    """Whether the report of a whole run is committed."""


def run(bench: Bench) -> str | None:
    """The command line; returns what is wrong, in one sentence. What was measured before that is kept."""
    names = [trial.name for trial in bench.new_trials(False, Path())]
    options = _options(bench, names)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: sys.exit(f"{bench.name} was told to end; everything that it made is removed"))
    began = time.monotonic()
    results: list[Result] = []
    wrong = None
    try:
        with tempfile.TemporaryDirectory(prefix=f"lamina-{bench.name}-", dir=options.dir) as scratch:
            machine = describe(Path(scratch))
            for found in _measure(bench, options, Path(scratch), began):
                results += found
    except FAILURES as failure:
        wrong = f"{type(failure).__name__}: {failure}"
    except KeyboardInterrupt:
        return "interrupted; everything that was made is removed"
    if not results:
        return wrong
    measured = {result.trial for result in results}
    report = Report(
        title=bench.title,
        contestants=bench.contestants,
        pairs=bench.pairs,
        notes=bench.notes,
        machine=machine,
        rounds=options.rounds,
        is_quick=options.quick,
        seconds=time.monotonic() - began,
        missing=[name for name in names if name not in measured],
        results=results,
    )
    is_whole = not report.missing and not options.quick and options.rounds >= ROUNDS and not report.disturbances
    file = options.json or (PUBLISHED if is_whole and bench.is_published else UNPUBLISHED) / f"{bench.name}.json"
    picture = file.with_suffix(".png")
    write_report(report, file)
    draw_report(report, picture)
    show(report)
    print(f"\n{report.seconds:.0f} s. All rounds: {file}. Picture: {picture}.")
    return wrong


def _options(bench: Bench, names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=bench.name, description=f"{bench.title}, in one run.")
    parser.add_argument("--only", action="append", choices=names, metavar="ROW", help=f"one of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="a little of everything, in a few minutes")
    parser.add_argument(
        "--rounds",
        type=int,
        help=f"of each row; {ROUNDS} if not given, {QUICK_ROUNDS} with --quick, fewer of some rows",
    )
    parser.add_argument("--dir", type=Path, help="where the data lies, instead of the system's temporary directory")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help=f"where the report is written, with a picture beside it; if not given docs/{bench.name}.json of a whole "
        f"run, build/{bench.name}.json of any other",
    )
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else ROUNDS
    if options.rounds < 1:
        parser.error("--rounds is at least 1")
    if options.dir is not None and not options.dir.is_dir():
        parser.error(f"--dir: {options.dir} is not a directory")
    return options


def _measure(bench: Bench, options: argparse.Namespace, scratch: Path, began: float) -> Iterator[list[Result]]:
    console = Console(stderr=True)

    def tell(what: str) -> None:
        console.print(f"{time.monotonic() - began:5.0f} s  {what}", highlight=False)

    subjects = bench.new_subjects(scratch)
    trials = [
        trial for trial in bench.new_trials(options.quick, scratch) if not options.only or trial.name in options.only
    ]
    try:
        yield from Contest(subjects, bench.kept_up, options.rounds, tell).measure(trials)
    finally:
        kill_all(list(subjects.values()))
