"""What is measured on both brokers, row by row.

A trial runs on one broker and yields its figures in order. Owns the amounts and the order of the rows: whatever needs
brokers that have just started is first, what restarts them last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from bench.amounts import Amounts
from bench.group_trials import group_trials, loading_trial
from bench.librdkafka import (
    LINGER_MS,
    consume_seconds,
    create_topic,
    delete_topic,
    end_offset,
    idempotent_seconds,
    one_at_a_time_ms,
    produce_seconds,
    transactional_seconds,
)
from bench.load import Load, LoadError, run_load
from bench.results import Figure
from bench.rounds import Trial, Values
from bench.small_requests import (
    FETCHED_BYTES,
    PRODUCED_BYTES,
    SmallRequest,
    checked_error_at,
    fetch_request,
    metadata_request,
    produce_request,
)
from bench.subjects import KAFKA, KAFKA_SMALL_HEAP, LAMINA, SMALL_HEAP_MEGABYTES, Subject, address, wait_for_answer
from bench.usage import cpu_seconds, resident_bytes

CONNECTIONS = (1, 16, 100)
WARM_UP_CONNECTIONS = 16
WARM_UP_SECONDS = 20.0
"""Of each API with small requests: a JVM takes about as long until a request costs it no less than before."""
BATCHES_WARM_UP_SECONDS = 10.0
LATENCY_WARM_UP_SECONDS = 5.0
CONSUME_PASSES = 2
LATENCY_MESSAGES = 3_000
MESSAGES = {100: 1_000_000, 1_000: 200_000, 10_000: 20_000}
"""By size of their values: enough for a second or more."""
TRANSACTIONS, TRANSACTION_MESSAGES = 500, 100
LARGE_TRANSACTIONS, LARGE_TRANSACTION_MESSAGES, LARGE_TRANSACTION_VALUE_BYTES = 20, 10_000, 1_000

VERSUS = {KAFKA: KAFKA, LAMINA: LAMINA}
VERSUS_SMALL_HEAP = {KAFKA: KAFKA_SMALL_HEAP, LAMINA: LAMINA}
HEAPS = (("Kafka with -Xmx1G -Xms1G", VERSUS), (f"Kafka with -Xmx{SMALL_HEAP_MEGABYTES}M", VERSUS_SMALL_HEAP))

START = "Start and memory"
BATCHES = "Batches through librdkafka, one partition"
LATENCY = "One message at a time, acks=all, linger 0"
DURABLE = "Flushed and transactional"


def all_trials(amounts: Amounts) -> list[Trial]:
    return [
        *start_trials(amounts),
        *small_request_trials(amounts),
        *(batches_trial(value_bytes, amounts) for value_bytes in MESSAGES),
        one_at_a_time_trial(amounts),
        flushed_trial(amounts),
        *transaction_trials(amounts),
        *group_trials(amounts),
        *memory_trials(amounts),
        loading_trial(amounts),
    ]


# Start and memory


def start_trials(amounts: Amounts) -> list[Trial]:
    def run(subject: Subject, _: str) -> Values:
        subject.format()
        began = time.perf_counter()
        subject.launch()
        wait_for_answer(subject)
        seconds = time.perf_counter() - began
        time.sleep(amounts.settling_seconds)
        idle_bytes = resident_bytes(subject.process_id)
        subject.stop()
        return seconds, idle_bytes / 1e6

    return [
        Trial(
            name,
            (
                Figure(START, "start to the first answer", "s", "less", heap),
                Figure(START, "memory, idle", "MB", "less", heap),
            ),
            run,
            subjects,
            starts_brokers=True,
        )
        for name, (heap, subjects) in zip(("start", "start-small-heap"), HEAPS, strict=True)
    ]


def memory_trials(amounts: Amounts) -> list[Trial]:
    """Some of everything that needs memory, then what is held."""

    def run(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic, first_value_bytes=FETCHED_BYTES)
        load(subject, topic, fetch_request, CONNECTIONS[-1], amounts.load_seconds / 3)
        load(subject, topic, produce_request, CONNECTIONS[-1], amounts.load_seconds / 3)
        for value_bytes, full in MESSAGES.items():
            count = amounts.count(full)
            produce_seconds(subject.bootstrap, topic, value_bytes, count)
            consume_seconds(subject.bootstrap, topic, count, 1)
        delete_topic(subject.bootstrap, topic)
        time.sleep(amounts.settling_seconds)
        return (resident_bytes(subject.process_id) / 1e6,)

    return [
        Trial(name, (Figure(START, "memory, after loads", "MB", "less", heap),), run, subjects)
        for name, (heap, subjects) in zip(("memory", "memory-small-heap"), HEAPS, strict=True)
    ]


# Small requests

NewRequest = Callable[[str], SmallRequest]


def small_request_trials(amounts: Amounts) -> list[Trial]:
    return [
        trial
        for api, shown, new_request in (
            ("produce", f"Produce requests of one record of {PRODUCED_BYTES} B, acks=1", produce_request),
            ("fetch", f"Fetch requests of one record of {FETCHED_BYTES:,} B", fetch_request),
            ("metadata", "Metadata requests of one topic", metadata_request),
        )
        for trial in _small_request_trials(api, shown, new_request, amounts)
    ]


def _small_request_trials(api: str, shown: str, new_request: NewRequest, amounts: Amounts) -> list[Trial]:
    def run(connections: int, subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic, first_value_bytes=FETCHED_BYTES)
        before = cpu_seconds(subject.process_id)
        done = load(subject, topic, new_request, connections, amounts.load_seconds)
        spent = cpu_seconds(subject.process_id) - before
        delete_topic(subject.bootstrap, topic)
        return done.requests_per_second, done.p99_ms, spent / done.answered * 1e6

    return [
        Trial(
            f"{api}-{connections}",
            (
                Figure(shown, "requests", "/s", "more", variant),
                Figure(shown, "p99", "ms", "less", variant),
                Figure(shown, "broker's CPU for each", "µs", "less", variant),
            ),
            partial(run, connections),
            VERSUS,
            api,
            WARM_UP_SECONDS * amounts.share,
            partial(run, WARM_UP_CONNECTIONS),
        )
        for connections in CONNECTIONS
        for variant in (f"connections: {connections}",)
    ]


def load(subject: Subject, topic: str, new_request: NewRequest, connections: int, seconds: float) -> Load:
    """Requests to a topic; every produced record that was acknowledged has to be in the log."""
    request = new_request(topic)
    error_at = checked_error_at(address(subject), request)
    first = end_offset(subject.bootstrap, topic)
    done = run_load(subject, [request.frame] * connections, error_at, seconds)
    if new_request is produce_request:
        appended = end_offset(subject.bootstrap, topic) - first
        if not done.answered <= appended <= done.answered + connections:
            raise LoadError(f"{subject.bootstrap} answered {done.answered} requests, its log has {appended} of them")
    return done


# Clients


def batches_trial(value_bytes: int, amounts: Amounts) -> Trial:
    count = amounts.count(MESSAGES[value_bytes])
    megabytes = value_bytes * count / 1e6

    def run(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic)
        cpu = [cpu_seconds(subject.process_id)]
        produced = produce_seconds(subject.bootstrap, topic, value_bytes, count)
        cpu.append(cpu_seconds(subject.process_id))
        consumed = consume_seconds(subject.bootstrap, topic, count, CONSUME_PASSES)
        cpu.append(cpu_seconds(subject.process_id))
        unlingered = produce_seconds(subject.bootstrap, topic, value_bytes, count, linger_ms=0)
        delete_topic(subject.bootstrap, topic)
        return (
            megabytes / produced,
            megabytes / unlingered,
            CONSUME_PASSES * megabytes / consumed,
            (cpu[1] - cpu[0]) / megabytes * 1e3,
            (cpu[2] - cpu[1]) / CONSUME_PASSES / megabytes * 1e3,
        )

    variant = f"{value_bytes:,} B"
    return Trial(
        f"batches-{value_bytes}",
        (
            Figure(BATCHES, f"produce, linger {LINGER_MS} ms", "MB/s", "more", variant),
            Figure(BATCHES, "produce, linger 0", "MB/s", "more", variant),
            Figure(BATCHES, "consume", "MB/s", "more", variant),
            Figure(BATCHES, f"broker's CPU to take a GB, linger {LINGER_MS} ms", "s", "less", variant),
            Figure(BATCHES, "broker's CPU to give a GB", "s", "less", variant),
        ),
        run,
        VERSUS,
        "batches",
        BATCHES_WARM_UP_SECONDS * amounts.share,
    )


def one_at_a_time_trial(amounts: Amounts) -> Trial:
    def run(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic)
        latencies_ms = one_at_a_time_ms(subject.bootstrap, topic, amounts.count(LATENCY_MESSAGES))
        delete_topic(subject.bootstrap, topic)
        return latencies_ms[len(latencies_ms) // 2], latencies_ms[len(latencies_ms) * 99 // 100]

    figures = (Figure(LATENCY, "time to the acknowledgement", "ms", "less", name) for name in ("p50", "p99"))
    return Trial("one-at-a-time", tuple(figures), run, VERSUS, "one-at-a-time", LATENCY_WARM_UP_SECONDS * amounts.share)


def flushed_trial(amounts: Amounts) -> Trial:
    connections = 16

    def run(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic, {"flush.messages": "1"})
        done = load(subject, topic, produce_request, connections, amounts.load_seconds)
        delete_topic(subject.bootstrap, topic)
        return (done.requests_per_second,)

    name = f"Produce requests with flush.messages=1, {connections} connections"
    return Trial("flushed", (Figure(DURABLE, name, "/s", "more"),), run, VERSUS, "flushed", 5.0 * amounts.share)


def transaction_trials(amounts: Amounts) -> list[Trial]:
    count = amounts.count(TRANSACTIONS)
    large_count = amounts.count(LARGE_TRANSACTIONS)
    large = (LARGE_TRANSACTION_VALUE_BYTES, large_count, LARGE_TRANSACTION_MESSAGES)
    large_megabytes = large_count * LARGE_TRANSACTION_MESSAGES * LARGE_TRANSACTION_VALUE_BYTES / 1e6

    def small_ones(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic)
        seconds = transactional_seconds(
            subject.bootstrap, topic, 100, count, TRANSACTION_MESSAGES, warm_up=amounts.count(TRANSACTIONS // 10)
        )
        delete_topic(subject.bootstrap, topic)
        return (count / seconds,)

    def large_ones(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic)
        idempotent = idempotent_seconds(subject.bootstrap, topic, *large)
        transactional = transactional_seconds(subject.bootstrap, topic, *large)
        delete_topic(subject.bootstrap, topic)
        return large_megabytes / transactional, large_megabytes / idempotent

    shape = f"{LARGE_TRANSACTION_MESSAGES:,} records of {LARGE_TRANSACTION_VALUE_BYTES:,} B"
    return [
        Trial(
            "transactions",
            (Figure(DURABLE, f"transactions of {TRANSACTION_MESSAGES} records of 100 B", "/s", "more"),),
            small_ones,
            VERSUS,
            "transactions",
            BATCHES_WARM_UP_SECONDS * amounts.share,
        ),
        Trial(
            "large-transactions",
            (
                Figure(DURABLE, f"transactions of {shape}", "MB/s", "more"),
                Figure(DURABLE, f"idempotent, {shape} at a time", "MB/s", "more"),
            ),
            large_ones,
            VERSUS,
            "transactions",
        ),
    ]
