"""What is measured of clusters that are well: batches, latency, requests to all leaders, memory.

Owns the amounts, and the order of all rows of the comparison of clusters: what starts brokers itself is first, what
hurts them last (``bench.cluster_faults``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import ceil

from bench.amounts import Amounts
from bench.cluster_faults import fault_trials
from bench.clusters import ONE_KAFKA, REPLICAS, SMALL_HEAP_MEGABYTES
from bench.librdkafka import (
    LINGER_MS,
    consume_seconds,
    create_topic,
    delete_topic,
    end_offset,
    one_at_a_time_ms,
    produce_seconds,
)
from bench.load import Load, run_load
from bench.machine import touch_memory
from bench.programs import LoadError
from bench.replicas import await_until, leader_addresses
from bench.results import Figure
from bench.rounds import Trial, Values, again
from bench.small_requests import (
    FETCHED_BYTES,
    PRODUCED_BYTES,
    SmallRequest,
    checked_error_at,
    fetch_request,
    produce_request,
)
from bench.subjects import KAFKA, KAFKA_SMALL_HEAP, LAMINA, Subject
from bench.usage import cpu_seconds, resident_bytes

CLUSTERS = {KAFKA: KAFKA, LAMINA: LAMINA}
VERSUS_SMALL_HEAP = {KAFKA: KAFKA_SMALL_HEAP, LAMINA: LAMINA}
VERSUS_ONE = {KAFKA: ONE_KAFKA, LAMINA: LAMINA}
HEAPS = (("Kafka with -Xmx1G -Xms1G", CLUSTERS), (f"Kafka with -Xmx{SMALL_HEAP_MEGABYTES}M", VERSUS_SMALL_HEAP))
MESSAGES = {100: 1_000_000, 1_000: 250_000}
"""By size of their values: enough for three seconds."""
CONSUMED_MEGABYTES = 500
WARM_UP_SHARE = 0.2
TOUCHED_BYTES = 3 << 30
LATENCY_MESSAGES = 3_000
CONNECTIONS = (16, 100)
WARM_UP_CONNECTIONS = 16
REPEATED = "produce-16"
"""The row that shows whether the machine was the same at the end."""
LEADERS = 3
"""Partitions of the topic that small requests go to: on a cluster each is led by another broker."""
MEMORY_SHARE = 0.2
"""Of the messages that are enough for three seconds."""

MEMORY = "Memory of all processes"
BATCHES = "Batches through librdkafka, one producer, one partition, acks=all"
LATENCY = "One message at a time, acks=all, linger 0"

NewRequest = Callable[[str, int], SmallRequest]


def all_trials(amounts: Amounts, long_rounds: int) -> list[Trial]:
    """``long_rounds`` are enough of what takes long."""
    small = small_request_trials(amounts)
    return [
        *memory_trials(amounts, long_rounds),
        *small,
        *(batches_trial(value_bytes, amounts) for value_bytes in MESSAGES),
        one_at_a_time_trial(amounts),
        *fault_trials(amounts, long_rounds),
        *(again(trial) for trial in small if trial.name == REPEATED),
    ]


# Batches and latency


def batches_trial(value_bytes: int, amounts: Amounts) -> Trial:
    def run(messages: int, least_consumed_megabytes: float, subject: Subject, topic: str) -> Values:
        megabytes = value_bytes * messages / 1e6
        create_topic(subject.bootstrap, topic, replicas=REPLICAS)
        touch_memory(int(TOUCHED_BYTES * amounts.share))
        before = cpu_seconds(*subject.process_ids)
        produced = produce_seconds(subject.bootstrap, topic, value_bytes, messages, acks="all")
        spent = cpu_seconds(*subject.process_ids) - before
        passes = ceil(least_consumed_megabytes / megabytes)
        consumed = consume_seconds(subject.bootstrap, topic, messages, passes)
        delete_topic(subject.bootstrap, topic)
        return megabytes / produced, passes * megabytes / consumed, spent / megabytes * 1e3

    variant = f"{value_bytes:,} B"
    messages = amounts.count(MESSAGES[value_bytes])
    return Trial(
        f"batches-{value_bytes}",
        (
            Figure(BATCHES, f"produce, linger {LINGER_MS} ms", "MB/s", "more", variant),
            Figure(BATCHES, "consume", "MB/s", "more", variant),
            Figure(BATCHES, "CPU of all brokers to take a GB", "s", "less", variant),
        ),
        partial(run, messages, CONSUMED_MEGABYTES * amounts.share),
        CLUSTERS,
        f"batches-{value_bytes}",
        amounts.warm_up_seconds,
        partial(run, amounts.count(int(MESSAGES[value_bytes] * WARM_UP_SHARE)), 0.1),
    )


def one_at_a_time_trial(amounts: Amounts) -> Trial:
    def run(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic, replicas=REPLICAS)
        latencies_ms = one_at_a_time_ms(subject.bootstrap, topic, amounts.count(LATENCY_MESSAGES))
        delete_topic(subject.bootstrap, topic)
        return latencies_ms[len(latencies_ms) // 2], latencies_ms[len(latencies_ms) * 99 // 100]

    figures = (Figure(LATENCY, "time to the acknowledgement", "ms", "less", name) for name in ("p50", "p99"))
    return Trial("one-at-a-time", tuple(figures), run, CLUSTERS, "one-at-a-time", amounts.warm_up_seconds)


# Small requests


def small_request_trials(amounts: Amounts) -> list[Trial]:
    return [
        trial
        for api, shown, new_request in (
            ("produce", f"Produce requests of one record of {PRODUCED_BYTES} B, acks=1", produce_request),
            ("fetch", f"Fetch requests of one record of {FETCHED_BYTES:,} B", fetch_request),
        )
        for trial in _small_request_trials(api, shown, new_request, amounts)
    ]


def _small_request_trials(api: str, shown: str, new_request: NewRequest, amounts: Amounts) -> list[Trial]:
    group = f"{shown}, {LEADERS} partitions of one replica: three Lamina brokers beside one Kafka broker"

    def run(connections: int, subject: Subject, topic: str) -> Values:
        _create_for_requests(subject, topic)
        before = cpu_seconds(*subject.process_ids)
        done = load(subject, topic, new_request, connections, amounts.load_seconds)
        spent = cpu_seconds(*subject.process_ids) - before
        delete_topic(subject.bootstrap, topic)
        return done.requests_per_second, done.p99_ms, spent / done.answered * 1e6

    return [
        Trial(
            f"{api}-{connections}",
            (
                Figure(group, "requests", "/s", "more", variant),
                Figure(group, "p99", "ms", "less", variant),
                Figure(group, "CPU of all brokers for each", "µs", "less", variant),
            ),
            partial(run, connections),
            VERSUS_ONE,
            f"{api} requests",
            amounts.warm_up_seconds,
            partial(run, WARM_UP_CONNECTIONS),
        )
        for connections in CONNECTIONS
        for variant in (f"connections: {connections}",)
    ]


def _create_for_requests(subject: Subject, topic: str, replicas: int = 1) -> None:
    """With a record in each partition."""
    create_topic(subject.bootstrap, topic, partitions=LEADERS, first_value_bytes=FETCHED_BYTES, replicas=replicas)
    for partition in range(1, LEADERS):
        one_at_a_time_ms(subject.bootstrap, topic, 1, 0, FETCHED_BYTES, partition)


def load(subject: Subject, topic: str, new_request: NewRequest, connections: int, seconds: float) -> Load:
    """Requests to all leaders of a topic; every produced record that was acknowledged has to be in the log."""
    addresses = leader_addresses(subject.bootstrap, topic)
    requests = [new_request(topic, partition) for partition in range(LEADERS)]
    places = {checked_error_at(address, request) for address, request in zip(addresses, requests, strict=True)}
    (error_at,) = places
    frames = [requests[number % LEADERS].frame for number in range(connections)]
    first = _end_offsets(subject, topic)
    done = run_load(addresses, frames, error_at, seconds)
    if new_request is produce_request:
        # What followers have not fetched yet is not shown: it was acknowledged by the leader alone.
        enough = first + done.answered
        await_until(lambda: _end_offsets(subject, topic) >= enough, f"acknowledged records of {topic} are not there")
        if (more := _end_offsets(subject, topic) - enough) > connections:
            raise LoadError(f"{subject.bootstrap} has {more} records in its logs that it did not acknowledge")
    return done


def _end_offsets(subject: Subject, topic: str) -> int:
    return sum(end_offset(subject.bootstrap, topic, partition) for partition in range(LEADERS))


# Memory


def memory_trials(amounts: Amounts, rounds: int) -> list[Trial]:
    """Of a cluster that has just started, and after some of everything that needs memory."""

    def run(subject: Subject, topic: str) -> Values:
        subject.start()
        time.sleep(amounts.settling_seconds)
        idle = resident_bytes(*subject.process_ids)
        _create_for_requests(subject, topic, REPLICAS)
        load(subject, topic, fetch_request, CONNECTIONS[-1], amounts.load_seconds / 3)
        load(subject, topic, produce_request, CONNECTIONS[-1], amounts.load_seconds / 3)
        delete_topic(subject.bootstrap, topic)
        for value_bytes, full in MESSAGES.items():
            batches, count = f"{topic}-{value_bytes}", amounts.count(int(full * MEMORY_SHARE))
            create_topic(subject.bootstrap, batches, replicas=REPLICAS)
            produce_seconds(subject.bootstrap, batches, value_bytes, count, acks="all")
            consume_seconds(subject.bootstrap, batches, count, 1)
            delete_topic(subject.bootstrap, batches)
        time.sleep(amounts.settling_seconds)
        loaded = resident_bytes(*subject.process_ids)
        subject.stop()
        return idle / 1e6, loaded / 1e6

    return [
        Trial(
            name,
            (
                Figure(MEMORY, "three brokers, idle", "MB", "less", heap),
                Figure(MEMORY, "three brokers, after loads", "MB", "less", heap),
            ),
            run,
            subjects,
            starts_brokers=True,
            most_rounds=rounds,
        )
        for name, (heap, subjects) in zip(("memory", "memory-small-heap"), HEAPS, strict=True)
    ]
