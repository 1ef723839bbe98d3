"""Lamina's cleaner beside that of a real Kafka 4.1, on the same logs, in one run: ``make bench-cleaner``.

Two pairs, each with as many threads on one side as on the other: Kafka as it is by default against Lamina with one
Spark slot, and Kafka tuned by a good operator against Lamina with two. All four brokers are up; while one cleans, the
others are idle. Each gets the same batches and looks for work every 100 ms. Before each pass free memory is touched
(``bench.cleaning`` says why).
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from bench.cleaning import Cleaned, clean, touch_memory
from bench.command import Bench, run
from bench.librdkafka import create_topic, delete_topic, one_at_a_time_ms
from bench.results import Figure, Pair
from bench.rounds import Trial, Values
from bench.source_log import MEBIBYTE, Log, SourceLogs
from bench.subjects import KAFKA_SCRIPT_FLAGS, Subject, heap_flags
from tests.peers.kafka import VERSION, Kafka
from tests.peers.lamina import Lamina

KAFKA, KAFKA_TUNED, LAMINA_1, LAMINA_2 = "kafka", "kafka-tuned", "lamina-1", "lamina-2"
PAIRS = (Pair(rival=KAFKA, ours=LAMINA_1), Pair(rival=KAFKA_TUNED, ours=LAMINA_2))
ALL = {name: name for pair in PAIRS for name in pair}
TUNED_PAIR = {name: name for name in PAIRS[1]}
COMMON = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "1000"}
TUNED = {
    "log.cleaner.threads": "2",
    # Divided between the threads, 24 bytes a key, nine tenths of it used: each holds ten million keys.
    "log.cleaner.dedupe.buffer.size": str(512 * MEBIBYTE),
    "log.cleaner.io.buffer.size": str(8 * MEBIBYTE),
}
TUNED_HEAP_MEGABYTES = 2048
QUICK_SHARE = 0.03
WARM_UP_SECONDS = 5.0
LATENCY_MESSAGES = 200
LATENCY_UNCOUNTED = 5
SPEED_UNIT = "M records/s"

LATENCY_LOG = "few-keys"
LOGS = {
    "many-keys": Log(16_000_000, 12_000_000, 50),
    "small-logs": Log(8_500_000, 1_700_000, 100, segment_bytes=4 * MEBIBYTE, partitions=100),
    "lz4": Log(5_000_000, 1_000_000, 100, codec="lz4"),
    "zstd": Log(5_000_000, 1_000_000, 100, codec="zstd"),
    LATENCY_LOG: Log(10_000_000, 2_000_000, 100),
}
WARM_UP = Log(400_000, 50_000, 100, segment_bytes=8 * MEBIBYTE)


def new_subjects(root: Path) -> dict[str, Subject]:
    heap = heap_flags(TUNED_HEAP_MEGABYTES)
    return {
        KAFKA: Kafka(root / KAFKA, COMMON, KAFKA_SCRIPT_FLAGS),
        KAFKA_TUNED: Kafka(root / KAFKA_TUNED, {**COMMON, **TUNED}, (f"-Xms{TUNED_HEAP_MEGABYTES}M", *heap)),
        LAMINA_1: Lamina(root / LAMINA_1, {**COMMON, "lamina.spark.master": "local[1]"}),
        LAMINA_2: Lamina(root / LAMINA_2, {**COMMON, "lamina.spark.master": "local[2]"}),
    }


def new_trials(is_quick: bool, scratch: Path) -> list[Trial]:
    """Those over the same log follow each other, for it is written once."""
    share = QUICK_SHARE if is_quick else 1.0
    logs = {name: log.scaled(share) for name, log in LOGS.items()}
    rows = CleanerTrials(share, SourceLogs(scratch / "source"), SourceLogs(scratch / "warm-up"))
    return [
        *(rows.speed(name, log) for name, log in logs.items()),
        rows.latency(logs[LATENCY_LOG]),
        rows.cold(logs[LATENCY_LOG]),
    ]


@dataclass(frozen=True, slots=True)
class CleanerTrials:
    share: float
    sources: SourceLogs
    warm_up_sources: SourceLogs

    def speed(self, name: str, log: Log) -> Trial:
        def trial(subject: Subject, topic: str) -> Values:
            cleaned = _clean(self.sources, log, subject, topic)
            return (
                _speed(cleaned),
                cleaned.cpu_seconds / cleaned.records * 1e6,
                cleaned.cpu_seconds / cleaned.seconds,
                cleaned.peak_bytes / 1e6,
            )

        figures = (
            Figure(shown(log), "speed", SPEED_UNIT, "more"),
            Figure(shown(log), "CPU for a million records", "s", "less"),
            Figure(shown(log), "CPU in use", "cores", "neither"),
            Figure(shown(log), "peak memory", "MB", "less"),
        )
        return self._warmed(Trial(name, figures, trial, ALL), log.codec)

    def latency(self, log: Log) -> Trial:
        """What a producer feels on the same cores while a log is cleaned."""

        def trial(subject: Subject, topic: str) -> Values:
            beside = f"{topic}-beside"
            create_topic(subject.bootstrap, beside)
            self.sources.send(log, subject, topic)
            touch_memory()
            with ThreadPoolExecutor(1) as thread:
                cleaning = thread.submit(clean, subject, topic, log.partitions)
                found: list[float] = []
                while not cleaning.done() or not found:
                    found += one_at_a_time_ms(subject.bootstrap, beside, LATENCY_MESSAGES, LATENCY_UNCOUNTED)
                cleaning.result()
            for done in (topic, beside):
                delete_topic(subject.bootstrap, done)
            return (sorted(found)[int(len(found) * 0.99)],)

        figure = Figure(shown(log), "p99 of one message at a time beside the pass", "ms", "less")
        return self._warmed(Trial("latency", (figure,), trial, ALL), log.codec)

    def cold(self, log: Log) -> Trial:
        """A broker that has just started: Spark is started for the pass."""

        def trial(subject: Subject, topic: str) -> Values:
            subject.stop()
            subject.start()
            return (_speed(_clean(self.sources, log, subject, topic)),)

        figure = Figure(shown(log), "speed of a broker just started", SPEED_UNIT, "more")
        return Trial("cold", (figure,), trial, TUNED_PAIR)

    def _warmed(self, trial: Trial, codec: str) -> Trial:
        """Small logs in the same codec, again and again."""
        log = replace(WARM_UP, codec=codec)

        def warm_up(subject: Subject, topic: str) -> None:
            _clean(self.warm_up_sources, log, subject, topic)

        seconds = WARM_UP_SECONDS * self.share
        return replace(trial, api=f"cleaning-{codec}", warm_up_seconds=seconds, warm_up=warm_up)


def _clean(sources: SourceLogs, log: Log, subject: Subject, topic: str) -> Cleaned:
    sources.send(log, subject, topic)
    touch_memory()
    cleaned = clean(subject, topic, log.partitions)
    delete_topic(subject.bootstrap, topic)
    return cleaned


def _speed(cleaned: Cleaned) -> float:
    return cleaned.records / cleaned.seconds / 1e6


def shown(log: Log) -> str:
    """A log in words."""
    many = f" in {log.partitions} partitions" if log.partitions > 1 else ""
    codec = f", {log.codec}" if log.codec != "none" else ""
    millions = f"{log.records / 1e6:.3g} M records{many}, {log.keys / 1e6:.3g} M possible keys"
    return f"{millions}, values of {log.value_bytes} B{codec}"


BENCH = Bench(
    name="bench-cleaner",
    title=f"Log cleaning: Lamina beside Kafka {VERSION}",
    contestants={
        KAFKA: "Kafka, default",
        LAMINA_1: "Lamina, 1 slot",
        KAFKA_TUNED: "Kafka, tuned",
        LAMINA_2: "Lamina, 2 slots",
    },
    pairs=PAIRS,
    notes=(
        "From the moment a log may be cleaned until the checkpoint says that it is. All four have cleaned small logs "
        "in the same codec before. Ratios are Lamina's figure divided by that of the Kafka it is paired with: 1 slot "
        "with the default, 2 with the tuned one. Who is ahead was better in every round, by 2 % or more.",
        f"Kafka by default: one cleaner thread, a map of 128 MiB, {' '.join(KAFKA_SCRIPT_FLAGS[:2])}. Tuned: "
        f"{', '.join(f'{name}={value}' for name, value in TUNED.items())}, a heap of {TUNED_HEAP_MEGABYTES} MB.",
        "CPU and memory are those of all processes: broker, engine, JVM and workers.",
    ),
    kept_up=tuple(ALL),
    new_subjects=new_subjects,
    new_trials=new_trials,
)


if __name__ == "__main__":
    sys.exit(run(BENCH))
