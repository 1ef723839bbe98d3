"""Lamina beside a real Kafka 4.1 over TLS, the same clients, in one run: ``make bench-tls``.

Both brokers show the same certificate, and every client agrees with both on the same version and cipher suite: a run in
which one does not ends there. ``bench.rounds`` says how they are warmed up and in which order they run,
``bench.tls_trials`` what is measured.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from bench.amounts import FULL, QUICK
from bench.client_trials import TOUCHED_BYTES
from bench.command import Bench, run
from bench.librdkafka import CONSUMER
from bench.results import Pair
from bench.subjects import KAFKA, KAFKA_SCRIPT_FLAGS, LAMINA, SETTINGS
from bench.tls_subjects import tls_subjects
from bench.tls_trials import AGREED, tls_trials
from tests.peers.kafka import VERSION

WHOLE = replace(FULL, warm_up_seconds=36.0)
"""Five kinds of load on each broker: with a minute for each a run would take twice as long."""

BENCH = Bench(
    name="bench-tls",
    title=f"Lamina beside Kafka {VERSION} over TLS: one broker each, clients on the same machine",
    contestants={KAFKA: f"Kafka {VERSION}", LAMINA: "Lamina"},
    pairs=(Pair(rival=KAFKA, ours=LAMINA),),
    notes=(
        f"All clients and both brokers agreed on {AGREED}, which every run looks at. Both have the same P-256 key "
        "and certificate; clients check it and show none. A connection that is counted was made, shook hands, had its "
        "answer and was ended; those that offer a session offer that of one before.",
        f"Before a load is measured each side runs it for {WHOLE.warm_up_seconds * 7 / 20:.3g} s at least and "
        f"{WHOLE.warm_up_seconds:g} s at most, until two windows in a row differ by less than 3 %. Ratios are Lamina's "
        "figure divided by Kafka's, round by round; who is ahead was better in every round, by 2 % or more.",
        f"Kafka's JVM: {' '.join(KAFKA_SCRIPT_FLAGS[:3])} and the rest of its start script's flags. CPU is that of all "
        "processes of a broker. Both brokers log to files.",
        f"Settings of both: {', '.join(f'{name}={value}' for name, value in SETTINGS.items())}. Before each round of "
        f"batches {TOUCHED_BYTES >> 30} GiB of free memory are touched, so that the host of a virtual machine gives "
        f"them back. A consumer is timed from its first message to its last, with fetch.wait.max.ms "
        f"{CONSUMER['fetch.wait.max.ms']}.",
    ),
    kept_up=(KAFKA, LAMINA),
    new_subjects=tls_subjects,
    new_trials=lambda is_quick, _: tls_trials(QUICK if is_quick else WHOLE),
)


if __name__ == "__main__":
    sys.exit(run(BENCH))
