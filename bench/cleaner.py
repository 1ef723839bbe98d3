"""Lamina's cleaner beside that of a real Kafka 4.1, on the same logs, in one run: ``make bench-cleaner``.

Two pairs, each with as many threads on one side as on the other: Kafka as it is by default against Lamina with one
Spark slot, and Kafka tuned by a good operator against Lamina with two. All four brokers are up; while one cleans, the
others are idle. Each gets the same batches and looks for work every 100 ms. Before each pass free memory is touched
(``bench.machine`` says why). ``bench.cleaner_trials`` says what is measured.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.cleaner_trials import (
    ALL,
    FIRST_EVER_KERNELS,
    KAFKA,
    KAFKA_SMALL_HEAP,
    KAFKA_TUNED,
    LAMINA_1,
    LAMINA_1_IDLE,
    LAMINA_2,
    LAMINA_NEW,
    PAIRS,
    WARM_UP_CLEANING_SECONDS,
    WARM_UP_SECONDS,
    new_trials,
)
from bench.command import Bench, run
from bench.machine import TOUCHED_BYTES
from bench.source_log import MEBIBYTE
from bench.subjects import KAFKA_SCRIPT_FLAGS, SMALL_HEAP_MEGABYTES, Subject, heap_flags
from tests.broker.process import COMMAND
from tests.peers.kafka import VERSION, Kafka
from tests.peers.lamina import Lamina

COMMON = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "1000"}
TUNED = {
    "log.cleaner.threads": "2",
    # Divided between the threads, 24 bytes a key, nine tenths of it used: each holds ten million keys.
    "log.cleaner.dedupe.buffer.size": str(512 * MEBIBYTE),
    "log.cleaner.io.buffer.size": str(8 * MEBIBYTE),
}
TUNED_HEAP_MEGABYTES = 1024
IDLE_STOP_MS = 1000


def new_subjects(root: Path) -> dict[str, Subject]:
    one_slot = {**COMMON, "lamina.spark.master": "local[1]"}
    uncompiled = ["env", f"NUMBA_CACHE_DIR={root / LAMINA_NEW / FIRST_EVER_KERNELS}", *COMMAND]
    return {
        KAFKA: Kafka(root / KAFKA, COMMON, KAFKA_SCRIPT_FLAGS),
        KAFKA_SMALL_HEAP: Kafka(root / KAFKA_SMALL_HEAP, COMMON, heap_flags(SMALL_HEAP_MEGABYTES)),
        KAFKA_TUNED: Kafka(root / KAFKA_TUNED, {**COMMON, **TUNED}, heap_flags(TUNED_HEAP_MEGABYTES)),
        LAMINA_1: Lamina(root / LAMINA_1, one_slot),
        LAMINA_1_IDLE: Lamina(root / LAMINA_1_IDLE, {**one_slot, "lamina.spark.idle.stop.ms": str(IDLE_STOP_MS)}),
        LAMINA_2: Lamina(root / LAMINA_2, {**COMMON, "lamina.spark.master": "local[2]"}),
        LAMINA_NEW: Lamina(root / LAMINA_NEW, one_slot, uncompiled),
    }


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
        "From the moment a log may be cleaned until the checkpoint says that it is. Ratios are Lamina's figure divided "
        "by that of the Kafka it is paired with: 1 slot with the default, 2 with the tuned one. Who is ahead was "
        "better in every round, by 2 % or more.",
        "Before it is measured each broker cleans small logs in the same codec until its passes add up to "
        f"{WARM_UP_CLEANING_SECONDS:g} s, or for {WARM_UP_SECONDS:g} s with the sending. Before each pass "
        f"{TOUCHED_BYTES >> 30} GiB of free memory are touched, so that the host of a virtual machine gives them back.",
        "Cold pass: a quiet broker whose Spark was stopped because it was idle, after it wrote its class archive; "
        "Kafka's JVM is warm. Lamina's kernels are compiled already in every row but one: the first pass ever on a "
        "machine compiles them, and there is no archive yet; Kafka has just started.",
        f"Kafka by default: one cleaner thread, a map of 128 MiB, {' '.join(KAFKA_SCRIPT_FLAGS[:2])}; where a row says "
        f"so -Xmx{SMALL_HEAP_MEGABYTES}M, about the least with that map. Tuned: "
        f"{', '.join(f'{name}={value}' for name, value in TUNED.items())}, -Xmx{TUNED_HEAP_MEGABYTES}M without -Xms. "
        "One thread of its cleaner cleans one log, which is one partition: with a single one the second has nothing to "
        f"do. Settings of all sides: {', '.join(f'{name}={value}' for name, value in COMMON.items())}; the first is "
        "how long a cleaner without work waits before it looks again, by default 15 s.",
        "CPU and memory are those of all processes: broker, engine, JVM and workers; memory that two of them share "
        "counts twice.",
    ),
    kept_up=tuple(ALL),
    new_subjects=new_subjects,
    new_trials=new_trials,
)


if __name__ == "__main__":
    sys.exit(run(BENCH))
