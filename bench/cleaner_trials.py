"""What is measured of cleaners, row by row. Owns the logs, the order of the rows, and how cleaners are warmed up."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from bench.cleaning import Cleaned, clean, hold, wait_until_quiet
from bench.librdkafka import create_topic, delete_topic, one_at_a_time_ms
from bench.machine import touch_memory
from bench.results import Figure, Pair
from bench.rounds import Trial, Values
from bench.source_log import DEFAULT_SEGMENT_BYTES, MEBIBYTE, Log, SourceLogs
from bench.subjects import SMALL_HEAP_MEGABYTES, Subject
from tests.peers.lamina import Lamina

KAFKA, KAFKA_TUNED, LAMINA_1, LAMINA_2 = "kafka", "kafka-tuned", "lamina-1", "lamina-2"
KAFKA_SMALL_HEAP = "kafka-small-heap"
LAMINA_1_IDLE, LAMINA_NEW = "lamina-1-idle", "lamina-new"
"""One that stops Spark as soon as it is idle, and one whose kernels are not compiled."""
PAIRS = (Pair(rival=KAFKA, ours=LAMINA_1), Pair(rival=KAFKA_TUNED, ours=LAMINA_2))
ALL = {name: name for pair in PAIRS for name in pair}
SMALL_HEAP = f"Kafka with -Xmx{SMALL_HEAP_MEGABYTES}M"
HEAPS = {
    "everyday-small-heap": (SMALL_HEAP, {KAFKA: KAFKA_SMALL_HEAP, LAMINA_1: LAMINA_1_IDLE}),
    "everyday": ("Kafka with -Xmx1G -Xms1G", {KAFKA: KAFKA, LAMINA_1: LAMINA_1_IDLE}),
}
FIRST_EVER_KERNELS = "kernels"
"""In that broker's directory: where its kernels are compiled to."""
QUICK_SHARE = 0.03
WARM_UP_CLEANING_SECONDS = 20.0
WARM_UP_SECONDS = 30.0
"""At most, with sending: where a pass takes a tenth of a second there is little cleaning in it."""
FIRST_EVER_ROUNDS = 3
LATENCY_MESSAGES = 200
LATENCY_UNCOUNTED = 5
SPEED_UNIT = "M records/s"

LARGE_LOG = "few-keys"
LOGS = {
    "many-keys": Log(10_000_000, 8_000_000, 50),
    "small-logs": Log(4_250_000, 850_000, 100, segment_bytes=4 * MEBIBYTE, partitions=50),
    "lz4": Log(3_000_000, 600_000, 100, codec="lz4"),
    "zstd": Log(3_000_000, 600_000, 100, codec="zstd"),
    LARGE_LOG: Log(6_000_000, 1_200_000, 100),
}
"""Of the first the default Kafka's map holds the keys of no single pass."""
EVERYDAY_LOG = Log(500_000, 100_000, 100, segment_bytes=8 * MEBIBYTE)
SECOND_PASS_LOG = Log(2_500_000, 1_000_000, 100, segment_bytes=8 * MEBIBYTE)
DIRTY_LOG = replace(SECOND_PASS_LOG, records=250_000)
"""What comes after the first pass."""
WARM_UP = Log(1_000_000, 100_000, 100, segment_bytes=8 * MEBIBYTE)


def new_trials(is_quick: bool, scratch: Path) -> list[Trial]:
    """Those over the same log follow each other, for it is written once."""
    share = QUICK_SHARE if is_quick else 1.0
    logs = {name: log.scaled(share) for name, log in LOGS.items()}
    everyday = EVERYDAY_LOG.scaled(share)
    rows = CleanerTrials(share, *(SourceLogs(scratch / name) for name in ("source", "dirty", "warm-up")))
    return [
        *(rows.speed(name, log) for name, log in logs.items()),
        rows.latency(logs[LARGE_LOG]),
        rows.small_heap(logs[LARGE_LOG]),
        *(rows.everyday(name, everyday) for name in HEAPS),
        rows.second_pass(SECOND_PASS_LOG.scaled(share), DIRTY_LOG.scaled(share)),
        rows.first_ever(everyday),
    ]


@dataclass(frozen=True, slots=True)
class CleanerTrials:
    share: float
    sources: SourceLogs
    dirty_sources: SourceLogs
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

    def small_heap(self, log: Log) -> Trial:
        """A heap as large as it is told to be says little of what a cleaner needs."""

        def trial(subject: Subject, topic: str) -> Values:
            cleaned = _clean(self.sources, log, subject, topic)
            return _speed(cleaned), cleaned.peak_bytes / 1e6

        figures = (
            Figure(shown(log), f"speed beside {SMALL_HEAP}", SPEED_UNIT, "more"),
            Figure(shown(log), f"peak memory beside {SMALL_HEAP}", "MB", "less"),
        )
        subjects = {KAFKA: KAFKA_SMALL_HEAP, LAMINA_1: LAMINA_1}
        return self._warmed(Trial(f"{LARGE_LOG}-small-heap", figures, trial, subjects), log.codec)

    def everyday(self, name: str, log: Log) -> Trial:
        """A small log now and then, on a broker where nothing else happens: Spark was stopped meanwhile."""

        def trial(subject: Subject, topic: str) -> Values:
            self.sources.send(log, subject, topic)
            wait_until_quiet(subject)
            cleaned = _clean_filled(log, subject, topic)
            return cleaned.seconds, cleaned.cpu_seconds, cleaned.peak_bytes / 1e6

        heap, subjects = HEAPS[name]
        figures = (
            Figure(shown(log), "cold pass", "s", "less", heap),
            Figure(shown(log), "CPU for the cold pass", "s", "less", heap),
            Figure(shown(log), "peak memory of the cold pass", "MB", "less", heap),
        )
        return self._warmed(Trial(name, figures, trial, subjects), log.codec)

    def second_pass(self, log: Log, dirty: Log) -> Trial:
        """Most of the log is clean already."""

        def trial(subject: Subject, topic: str) -> Values:
            self.sources.send(log, subject, topic)
            clean(subject, topic, log.partitions)
            hold(subject, topic)
            self.dirty_sources.append(dirty, subject, topic)
            cleaned = _clean_filled(log, subject, topic)
            return cleaned.seconds, cleaned.cpu_seconds, cleaned.peak_bytes / 1e6

        group = (
            f"Second pass, {dirty.records / 1e6:.3g} M records dirty after {log.records / 1e6:.3g} M cleaned, "
            f"{log.keys / 1e6:.3g} M possible keys, segments of {log.segment_bytes // MEBIBYTE} MiB"
        )
        figures = (
            Figure(group, "second pass", "s", "less"),
            Figure(group, "CPU for the second pass", "s", "less"),
            Figure(group, "peak memory of the second pass", "MB", "less"),
        )
        return self._warmed(Trial("second-pass", figures, trial, ALL), log.codec)

    def first_ever(self, log: Log) -> Trial:
        """Kernels are compiled, Spark is started without an archive of its classes; a Kafka has just started."""

        def trial(subject: Subject, topic: str) -> Values:
            if isinstance(subject, Lamina):
                shutil.rmtree(subject.root / FIRST_EVER_KERNELS, ignore_errors=True)
                shutil.rmtree(subject.data_directory, ignore_errors=True)
            subject.start()
            self.sources.send(log, subject, topic)
            # The broker compiles a kernel of its own when it gets large batches.
            wait_until_quiet(subject)
            cleaned = _clean_filled(log, subject, topic)
            subject.stop()
            return (cleaned.seconds,)

        figure = Figure(shown(log), "first pass ever on a machine", "s", "less")
        subjects = {KAFKA: KAFKA, LAMINA_1: LAMINA_NEW}
        return Trial("first-ever", (figure,), trial, subjects, starts_brokers=True, most_rounds=FIRST_EVER_ROUNDS)

    def _warmed(self, trial: Trial, codec: str) -> Trial:
        """Small logs in the same codec, again and again."""
        log = replace(WARM_UP, codec=codec).scaled(self.share)

        def warm_up(subject: Subject, topic: str) -> Values:
            ends = time.monotonic() + WARM_UP_SECONDS * self.share
            cleaned_seconds, passes = 0.0, 0
            while cleaned_seconds < WARM_UP_CLEANING_SECONDS * self.share and (not passes or time.monotonic() < ends):
                one = f"{topic}-{passes}"
                self.warm_up_sources.send(log, subject, one)
                cleaned_seconds += clean(subject, one, log.partitions).seconds
                delete_topic(subject.bootstrap, one)
                passes += 1
            return (cleaned_seconds / passes,)

        return replace(trial, api=f"cleaning-{codec}", warm_up=warm_up)


def _clean(sources: SourceLogs, log: Log, subject: Subject, topic: str) -> Cleaned:
    sources.send(log, subject, topic)
    return _clean_filled(log, subject, topic)


def _clean_filled(log: Log, subject: Subject, topic: str) -> Cleaned:
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
    small = f", segments of {log.segment_bytes // MEBIBYTE} MiB" if log.segment_bytes < DEFAULT_SEGMENT_BYTES else ""
    return f"{millions}, values of {log.value_bytes} B{codec}{small}"
