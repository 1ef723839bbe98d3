"""What is measured of clients: batches by one producer and by several, consumers, latency, transactions.

Owns the amounts.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from math import ceil

from bench.amounts import Amounts
from bench.librdkafka import (
    LINGER_MS,
    consume_seconds,
    create_topic,
    delete_topic,
    idempotent_seconds,
    one_at_a_time_ms,
    produce_seconds,
    produce_together_seconds,
    transactional_seconds,
)
from bench.machine import touch_memory
from bench.results import Figure
from bench.rounds import Trial, Values
from bench.subjects import KAFKA, LAMINA, Subject
from bench.usage import cpu_seconds

MESSAGES = {100: 3_000_000, 1_000: 600_000, 10_000: 100_000}
"""By size of their values: enough for three seconds."""
LINGER_0_VALUE_BYTES = 100
"""With larger values batches are full long before any linger is over."""
CONSUMED_MEGABYTES = 1_000
WARM_UP_SHARE = 0.2
TOUCHED_BYTES = 3 << 30
"""What a round of batches fills: the log in the page cache, and the client's queue."""
PRODUCERS, PARTITIONS, SHARED_VALUE_BYTES = 4, 4, 1_000
LATENCY_MESSAGES = 12_000
TRANSACTIONS, TRANSACTION_MESSAGES = 800, 100
LARGE_TRANSACTIONS, LARGE_TRANSACTION_MESSAGES, LARGE_TRANSACTION_VALUE_BYTES = 60, 10_000, 1_000

VERSUS = {KAFKA: KAFKA, LAMINA: LAMINA}
BATCHES = "Batches through librdkafka, one producer, one partition, acks=1"
SHARED = f"Batches of {SHARED_VALUE_BYTES:,} B through librdkafka, {PRODUCERS} producers, {PARTITIONS} partitions"
LATENCY = "One message at a time, acks=all, linger 0"
DURABLE = "Flushed and transactional"


def batches_trial(value_bytes: int, amounts: Amounts) -> Trial:
    is_unlingered_too = value_bytes == LINGER_0_VALUE_BYTES

    def run(messages: int, least_consumed_megabytes: float, subject: Subject, topic: str) -> Values:
        megabytes = value_bytes * messages / 1e6
        create_topic(subject.bootstrap, topic)
        touch_memory(int(TOUCHED_BYTES * amounts.share))
        cpu = [cpu_seconds(*subject.process_ids)]
        produced = produce_seconds(subject.bootstrap, topic, value_bytes, messages)
        cpu.append(cpu_seconds(*subject.process_ids))
        in_log = messages
        unlingered: tuple[float, ...] = ()
        if is_unlingered_too:
            seconds = produce_seconds(subject.bootstrap, topic, value_bytes, messages, linger_ms=0)
            in_log, unlingered = 2 * messages, (megabytes / seconds,)
        cpu.append(cpu_seconds(*subject.process_ids))
        passes = ceil(least_consumed_megabytes / (value_bytes * in_log / 1e6))
        consumed = consume_seconds(subject.bootstrap, topic, in_log, passes)
        cpu.append(cpu_seconds(*subject.process_ids))
        consumed_megabytes = passes * value_bytes * in_log / 1e6
        delete_topic(subject.bootstrap, topic)
        return (
            megabytes / produced,
            *unlingered,
            consumed_megabytes / consumed,
            (cpu[1] - cpu[0]) / megabytes * 1e3,
            (cpu[3] - cpu[2]) / consumed_megabytes * 1e3,
        )

    variant = f"{value_bytes:,} B"
    messages = amounts.count(MESSAGES[value_bytes])
    unlingered = (Figure(BATCHES, "produce, linger 0", "MB/s", "more", variant),) if is_unlingered_too else ()
    return Trial(
        f"batches-{value_bytes}",
        (
            Figure(BATCHES, f"produce, linger {LINGER_MS} ms", "MB/s", "more", variant),
            *unlingered,
            Figure(BATCHES, "consume", "MB/s", "more", variant),
            Figure(BATCHES, f"broker's CPU to take a GB, linger {LINGER_MS} ms", "s", "less", variant),
            Figure(BATCHES, "broker's CPU to give a GB", "s", "less", variant),
        ),
        partial(run, messages, CONSUMED_MEGABYTES * amounts.share),
        VERSUS,
        f"batches-{value_bytes}",
        amounts.warm_up_seconds,
        partial(run, amounts.count(int(MESSAGES[value_bytes] * WARM_UP_SHARE)), 0.1),
    )


def shared_trials(amounts: Amounts) -> list[Trial]:
    """Several producers at a time, each to all partitions."""

    messages = amounts.count(MESSAGES[SHARED_VALUE_BYTES])
    megabytes = SHARED_VALUE_BYTES * messages / 1e6

    def run(is_idempotent: bool, subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic, partitions=PARTITIONS)
        touch_memory(int(TOUCHED_BYTES * amounts.share))
        before = cpu_seconds(*subject.process_ids)
        seconds = produce_together_seconds(
            subject.bootstrap, topic, SHARED_VALUE_BYTES, messages, PRODUCERS, PARTITIONS, is_idempotent
        )
        spent = cpu_seconds(*subject.process_ids) - before
        delete_topic(subject.bootstrap, topic)
        return megabytes / seconds, spent / megabytes * 1e3

    return [
        Trial(
            name,
            (
                Figure(SHARED, "produce", "MB/s", "more", variant),
                Figure(SHARED, "broker's CPU to take a GB", "s", "less", variant),
            ),
            partial(run, is_idempotent),
            VERSUS,
            f"batches-{SHARED_VALUE_BYTES}",
            amounts.warm_up_seconds,
        )
        for name, variant, is_idempotent in (
            ("producers", "acks=1", False),
            ("producers-idempotent", "idempotent with acks=all", True),
        )
    ]


def one_at_a_time_trial(amounts: Amounts) -> Trial:
    def run(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic)
        latencies_ms = one_at_a_time_ms(subject.bootstrap, topic, amounts.count(LATENCY_MESSAGES))
        delete_topic(subject.bootstrap, topic)
        return latencies_ms[len(latencies_ms) // 2], latencies_ms[len(latencies_ms) * 99 // 100]

    figures = (Figure(LATENCY, "time to the acknowledgement", "ms", "less", name) for name in ("p50", "p99"))
    return Trial("one-at-a-time", tuple(figures), run, VERSUS, "produce", amounts.warm_up_seconds)


def transaction_trials(amounts: Amounts) -> list[Trial]:
    count = amounts.count(TRANSACTIONS)
    large_count = amounts.count(LARGE_TRANSACTIONS)
    large = (LARGE_TRANSACTION_VALUE_BYTES, large_count, LARGE_TRANSACTION_MESSAGES)
    turns = Counter[str]()
    """Of each broker, so that transactions are first in every other round only."""
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
        touch_memory(int(TOUCHED_BYTES * amounts.share))
        both = (transactional_seconds, idempotent_seconds)
        turns[subject.bootstrap] += 1
        order = both if turns[subject.bootstrap] % 2 else both[::-1]
        seconds = {send: send(subject.bootstrap, topic, *large) for send in order}
        delete_topic(subject.bootstrap, topic)
        transactional, idempotent = (large_megabytes / seconds[send] for send in both)
        return transactional, idempotent

    shape = f"{LARGE_TRANSACTION_MESSAGES:,} records of {LARGE_TRANSACTION_VALUE_BYTES:,} B"
    return [
        Trial(
            "transactions",
            (Figure(DURABLE, f"transactions of {TRANSACTION_MESSAGES} records of 100 B", "/s", "more"),),
            small_ones,
            VERSUS,
            "transactions",
            amounts.warm_up_seconds,
        ),
        Trial(
            "large-transactions",
            (
                Figure(DURABLE, f"transactions of {shape}", "MB/s", "more"),
                Figure(DURABLE, f"idempotent with acks=all, {shape} at a time", "MB/s", "more"),
            ),
            large_ones,
            VERSUS,
            "transactions",
        ),
    ]
