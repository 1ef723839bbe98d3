"""Topics in Spark beside Spark's own Kafka source and sink, from Lamina and from Kafka: ``make bench-spark``.

Three Sparks run on this machine, in turns: the one that this project is installed with, once with Lamina's source and
sink and once with the newest of Spark's own that can be had, and Spark 3.5.1 with its own. Beside reading there is a
source that only repeats an Arrow batch: what no source in Python can beat. ``bench.spark_trials`` says what is
measured, ``bench.spark_session`` how a Spark is started.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pyspark

from bench.command import Bench, run
from bench.results import Pair
from bench.spark_session import HEAP, MASTER
from bench.spark_subjects import (
    BROKERS,
    CEILING,
    FILES,
    NEWER,
    OFFICIAL,
    OURS,
    TUNED,
    TUNED_SINK,
    TUNED_SOURCE,
    new_subjects,
)
from bench.spark_trials import ALL, LEAST_WARM_UP_SECONDS, WARM_UP_SECONDS, new_trials
from bench.subjects import KAFKA_SCRIPT_FLAGS
from tests.peers.kafka import SPARK_SOURCE_VERSION
from tests.peers.kafka import VERSION as KAFKA_VERSION
from tests.peers.spark import VERSION


def told(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


BENCH = Bench(
    name="bench-spark",
    title=f"Topics in Spark: Lamina's source and sink beside Spark's own, {VERSION} and {SPARK_SOURCE_VERSION}",
    contestants={
        OFFICIAL: f"Spark {VERSION}'s own",
        NEWER: f"Spark's own {SPARK_SOURCE_VERSION}, same Spark",
        TUNED: f"Spark's own {SPARK_SOURCE_VERSION}, tuned",
        CEILING: "an empty source in Python",
        OURS: "Lamina's, over the protocol",
        FILES: "Lamina's, from files",
    },
    pairs=(
        Pair(OFFICIAL, OURS),
        Pair(OFFICIAL, FILES),
        Pair(NEWER, OURS),
        Pair(NEWER, FILES),
        Pair(TUNED, OURS),
        Pair(TUNED, FILES),
    ),
    notes=(
        f"Lamina's source and sink run in Spark {pyspark.__version__}, and so does Spark's own connector of version "
        f"{SPARK_SOURCE_VERSION}, the newest that the registries have, in a process of its own (its token provider is "
        f"4.1.0-preview1; nothing here uses it). Spark {VERSION} runs with its own connector of the same version. All "
        f"Sparks: {MASTER}, a driver's heap of {HEAP}, else as they are delivered. The empty source is one of "
        "PySpark's API that repeats one Arrow batch in memory: what no source in Python can beat; it is no contestant.",
        "Lamina's over the protocol: readFiles=never; from files: readFiles=require, on the broker's machine. Where "
        "the query is for offset and key, Lamina's source and the empty one are given "
        '.schema("offset long, key binary"). Every answer is compared with what was written, and so is how many rows '
        "the tasks read.",
        f"Tuned: as Spark's own {SPARK_SOURCE_VERSION} with {told(TUNED_SOURCE)}, and as a sink {told(TUNED_SINK)}; "
        "the other two have their defaults: 1048576, 500 and 500; 16384 and 0. Lamina's "
        "source has a max.partition.fetch.bytes of 8388608 and a fetch.max.wait.ms of 500 by default, and no "
        "max.poll.records; its sink a batch.size of 524288, and sends a batch when it is full or the task has no more "
        "rows. In the rows of a stream the default of fetch.max.wait.ms counts: a task of Spark's own may wait that "
        "long for a fetch at the end of a partition, and the tuned one waits 10 ms.",
        f"Brokers: Lamina, and Kafka {KAFKA_VERSION} with {' '.join(KAFKA_SCRIPT_FLAGS[:2])}; every broker has the "
        "same batches, as librdkafka made them; half of each value is noise. Spark's own sink writes at least once, "
        "and stands beside ours that does too, and beside ours that writes exactly once.",
        f"Before it is measured each Spark does the same kind of work for {LEAST_WARM_UP_SECONDS:g} s at least and "
        f"{WARM_UP_SECONDS:g} s at most: reading in each codec, a stream, writing (ours both ways in turn); with "
        "Kafka, which comes after Lamina, a third of that. What runs in the same processes shares it. Memory is that "
        "of a Spark that has just started, in one row; that of two processes that share it counts twice. CPU is that "
        "of the driver, its JVM, its Python workers and the broker.",
    ),
    kept_up=tuple(f"{who}-{broker}" for broker in BROKERS for who in ALL),
    new_subjects=new_subjects,
    new_trials=new_trials,
)


if __name__ == "__main__":
    sys.exit(run(BENCH))
