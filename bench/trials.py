"""What is measured on both brokers, row by row.

A trial runs on one broker and yields its figures in order. Owns the amounts and the order of the rows: whatever needs
brokers that have just started is first, what restarts them last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.amounts import Amounts
from bench.client_trials import (
    DURABLE,
    MESSAGES,
    VERSUS,
    batches_trial,
    one_at_a_time_trial,
    shared_trials,
    transaction_trials,
)
from bench.group_trials import group_trials, loading_trial
from bench.librdkafka import consume_seconds, create_topic, delete_topic, end_offset, produce_seconds
from bench.load import Address, Load, run_load
from bench.programs import LoadError
from bench.results import Figure
from bench.rounds import Trial, Values, again
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
REPEATED = "produce-16"
"""The row that shows whether the machine was the same at the end."""
STEADY_ROUNDS = 3
"""Of what takes long and gives nearly the same every time: start, memory and restart."""
MEMORY_SHARE = 0.2
"""Of the messages that are enough for three seconds."""

VERSUS_SMALL_HEAP = {KAFKA: KAFKA_SMALL_HEAP, LAMINA: LAMINA}
HEAPS = (("Kafka with -Xmx1G -Xms1G", VERSUS), (f"Kafka with -Xmx{SMALL_HEAP_MEGABYTES}M", VERSUS_SMALL_HEAP))

START = "Start and memory"


def all_trials(amounts: Amounts) -> list[Trial]:
    small = small_request_trials(amounts)
    return [
        *start_trials(amounts),
        *small,
        *(batches_trial(value_bytes, amounts) for value_bytes in MESSAGES),
        *shared_trials(amounts),
        one_at_a_time_trial(amounts),
        flushed_trial(amounts),
        *transaction_trials(amounts),
        *group_trials(amounts),
        *memory_trials(amounts),
        loading_trial(amounts),
        *(again(trial) for trial in small if trial.name == REPEATED),
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
        idle_bytes = resident_bytes(*subject.process_ids)
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
            most_rounds=STEADY_ROUNDS,
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
            count = amounts.count(int(full * MEMORY_SHARE))
            produce_seconds(subject.bootstrap, topic, value_bytes, count)
            consume_seconds(subject.bootstrap, topic, count, 1)
        delete_topic(subject.bootstrap, topic)
        time.sleep(amounts.settling_seconds)
        return (resident_bytes(*subject.process_ids) / 1e6,)

    return [
        Trial(
            name,
            (Figure(START, "memory, after loads", "MB", "less", heap),),
            run,
            subjects,
            most_rounds=STEADY_ROUNDS,
        )
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
        before = cpu_seconds(*subject.process_ids)
        done = load(subject, topic, new_request, connections, amounts.load_seconds)
        spent = cpu_seconds(*subject.process_ids) - before
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
            amounts.warm_up_seconds,
            partial(run, WARM_UP_CONNECTIONS),
        )
        for connections in CONNECTIONS
        for variant in (f"connections: {connections}",)
    ]


def load(
    subject: Subject,
    topic: str,
    new_request: NewRequest,
    connections: int,
    seconds: float,
    tls_address: Address | None = None,
    authority: Path | None = None,
) -> Load:
    """Requests to a topic; every produced record that was acknowledged has to be in the log."""
    request = new_request(topic)
    error_at = checked_error_at(address(subject), request)
    first = end_offset(subject.bootstrap, topic)
    addresses = [tls_address or address(subject)]
    done = run_load(addresses, [request.frame] * connections, error_at, seconds, authority=authority)
    if new_request is produce_request:
        appended = end_offset(subject.bootstrap, topic) - first
        if not done.answered <= appended <= done.answered + connections:
            raise LoadError(f"{subject.bootstrap} answered {done.answered} requests, its log has {appended} of them")
    return done


def flushed_trial(amounts: Amounts) -> Trial:
    connections = 16

    def run(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic, {"flush.messages": "1"})
        done = load(subject, topic, produce_request, connections, amounts.load_seconds)
        delete_topic(subject.bootstrap, topic)
        return (done.requests_per_second,)

    name = f"Produce requests with flush.messages=1, {connections} connections"
    return Trial("flushed", (Figure(DURABLE, name, "/s", "more"),), run, VERSUS, "produce", amounts.warm_up_seconds)
