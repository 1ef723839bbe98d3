"""Lamina beside a real Kafka 4.1, the same clients, in one run: ``make bench-kafka``.

Both brokers run on this machine, in turns: while one is measured the other is up and idle. ``bench.rounds`` says how
they are warmed up and in which order they run, ``bench.trials`` what is measured.
"""

from __future__ import annotations

import sys

from bench import members, small_requests
from bench.amounts import FULL, QUICK
from bench.client_trials import TOUCHED_BYTES
from bench.command import Bench, run
from bench.librdkafka import CONSUMER
from bench.results import Pair
from bench.subjects import KAFKA, KAFKA_SCRIPT_FLAGS, LAMINA, SETTINGS, all_subjects
from bench.trials import all_trials
from tests.peers.kafka import VERSION

API_NAMES = {
    small_requests.PRODUCE: "Produce",
    small_requests.FETCH: "Fetch",
    small_requests.METADATA: "Metadata",
    members.OFFSET_COMMIT: "OffsetCommit",
    members.OFFSET_FETCH: "OffsetFetch",
    members.FIND_COORDINATOR: "FindCoordinator",
    members.JOIN_GROUP: "JoinGroup",
    members.HEARTBEAT: "Heartbeat",
    members.SYNC_GROUP: "SyncGroup",
    members.CONSUMER_GROUP_HEARTBEAT: "ConsumerGroupHeartbeat",
}


def request_versions() -> str:
    """Such as "Produce 8, Fetch 11": of all requests that are made here, not by a client."""
    versions = {**small_requests.VERSIONS, **members.VERSIONS}
    return ", ".join(f"{API_NAMES[api_key]} {version}" for api_key, version in versions.items())


BENCH = Bench(
    name="bench-kafka",
    title=f"Lamina beside Kafka {VERSION}: one broker each, clients on the same machine",
    contestants={KAFKA: f"Kafka {VERSION}", LAMINA: "Lamina"},
    pairs=(Pair(rival=KAFKA, ours=LAMINA),),
    notes=(
        "Before a load is measured each side runs it for 21 s at least and 60 s at most, until two windows of 3 s in a "
        "row differ by less than 3 %; loads of the same API share that. Start, "
        "memory and the restart are measured without: they are of brokers as they come. Ratios are Lamina's figure "
        "divided by Kafka's, round by round; who is ahead was better in every round, by 2 % or more.",
        f"Kafka's JVM: {' '.join(KAFKA_SCRIPT_FLAGS[:3])} and the rest of its start script's flags, where nothing else "
        "is said. Its append linger is group.coordinator.append.linger.ms, 5 by default. CPU and memory are those of "
        "all processes of a broker. Both brokers log to files.",
        f"Settings of both: {', '.join(f'{name}={value}' for name, value in SETTINGS.items())}. So members of both "
        "protocols send a heartbeat every 100 ms, which is how soon they hear of a rebalance; Kafka's default for the "
        "consumer protocol is 5 s.",
        f"Requests that are not librdkafka's: {request_versions()}. Before each round of batches and of large "
        f"transactions {TOUCHED_BYTES >> 30} GiB of free memory are touched, so that the host of a virtual machine "
        "gives them back. A consumer is timed from its first message to its last, with fetch.wait.max.ms "
        f"{CONSUMER['fetch.wait.max.ms']}.",
    ),
    kept_up=(KAFKA, LAMINA),
    new_subjects=all_subjects,
    new_trials=lambda is_quick, _: all_trials(QUICK if is_quick else FULL),
)


if __name__ == "__main__":
    sys.exit(run(BENCH))
