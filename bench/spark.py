"""Topics in Spark beside Spark's own Kafka source and sink, from Lamina and from Kafka: ``make bench-spark``.

Two Sparks run on this machine, in turns: the one that this project is installed with, with Lamina's source and sink,
and Spark 3.5.1 with its own. Beside reading there is a source that only repeats an Arrow batch: what no source in
Python can beat. ``bench.spark_trials`` says what is measured, ``bench.spark_session`` how a Spark is started.
"""

from __future__ import annotations

import sys

import pyspark

from bench.command import Bench, run
from bench.results import Pair
from bench.spark_session import HEAP, MASTER
from bench.spark_subjects import BROKERS, CEILING, FILES, OFFICIAL, OURS, name_of, new_subjects
from bench.spark_trials import ROUNDS, WARM_UP_SECONDS, new_trials
from bench.subjects import KAFKA_SCRIPT_FLAGS
from tests.peers.kafka import VERSION as KAFKA_VERSION
from tests.peers.spark import VERSION

BENCH = Bench(
    name="bench-spark",
    title=f"Topics in Spark: Lamina's source and sink beside those of Spark {VERSION}",
    contestants={
        OFFICIAL: f"Spark {VERSION}'s own",
        CEILING: "an empty source in Python",
        OURS: "Lamina's, over the protocol",
        FILES: "Lamina's, from files",
    },
    pairs=(Pair(OFFICIAL, CEILING), Pair(OFFICIAL, OURS), Pair(OFFICIAL, FILES)),
    notes=(
        f"Lamina's source and sink run in Spark {pyspark.__version__}; {VERSION} is the last Spark whose own can be "
        f"had whole. Both Sparks: {MASTER}, a driver's heap of {HEAP}, else as they are delivered. The empty source is "
        "one of PySpark's API that repeats one Arrow batch in memory: what no source in Python can beat.",
        "Lamina's over the protocol: readFiles=never; from files: readFiles=require, on the broker's machine. Where "
        "the query is for offset and key, Lamina's source and the empty one are given "
        '.schema("offset long, key binary").',
        f"Brokers: Lamina, and Kafka {KAFKA_VERSION} with {' '.join(KAFKA_SCRIPT_FLAGS[:2])}; every broker has the "
        "same batches, as librdkafka made them; half of each value is noise. Spark's own sink writes at least once; it "
        "stands beside ours that writes exactly once, too.",
        f"Before it is measured each reads a smaller topic by all queries for {WARM_UP_SECONDS / 3:g} s at least and "
        f"{WARM_UP_SECONDS:g} s at most; streams and writes run once unmeasured. {ROUNDS} rounds. CPU and "
        "memory are those of the driver, its JVM, its Python workers and the broker; memory that two of them share "
        "counts twice.",
    ),
    kept_up=tuple(name_of(who, broker) for broker in BROKERS for who in (OFFICIAL, CEILING, OURS, FILES)),
    new_subjects=new_subjects,
    new_trials=new_trials,
)


if __name__ == "__main__":
    sys.exit(run(BENCH))
