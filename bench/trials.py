"""What is measured on both brokers, and the bar for each figure: Lamina's beside Kafka's in the same run.

A trial runs on one broker and yields its figures in order. Owns the amounts; the bars are the project's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.group_trials import LOADED_COMMITS, commits, loading, rebalance
from bench.librdkafka import (
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
from bench.subjects import Subject, resident_megabytes, wait_for_answer

LOAD_SECONDS = 3.0
WARM_UP_SECONDS = 20.0
"""A JVM takes about as long under load until a request costs it no less than before: a tenth of what it began with."""
CONSUME_PASSES = 3
LATENCY_MESSAGES = 3000
SETTLING_SECONDS = 2.0
TRANSACTIONS = 500
LARGE_TRANSACTIONS = 20
AMOUNTS = {100: 1_000_000, 1_000: 200_000, 10_000: 20_000}
"""Messages by size of their values: enough for a second or more."""


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    unit: str
    sign: Literal["≥", "≤"]
    bar: float
    """What Lamina's figure divided by Kafka's has to reach, or may not exceed."""
    is_of_lamina: bool = False
    """The bar is for Lamina's figure itself, whatever Kafka's is."""

    def best(self, values: Sequence[float]) -> float:
        return max(values) if self.sign == "≥" else min(values)


@dataclass(frozen=True, slots=True)
class Trial:
    name: str
    figures: tuple[Figure, ...]
    run: Callable[[Subject, str], tuple[float, ...]]
    """Takes the broker and a topic name that nobody has used."""
    needs_stopped: bool = False
    rounds: int = 3


def start(subject: Subject, _: str) -> tuple[float, ...]:
    subject.format()
    started = time.perf_counter()
    subject.launch()
    wait_for_answer(subject)
    seconds = time.perf_counter() - started
    subject.stop()
    return (seconds,)


def memory(subject: Subject, _: str) -> tuple[float, ...]:
    time.sleep(SETTLING_SECONDS)
    return (resident_megabytes(subject),)


def produce_and_consume(value_bytes: int) -> Trial:
    count = AMOUNTS[value_bytes]
    megabytes = value_bytes * count / 1e6

    def run(subject: Subject, topic: str) -> tuple[float, ...]:
        create_topic(subject.bootstrap, topic)
        produced = produce_seconds(subject.bootstrap, topic, value_bytes, count)
        consumed = consume_seconds(subject.bootstrap, topic, count, CONSUME_PASSES)
        delete_topic(subject.bootstrap, topic)
        return megabytes / produced, CONSUME_PASSES * megabytes / consumed

    figures = (
        Figure(f"librdkafka produce, {value_bytes:,} B", "MB/s", "≥", 1.0),
        Figure(f"librdkafka consume, {value_bytes:,} B", "MB/s", "≥", 1.0),
    )
    return Trial(f"librdkafka-{value_bytes}", figures, run)


def load(subject: Subject, topic: str, connections: int, seconds: float = LOAD_SECONDS) -> Load:
    """One-record requests to a topic that holds one record; every answered one has to be in the log."""
    done = run_load(subject, topic, connections, seconds)
    appended = end_offset(subject.bootstrap, topic) - 1
    if not done.answered <= appended <= done.answered + connections:
        raise LoadError(f"{subject.bootstrap} answered {done.answered} requests, its log has {appended} of them")
    return done


def warm_up(subject: Subject, topic: str) -> tuple[float, ...]:
    create_topic(subject.bootstrap, topic)
    load(subject, topic, 16, WARM_UP_SECONDS)
    return ()


def one_record_requests(connections: int, bar: float) -> Trial:
    def run(subject: Subject, topic: str) -> tuple[float, ...]:
        create_topic(subject.bootstrap, topic)
        done = load(subject, topic, connections)
        return done.requests_per_second, done.p99_ms

    figures = (
        Figure(f"one-record requests, {connections} connections", "/s", "≥", bar),
        Figure(f"  their p99, {connections} connections", "ms", "≤", 0.7),
    )
    return Trial(f"one-record-{connections}", figures, run)


def flushed_requests(subject: Subject, topic: str) -> tuple[float, ...]:
    create_topic(subject.bootstrap, topic, {"flush.messages": "1"})
    return (load(subject, topic, 16).requests_per_second,)


def one_at_a_time(subject: Subject, topic: str) -> tuple[float, ...]:
    create_topic(subject.bootstrap, topic)
    latencies_ms = one_at_a_time_ms(subject.bootstrap, topic, LATENCY_MESSAGES)
    return latencies_ms[len(latencies_ms) // 2], latencies_ms[len(latencies_ms) * 99 // 100]


def transactions(subject: Subject, topic: str) -> tuple[float, ...]:
    create_topic(subject.bootstrap, topic)
    seconds = transactional_seconds(subject.bootstrap, topic, 100, TRANSACTIONS, 100, warm_up=TRANSACTIONS // 10)
    return (TRANSACTIONS / seconds,)


def large_transactions(subject: Subject, topic: str) -> tuple[float, ...]:
    """How much of its idempotent produce a broker keeps with transactions."""
    shape = (1_000, LARGE_TRANSACTIONS, 10_000)
    create_topic(subject.bootstrap, topic)
    idempotent = idempotent_seconds(subject.bootstrap, topic, *shape)
    transactional = transactional_seconds(subject.bootstrap, topic, *shape)
    delete_topic(subject.bootstrap, topic)
    return (idempotent / transactional,)


WARM_UP = Trial("warm-up", (), warm_up, rounds=1)
TRIALS = (
    Trial("start", (Figure("start to first answer", "s", "≤", 0.2),), start, needs_stopped=True),
    Trial("memory-idle", (Figure("memory, idle", "MB", "≤", 0.25),), memory, rounds=1),
    WARM_UP,
    one_record_requests(16, 1.5),
    one_record_requests(100, 1.2),
    Trial(
        "one-at-a-time",
        (Figure("one message at a time, p50", "ms", "≤", 1.0), Figure("one message at a time, p99", "ms", "≤", 0.5)),
        one_at_a_time,
    ),
    Trial(
        "flushed",
        (Figure("one-record requests, 16 connections, flush.messages=1", "/s", "≥", 1.0),),
        flushed_requests,
    ),
    produce_and_consume(100),
    produce_and_consume(1_000),
    produce_and_consume(10_000),
    Trial("transactions", (Figure("transactions of 100 records, one partition", "/s", "≥", 1.0),), transactions),
    Trial(
        "large-transactions",
        (Figure("transactions of 10,000 records", "× idempotent", "≥", 0.95, is_of_lamina=True),),
        large_transactions,
    ),
    Trial(
        "commits",
        (
            Figure("offset commits, 16 consumers", "/s", "≥", 1.0),
            Figure("  their p99, 16 consumers", "ms", "≤", 1.0),
        ),
        commits,
    ),
    *(
        Trial(
            f"rebalance-{protocol}",
            (
                Figure(f"rebalance, 100 {protocol} members, 300 partitions", "s", "≤", 1.0),
                Figure("  the broker's CPU meanwhile", "s", "≤", 1.0),
            ),
            rebalance(protocol),
        )
        for protocol in ("classic", "consumer")
    ),
    Trial("memory-loaded", (Figure("memory, after these loads", "MB", "≤", 0.3),), memory, rounds=1),
    Trial(
        "loading",
        (
            Figure(f"restart with {LOADED_COMMITS:,} commits to the first offset", "s", "≤", 1.0),
            Figure("  of it after the first answer", "s", "≤", 1.0),
        ),
        loading,
        rounds=1,
    ),
)
