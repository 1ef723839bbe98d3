"""Lamina beside a real Kafka 4.1, the same clients, in one run: ``make bench-kafka``.

Both brokers run on this machine, in turns: while one is measured the other is up and idle. ``bench.rounds`` says how
they are warmed up and in which order they run, ``bench.trials`` what is measured.
"""

from __future__ import annotations

import sys

from bench.amounts import FULL, QUICK
from bench.command import Bench, run
from bench.results import Pair
from bench.subjects import KAFKA, KAFKA_SCRIPT_FLAGS, LAMINA, all_subjects
from bench.trials import all_trials
from tests.peers.kafka import VERSION

BENCH = Bench(
    name="bench-kafka",
    title=f"Lamina beside Kafka {VERSION}: one broker each, clients on the same machine",
    contestants={KAFKA: f"Kafka {VERSION}", LAMINA: "Lamina"},
    pairs=(Pair(rival=KAFKA, ours=LAMINA),),
    notes=(
        "Both sides run every load unmeasured before it is measured, small requests for 20 s. Ratios are Lamina's "
        "figure divided by Kafka's; who is ahead was better in every round, by 2 % or more.",
        f"Kafka's JVM: {' '.join(KAFKA_SCRIPT_FLAGS[:3])} and the rest of its start script's flags, where nothing else "
        "is said. Its append linger is group.coordinator.append.linger.ms, 5 by default. CPU and memory are those of "
        "all processes of a broker.",
    ),
    kept_up=(KAFKA, LAMINA),
    new_subjects=all_subjects,
    new_trials=lambda is_quick, _: all_trials(QUICK if is_quick else FULL),
)


if __name__ == "__main__":
    sys.exit(run(BENCH))
