"""Three Lamina brokers and a ZooKeeper beside three Kafka 4.1 brokers, the same clients: ``make bench-cluster``.

Both clusters run on this machine, in turns: while one is measured the other is up and idle. ``bench.clusters`` says how
they are put together, ``bench.rounds`` how they are warmed up and in which order they run, ``bench.cluster_trials`` and
``bench.cluster_faults`` what is measured.
"""

from __future__ import annotations

import sys

from bench.amounts import FULL, QUICK
from bench.cluster_faults import STEADY_SECONDS
from bench.cluster_trials import TOUCHED_BYTES, all_trials
from bench.clusters import CLUSTER_SETTINGS, KAFKA_SESSION_SECONDS, LAMINA_SESSION_SECONDS, all_clusters
from bench.command import Bench, run
from bench.librdkafka import CONSUMER
from bench.results import Pair
from bench.subjects import KAFKA, KAFKA_SCRIPT_FLAGS, LAMINA
from bench.waits import PACE_SECONDS, STEADY_PRODUCER
from tests.peers.kafka import VERSION

LONG_ROUNDS, QUICK_LONG_ROUNDS = 3, 1
"""Of memory and of all that hurts brokers."""

BENCH = Bench(
    name="bench-cluster",
    title=f"Three Lamina brokers beside three of Kafka {VERSION}, clients on the same machine",
    contestants={KAFKA: f"Kafka {VERSION} × 3, or × 1 where a row says so", LAMINA: "Lamina × 3"},
    pairs=(Pair(rival=KAFKA, ours=LAMINA),),
    notes=(
        "Before a load is measured each side runs it for 21 s at least and 60 s at most, until two windows of 3 s in a "
        "row differ by less than 3 %; before brokers are hurt, records one at a time for 20 s at most. Memory is that "
        "of brokers as they come. Ratios are Lamina's figure divided by Kafka's, round by round; who is ahead was "
        "better in every round, by 2 % or more. In the rows of small requests Kafka is one broker, as they say.",
        "Kafka: KRaft, every broker a controller too, so that three voters keep its metadata; its JVMs: "
        f"{' '.join(KAFKA_SCRIPT_FLAGS[:3])} and the rest of its start script's flags, where nothing else is said. "
        "Lamina: one ZooKeeper for all, with a tickTime of 500 ms and -Xmx72m: it does not survive the loss of its "
        "machine, as Kafka's three voters do. An ensemble of three has two more such processes, of about 70 MB each, "
        "and waits for a second one with every change of the metadata; neither is in these figures. CPU and memory "
        "are those of all processes, with ZooKeeper's. All log to files.",
        f"Settings of both: {', '.join(f'{name}={value}' for name, value in CLUSTER_SETTINGS.items())}. A broker's "
        f"session: {KAFKA_SESSION_SECONDS} s by default in Kafka (broker.session.timeout.ms), "
        f"{LAMINA_SESSION_SECONDS} s in Lamina (zookeeper.session.timeout.ms). It counts from the last sign of life. "
        "Lamina does not wait for it where a machine refuses connections, as that of a killed process does; of a "
        "machine that says nothing, the session has to end on both sides.",
        f"The steady producer is idempotent and sends a record every {PACE_SECONDS * 1000:g} ms, for "
        f"{STEADY_SECONDS:g} s before anything happens; its reconnect.backoff.max.ms is "
        f"{STEADY_PRODUCER['reconnect.backoff.max.ms']}. Afterwards every acknowledged record was in the log exactly "
        "once, or the run would have ended there.",
        f"Before each round of batches {TOUCHED_BYTES >> 30} GiB of free memory are touched, so that the host of a "
        "virtual machine gives them back. A consumer is timed from its first message to its last, with "
        f"fetch.wait.max.ms {CONSUMER['fetch.wait.max.ms']}.",
    ),
    kept_up=(),
    new_subjects=all_clusters,
    new_trials=lambda is_quick, _: all_trials(*((QUICK, QUICK_LONG_ROUNDS) if is_quick else (FULL, LONG_ROUNDS))),
)


if __name__ == "__main__":
    sys.exit(run(BENCH))
