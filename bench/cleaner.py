"""Lamina's cleaner beside that of a real Kafka 4.1, on the same logs, in one run: ``make bench-cleaner``.

Both brokers run on this machine; while one cleans, the other is up and idle. Each gets the same logs, written by the
same client, and looks for work every 100 ms. A figure is records a second from the moment the log may be cleaned until
the checkpoint says so, the best of three; before the first, both have cleaned a log to be warm, and before each the
free memory has been touched (``bench.cleaning`` says why). Cold means a broker that has just started, so that Spark is
started for the pass: beside Kafka's warm figure. ``--scale 0.01`` tries it all on small logs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.cleaning import MEBIBYTE, Log, WrongLog, check_codec, clean_seconds, touch_memory, write_log
from bench.duel import Result
from bench.librdkafka import create_topic, delete_topic, one_at_a_time_ms
from bench.picture import draw
from bench.subjects import KAFKA_SCRIPT_FLAGS, Subject
from bench.trials import Figure
from tests.peers.kafka import Kafka, KafkaMissingError
from tests.peers.lamina import Lamina

PICTURE = Path(__file__).parent.parent / "docs" / "bench-cleaner.png"
ROUNDS = 3
SLOTS = (1, 2)
LATENCY_MESSAGES = 200
COMMON = {"log.cleaner.backoff.ms": "100"}

FEW_KEYS = Log("2 M keys", 10_000_000, 2_000_000, 100)
MANY_KEYS = Log("12 M keys", 16_000_000, 12_000_000, 50)
SMALL_LOGS = Log("100 logs", 8_500_000, 1_700_000, 100, segment_bytes=4 * MEBIBYTE, partitions=100)
LZ4 = Log("2 M keys, lz4", 10_000_000, 2_000_000, 100, codec="lz4")
ZSTD = Log("2 M keys, zstd", 10_000_000, 2_000_000, 100, codec="zstd")
WARM_UP = Log("warm-up", 400_000, 50_000, 100, segment_bytes=8 * MEBIBYTE)


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    log: Log
    bar: float
    is_cold: bool = False
    slots: tuple[int, ...] = SLOTS[-1:]


ROWS = (
    Row("few-keys", FEW_KEYS, 8.0, slots=SLOTS),
    Row("many-keys", MANY_KEYS, 15.0, slots=SLOTS),
    Row("cold", FEW_KEYS, 1.0, is_cold=True),
    Row("small-logs", SMALL_LOGS, 3.0, slots=SLOTS),
    Row("lz4", LZ4, 1.0, slots=SLOTS),
    Row("zstd", ZSTD, 1.0, slots=SLOTS),
)
LATENCY = "latency"


@dataclass(slots=True)
class Bench:
    scratch: Path
    scale: float
    rounds: int
    kafka: Kafka
    laminas: dict[int, Lamina]
    """By slots."""
    console: Console

    def run(self, rows: Sequence[Row], measures_latency: bool) -> list[Result]:
        results: list[Result] = []
        self.kafka.start()
        self._warm(self.kafka)
        of_kafka: dict[str, tuple[float, ...]] = {}
        for slots, lamina in self.laminas.items():
            here = [row for row in rows if slots in row.slots]
            measures_latency_here = measures_latency and slots == SLOTS[-1]
            if not here and not measures_latency_here:
                continue
            lamina.start()
            self._warm(lamina)
            for row in here:
                self.console.print(f"measuring {row.name} with {slots} slots …")
                try:
                    if row.log.name not in of_kafka:
                        of_kafka[row.log.name] = tuple(self._measure(self.kafka, row) for _ in range(self.rounds))
                    rates = []
                    for _ in range(self.rounds):
                        if row.is_cold:
                            lamina.stop()
                            lamina.start()
                        rates.append(self._measure(lamina, row))
                except WrongLog as wrong:
                    self.console.print(f"{row.name} is left out: {wrong}")
                    continue
                figure = Figure(f"{row.name}, {slots} slots", "records/s", "≥", row.bar if slots == SLOTS[-1] else 0.0)
                results.append(Result(row.name, figure, of_kafka[row.log.name], tuple(rates)))
            if measures_latency_here:
                results.append(self._latency(lamina))
            lamina.stop()
        return results

    def _warm(self, subject: Kafka | Lamina) -> None:
        self._measure(subject, Row("warm", WARM_UP, 0.0))

    def _measure(self, subject: Kafka | Lamina, row: Row) -> float:
        """Records a second."""
        log = row.log.scaled(self.scale)
        topic = f"{row.name}-{uuid.uuid4().hex[:8]}"
        write_log(subject, topic, log)
        check_codec(logs_of(subject), topic, log)
        touch_memory()
        seconds = clean_seconds(subject, logs_of(subject), topic, log)
        delete_topic(subject.bootstrap, topic)
        return log.records / seconds

    def _latency(self, lamina: Lamina) -> Result:
        """What a producer feels on the same cores while a log is cleaned."""
        self.console.print("measuring produce latency beside a pass …")
        figure = Figure("produce p99 beside a pass", "ms", "≤", 1.0)
        kafka, ours = (tuple(self._p99(subject) for _ in range(self.rounds)) for subject in (self.kafka, lamina))
        return Result(LATENCY, figure, kafka, ours)

    def _p99(self, subject: Kafka | Lamina) -> float:
        log = FEW_KEYS.scaled(self.scale)
        topic, beside = f"pass-{uuid.uuid4().hex[:8]}", f"beside-{uuid.uuid4().hex[:8]}"
        create_topic(subject.bootstrap, beside)
        write_log(subject, topic, log)
        one_at_a_time_ms(subject.bootstrap, beside, 1)
        touch_memory()
        cleaning = threading.Thread(target=clean_seconds, args=(subject, logs_of(subject), topic, log))
        cleaning.start()
        found: list[float] = []
        while cleaning.is_alive() or not found:
            found += one_at_a_time_ms(subject.bootstrap, beside, LATENCY_MESSAGES, warm_up=0)
        delete_topic(subject.bootstrap, topic)
        delete_topic(subject.bootstrap, beside)
        return sorted(found)[int(len(found) * 0.99)]


def logs_of(subject: Subject) -> Path:
    assert isinstance(subject, Kafka | Lamina)
    return subject.data_directory / "logs" if isinstance(subject, Lamina) else subject.data_directory


def main() -> str | None:
    names = [row.name for row in ROWS] + [LATENCY]
    parser = argparse.ArgumentParser(prog="bench-cleaner", description="Lamina's cleaner beside Kafka's, in one run.")
    parser.add_argument("--only", action="append", choices=names, metavar="ROW", help=f"one of {', '.join(names)}")
    parser.add_argument("--scale", type=float, default=1.0, help="how much of each log is written, for a try")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    wanted = options.only or names
    rows = [row for row in ROWS if row.name in wanted]
    try:
        with tempfile.TemporaryDirectory(prefix="lamina-bench-") as scratch:
            results, phases = compare(Path(scratch), rows, LATENCY in wanted, options.scale, options.rounds)
    except KafkaMissingError as missing:
        return str(missing)
    if not options.only and options.scale == 1:
        draw(results, PICTURE)
    if options.json:
        print(json.dumps(as_json(results, phases), indent=2))
    else:
        show(results, phases)
    return None


def compare(
    scratch: Path, rows: Sequence[Row], measures_latency: bool, scale: float, rounds: int
) -> tuple[list[Result], list[str]]:
    kafka = Kafka(scratch / "kafka", COMMON, KAFKA_SCRIPT_FLAGS)
    laminas = {
        slots: Lamina(scratch / f"lamina-{slots}", {**COMMON, "lamina.spark.master": f"local[{slots}]"})
        for slots in SLOTS
    }
    bench = Bench(scratch, scale, rounds, kafka, laminas, Console(stderr=True))
    try:
        results = bench.run(rows, measures_latency)
        started = [lamina for lamina in laminas.values() if (lamina.root / "log.txt").exists()]
        return results, [line for lamina in started for line in passes_in(lamina.logged())]
    finally:
        kafka.kill()
        for lamina in laminas.values():
            lamina.kill()


def passes_in(logged: str) -> list[str]:
    """What a broker logged of its passes: a line with the time, and those without one that follow."""
    found: list[str] = []
    is_wanted = False
    for line in logged.splitlines():
        if line[:1].isdigit():
            is_wanted = "-0: cleaned offsets" in line
        if is_wanted:
            found.append(line)
    return found


def show(results: Sequence[Result], phases: Sequence[str]) -> None:
    console = Console(width=120)
    table = Table("what", "Kafka 4.1", "Lamina", "ratio", "bar", "")
    for result in results:
        figure = result.figure
        bar = f"{figure.sign} {figure.bar:g}" if figure.bar else ""
        verdict = "" if not figure.bar else "✓" if result.is_met else f"✗ {result.note}"
        table.add_row(
            figure.name,
            f"{result.kafka:,.6g} {figure.unit}",
            f"{result.lamina:,.6g} {figure.unit}",
            f"{result.ratio:.2f}",
            bar,
            verdict,
        )
    console.print(table)
    console.print("\n[bold]Where Lamina's time went[/bold], in its own words")
    for line in phases:
        console.print(line, markup=False, highlight=False)


def as_json(results: Sequence[Result], phases: Sequence[str]) -> dict[str, object]:
    rows = [
        {
            "row": result.trial,
            "figure": result.figure.name,
            "unit": result.figure.unit,
            "kafka_rounds": result.kafka_rounds,
            "lamina_rounds": result.lamina_rounds,
            "ratio": result.ratio,
            "bar": result.figure.bar or None,
            "met": result.is_met,
        }
        for result in results
    ]
    return {"figures": rows, "phases": list(phases)}


if __name__ == "__main__":
    sys.exit(main())
