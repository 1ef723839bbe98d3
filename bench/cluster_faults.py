"""What is measured of clusters that are hurt: leaders killed or paused, brokers restarted one by one, a follower away.

Each trial leaves the cluster as it was, all replicas in sync. Owns what is done to the brokers, and in which order.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from bench.amounts import Amounts
from bench.clusters import BROKERS, KAFKA_SAME_SESSION, LAMINA_SESSION_SECONDS, REPLICAS, Cluster, on_cluster
from bench.librdkafka import create_topic, delete_topic, new_admin, one_at_a_time_ms, produce_together_seconds
from bench.replicas import LOOK_SECONDS, SYNC_SECONDS, await_in_sync, is_in_sync, segment_bytes
from bench.results import Figure
from bench.rounds import Trial, Values
from bench.subjects import KAFKA, LAMINA, Subject, logs_of
from bench.waits import SteadyProducer

VERSUS = {KAFKA: KAFKA, LAMINA: LAMINA}
VERSUS_SAME_SESSION = {KAFKA: KAFKA_SAME_SESSION, LAMINA: LAMINA}
LED_PARTITIONS, ROLLED_PARTITIONS, CAUGHT_UP_PARTITIONS = 4, 6, 4
STEADY_SECONDS = 2.0
"""Before and after what is done."""
MISSED_BYTES = 2_000_000_000
MISSED_VALUE_BYTES = 10_000
PIECE_BYTES = 200_000_000
"""What the client has in its queue at a time."""
WARM_UP_MESSAGES = 3_000
WARM_UP_SHARE = 1 / 3
"""Of the longest warm-up: the brokers have had most of it in earlier rows."""

WAITS = "Longest time a partition takes no record of a steady producer, acks=all"
KILLED = "after kill -9 of the leader's process (its machine answers)"
PAUSED = "after a pause of the leader's process (SIGSTOP), beyond the session timeout"
PAUSED_CLIENT = {"socket.timeout.ms": 1_000}
"""Without it librdkafka waits a minute for a leader that is silent, before it asks who leads."""
CATCH_UP = "A follower that was away"


def fault_trials(amounts: Amounts, rounds: int) -> list[Trial]:
    return [
        catch_up_trial(amounts, rounds),
        rolling_trial(amounts, rounds),
        *failover_trials(amounts, rounds),
        paused_trial(amounts, rounds),
    ]


def _warm_up(messages: int, subject: Subject, topic: str) -> Values:
    """Records from one broker to all, one after the other."""
    create_topic(subject.bootstrap, topic, replicas=REPLICAS)
    latencies_ms = one_at_a_time_ms(subject.bootstrap, topic, messages)
    delete_topic(subject.bootstrap, topic)
    return (sum(latencies_ms),)


def _replicas(leaders: Collection[int], partitions: int) -> list[list[int]]:
    """Partitions led by these brokers in turn, each with a replica on every broker."""
    leading = list(leaders)
    first = [leading[number % len(leading)] for number in range(partitions)]
    return [[leader, *(broker for broker in BROKERS if broker != leader)] for leader in first]


# A leader is killed


def failover_trials(amounts: Amounts, rounds: int) -> list[Trial]:
    same = f"session timeouts of {LAMINA_SESSION_SECONDS} s"
    return [
        _failover_trial("failover-defaults", "default session timeouts", False, VERSUS, amounts, rounds),
        _failover_trial("failover", same, False, VERSUS_SAME_SESSION, amounts, rounds),
        _failover_trial(
            "failover-controller", f"{same}, of the controller", True, VERSUS_SAME_SESSION, amounts, rounds
        ),
    ]


def _failover_trial(
    name: str, variant: str, is_controller: bool, subjects: Mapping[str, str], amounts: Amounts, rounds: int
) -> Trial:
    def run(cluster: Cluster, topic: str) -> Values:
        controller = cluster.controller()
        victim = controller if is_controller else next(one for one in BROKERS if one != controller)
        create_topic(cluster.bootstrap, topic, replicas=_replicas([victim], LED_PARTITIONS))
        with SteadyProducer(cluster.bootstrap, topic, LED_PARTITIONS) as producer:
            producer.run_for(STEADY_SECONDS)
            cluster.members[victim].kill()
            producer.await_all_partitions()
        producer.check()
        cluster.members[victim].start()
        await_in_sync(cluster.bootstrap, BROKERS)
        delete_topic(cluster.bootstrap, topic)
        return (producer.longest_wait_seconds(),)

    return Trial(
        name,
        (Figure(WAITS, KILLED, "s", "less", variant),),
        on_cluster(run),
        subjects,
        "faults",
        amounts.warm_up_seconds * WARM_UP_SHARE,
        partial(_warm_up, amounts.count(WARM_UP_MESSAGES)),
        most_rounds=rounds,
    )


# A leader says nothing


def paused_trial(amounts: Amounts, rounds: int) -> Trial:
    def run(cluster: Cluster, topic: str) -> Values:
        controller = cluster.controller()
        victim = next(one for one in BROKERS if one != controller)
        create_topic(cluster.bootstrap, topic, replicas=_replicas([victim], LED_PARTITIONS))
        with SteadyProducer(cluster.bootstrap, topic, LED_PARTITIONS, PAUSED_CLIENT) as producer:
            producer.run_for(STEADY_SECONDS)
            with _paused(cluster.members[victim].process_ids):
                producer.await_all_partitions()
        producer.check()
        await_in_sync(cluster.bootstrap, BROKERS)
        delete_topic(cluster.bootstrap, topic)
        # A session counts from the last sign of life, which was a little before.
        return (max(producer.longest_wait_seconds() - LAMINA_SESSION_SECONDS, 0.0),)

    client = ", ".join(f"{name}={value}" for name, value in PAUSED_CLIENT.items())
    variant = f"session timeouts of {LAMINA_SESSION_SECONDS} s, the client's {client}"
    return Trial(
        "failover-paused",
        (Figure(WAITS, PAUSED, "s", "less", variant),),
        on_cluster(run),
        VERSUS_SAME_SESSION,
        "faults",
        amounts.warm_up_seconds * WARM_UP_SHARE,
        partial(_warm_up, amounts.count(WARM_UP_MESSAGES)),
        most_rounds=rounds,
    )


@contextmanager
def _paused(process_ids: Iterable[int]) -> Iterator[None]:
    stopped = list(process_ids)
    try:
        for process_id in stopped:
            os.kill(process_id, signal.SIGSTOP)
        yield
    finally:
        for process_id in stopped:
            os.kill(process_id, signal.SIGCONT)


# All brokers are restarted


def rolling_trial(amounts: Amounts, rounds: int) -> Trial:
    def run(cluster: Cluster, topic: str) -> Values:
        create_topic(cluster.bootstrap, topic, replicas=_replicas(BROKERS, ROLLED_PARTITIONS))
        with SteadyProducer(cluster.bootstrap, topic, ROLLED_PARTITIONS) as producer:
            producer.run_for(STEADY_SECONDS)
            began = time.monotonic()
            for member in cluster.members.values():
                member.stop()
                member.start()
                await_in_sync(cluster.bootstrap, BROKERS)
            seconds = time.monotonic() - began
            producer.await_all_partitions()
        producer.check()
        delete_topic(cluster.bootstrap, topic)
        return producer.longest_wait_seconds(), seconds

    shown = "each broker stopped and started, in sync before the next"
    return Trial(
        "rolling-restart",
        (
            Figure(WAITS, "in a rolling restart", "s", "less", shown),
            Figure(WAITS, "the rolling restart in all", "s", "less", shown),
        ),
        on_cluster(run),
        VERSUS,
        "faults",
        amounts.warm_up_seconds * WARM_UP_SHARE,
        partial(_warm_up, amounts.count(WARM_UP_MESSAGES)),
        most_rounds=rounds,
    )


# A follower was away


def catch_up_trial(amounts: Amounts, rounds: int) -> Trial:
    missed = amounts.count(MISSED_BYTES // MISSED_VALUE_BYTES)
    missed_bytes = missed * MISSED_VALUE_BYTES

    def run(cluster: Cluster, topic: str) -> Values:
        controller = cluster.controller()
        away = next(one for one in BROKERS if one != controller)
        others = [one for one in BROKERS if one != away]
        create_topic(cluster.bootstrap, topic, replicas=_replicas(others, CAUGHT_UP_PARTITIONS))
        cluster.members[away].stop()
        _write(cluster.bootstrap, topic, missed)
        from_start, from_first_byte = _catch_up(cluster, away, topic)
        cluster.members[away].await_start()
        await_in_sync(cluster.bootstrap, BROKERS)
        delete_topic(cluster.bootstrap, topic)
        return missed_bytes / 1e6 / from_first_byte, from_start

    variant = f"{missed_bytes / 1e9:g} GB in {CAUGHT_UP_PARTITIONS} partitions"
    return Trial(
        "catch-up",
        (
            Figure(CATCH_UP, "copies what it missed, from its first byte until in sync", "MB/s", "more", variant),
            Figure(CATCH_UP, "from the start of its process until in sync", "s", "less", variant),
        ),
        on_cluster(run),
        VERSUS,
        "faults",
        amounts.warm_up_seconds * WARM_UP_SHARE,
        partial(_warm_up, amounts.count(WARM_UP_MESSAGES)),
        most_rounds=rounds,
    )


def _write(bootstrap: str, topic: str, messages: int) -> None:
    piece = PIECE_BYTES // MISSED_VALUE_BYTES
    for begin in range(0, messages, piece):
        count = min(piece, messages - begin)
        produce_together_seconds(bootstrap, topic, MISSED_VALUE_BYTES, count, 1, CAUGHT_UP_PARTITIONS, True)


def _catch_up(cluster: Cluster, broker: int, topic: str) -> tuple[float, float]:
    """Seconds until it is in sync: from the start of its process, and from the first byte that it copies."""
    member, admin = cluster.members[broker], new_admin(cluster.bootstrap)
    before = segment_bytes(logs_of(member), topic)
    member.launch()
    began = time.monotonic()
    first_byte = None
    while not is_in_sync(admin, BROKERS, topic):
        if first_byte is None and segment_bytes(logs_of(member), topic) > before:
            first_byte = time.monotonic()
        if time.monotonic() - began > SYNC_SECONDS:
            raise TimeoutError(f"a follower was not in sync {SYNC_SECONDS} s after its start")
        time.sleep(LOOK_SECONDS)
    now = time.monotonic()
    return now - began, now - (first_byte or now - LOOK_SECONDS)
