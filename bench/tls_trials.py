"""What is measured over TLS: batches, small requests, and connections one after the other.

Owns the amounts, and what every client and broker have to agree on: a run in which another version or cipher suite was
spoken is none.
"""

from __future__ import annotations

import sys
from functools import cache, partial
from math import ceil

from bench.agreed import agreed
from bench.amounts import Amounts
from bench.client_trials import CONSUMED_MEGABYTES, MESSAGES, TOUCHED_BYTES, VERSUS, WARM_UP_SHARE
from bench.handshakes import run_handshakes
from bench.librdkafka import (
    CALL_SECONDS,
    LINGER_MS,
    consume_seconds,
    create_topic,
    delete_topic,
    new_admin,
    produce_seconds,
)
from bench.load import Address
from bench.machine import touch_memory
from bench.results import Figure
from bench.rounds import Trial, Values, again
from bench.small_requests import (
    FETCHED_BYTES,
    PRODUCED_BYTES,
    WrongAnswer,
    fetch_request,
    produce_request,
)
from bench.subjects import API_VERSIONS_V0, API_VERSIONS_V0_ERROR_AT, Subject
from bench.tls_subjects import TlsBroker, client_properties, tls_address, tls_broker
from bench.trials import NewRequest, load
from bench.usage import cpu_seconds
from tests.peers.kafka import Kafka

AGREED = "TLSv1.3 TLS_AES_256_GCM_SHA384"
"""What Java and OpenSSL, and so both brokers and every client here, prefer when nothing is set."""
VALUE_BYTES = (100, 1_000)
CONNECTIONS = 16
BATCHES = "Batches over TLS through librdkafka, one producer, one partition, acks=1"
HANDSHAKES = f"Connections over TLS, {CONNECTIONS} at a time, each for one ApiVersions request"


def tls_trials(amounts: Amounts) -> list[Trial]:
    new, sessions = handshake_trials(amounts)
    return [
        new,
        sessions,
        *(batches_trial(value_bytes, amounts) for value_bytes in VALUE_BYTES),
        *small_request_trials(amounts),
        # Shows whether the machine was the same at the end.
        again(new),
    ]


# Batches


def batches_trial(value_bytes: int, amounts: Amounts) -> Trial:
    def run(messages: int, least_consumed_megabytes: float, subject: Subject, topic: str) -> Values:
        broker = tls_broker(subject)
        check_librdkafka(broker)
        bootstrap, security = "{}:{}".format(*tls_address(broker)), client_properties(broker)
        megabytes = value_bytes * messages / 1e6
        passes = ceil(least_consumed_megabytes / megabytes)
        create_topic(subject.bootstrap, topic)
        touch_memory(int(TOUCHED_BYTES * amounts.share))
        cpu = [cpu_seconds(*subject.process_ids)]
        produced = produce_seconds(bootstrap, topic, value_bytes, messages, security=security)
        cpu.append(cpu_seconds(*subject.process_ids))
        consumed = consume_seconds(bootstrap, topic, messages, passes, security)
        cpu.append(cpu_seconds(*subject.process_ids))
        delete_topic(subject.bootstrap, topic)
        return (
            megabytes / produced,
            megabytes * passes / consumed,
            (cpu[1] - cpu[0]) / megabytes * 1e3,
            (cpu[2] - cpu[1]) / (megabytes * passes) * 1e3,
        )

    variant = f"{value_bytes:,} B"
    return Trial(
        f"tls-batches-{value_bytes}",
        (
            Figure(BATCHES, f"produce, linger {LINGER_MS} ms", "MB/s", "more", variant),
            Figure(BATCHES, "consume", "MB/s", "more", variant),
            Figure(BATCHES, f"broker's CPU to take a MB, linger {LINGER_MS} ms", "ms", "less", variant),
            Figure(BATCHES, "broker's CPU to give a MB", "ms", "less", variant),
        ),
        partial(run, amounts.count(MESSAGES[value_bytes]), CONSUMED_MEGABYTES * amounts.share),
        VERSUS,
        f"tls-batches-{value_bytes}",
        amounts.warm_up_seconds,
        partial(run, amounts.count(int(MESSAGES[value_bytes] * WARM_UP_SHARE)), 0.1),
    )


@cache
def check_librdkafka(broker: TlsBroker) -> None:
    """Once for each broker: what librdkafka and it agree on is what all agree on."""

    def connect(through: Address) -> None:
        new_admin("{}:{}".format(*through), client_properties(broker)).list_topics(timeout=CALL_SECONDS)

    check(broker, "librdkafka", agreed(tls_address(broker), connect))


@cache
def check(broker: TlsBroker, client: str, found: str) -> None:
    """Says it once."""
    print(f"{client} and {'Kafka' if isinstance(broker, Kafka) else 'Lamina'} agreed on {found}", file=sys.stderr)
    if not found.startswith(AGREED):
        raise WrongAnswer(f"{client} and {broker.bootstrap} agreed on {found}, not on {AGREED}")


# Connections


def handshake_trials(amounts: Amounts) -> list[Trial]:
    def run(offers_session: bool, subject: Subject, _: str) -> Values:
        before = cpu_seconds(*subject.process_ids)
        done = run_handshakes(
            tls_address(subject),
            tls_broker(subject).authority,
            API_VERSIONS_V0,
            API_VERSIONS_V0_ERROR_AT,
            CONNECTIONS,
            amounts.load_seconds,
            offers_session=offers_session,
        )
        spent = cpu_seconds(*subject.process_ids) - before
        check(tls_broker(subject), "the client of connections", done.agreed)
        return (
            done.connections_per_second,
            done.p99_ms,
            spent / done.answered * 1e6,
            done.resumed / done.answered * 100,
            done.cpu_seconds / done.answered * 1e6,
        )

    return [
        Trial(
            name,
            (
                Figure(HANDSHAKES, "connections", "/s", "more", variant),
                Figure(HANDSHAKES, "p99 from the first step to the answer", "ms", "less", variant),
                Figure(HANDSHAKES, "broker's CPU for each", "µs", "less", variant),
                Figure(HANDSHAKES, "went on with a session", "%", "neither", variant),
                Figure(HANDSHAKES, "client's CPU for each", "µs", "neither", variant),
            ),
            partial(run, offers_session),
            VERSUS,
            name,
            amounts.warm_up_seconds,
        )
        for name, variant, offers_session in (
            ("tls-connections", "new", False),
            ("tls-sessions", "offering a session", True),
        )
    ]


# Small requests


def small_request_trials(amounts: Amounts) -> list[Trial]:
    return [
        _small_request_trial(api, shown, new_request, amounts)
        for api, shown, new_request in (
            ("produce", f"Produce requests of one record of {PRODUCED_BYTES} B over TLS, acks=1", produce_request),
            ("fetch", f"Fetch requests of one record of {FETCHED_BYTES:,} B over TLS", fetch_request),
        )
    ]


def _small_request_trial(api: str, shown: str, new_request: NewRequest, amounts: Amounts) -> Trial:
    def run(subject: Subject, topic: str) -> Values:
        create_topic(subject.bootstrap, topic, first_value_bytes=FETCHED_BYTES)
        before = cpu_seconds(*subject.process_ids)
        authority = tls_broker(subject).authority
        seconds = amounts.load_seconds
        done = load(subject, topic, new_request, CONNECTIONS, seconds, tls_address(subject), authority)
        spent = cpu_seconds(*subject.process_ids) - before
        check(tls_broker(subject), "the client of small requests", done.agreed)
        delete_topic(subject.bootstrap, topic)
        return done.requests_per_second, done.p99_ms, spent / done.answered * 1e6

    variant = f"connections: {CONNECTIONS}"
    return Trial(
        f"tls-{api}-{CONNECTIONS}",
        (
            Figure(shown, "requests", "/s", "more", variant),
            Figure(shown, "p99", "ms", "less", variant),
            Figure(shown, "broker's CPU for each", "µs", "less", variant),
        ),
        run,
        VERSUS,
        f"tls-{api}",
        amounts.warm_up_seconds,
    )
