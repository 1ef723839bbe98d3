"""Quotas as Kafka's own tools set them, and as its Java producer is told of them."""

from __future__ import annotations

import re

import pytest

from tests.peers.kafka import KafkaFailedError, run_tool
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


def configs(lamina: Lamina, *arguments: str) -> str:
    return run_tool("kafka.admin.ConfigCommand", "--bootstrap-server", lamina.bootstrap, *arguments)


@pytest.mark.parametrize(
    ("entity", "quota", "described"),
    [
        (("--entity-type", "users", "--entity-name", "alice"), "producer_byte_rate=1024", "user-principal 'alice'"),
        (("--entity-type", "users", "--entity-default"), "request_percentage=12.5", "the default user-principal"),
        (("--entity-type", "clients", "--entity-name", "app"), "consumer_byte_rate=2048", "client-id 'app'"),
        (("--entity-type", "clients", "--entity-default"), "controller_mutation_rate=7.5", "the default client-id"),
        (("--entity-type", "ips", "--entity-name", "10.0.0.1"), "connection_creation_rate=5", "ip '10.0.0.1'"),
        (("--entity-type", "ips", "--entity-default"), "connection_creation_rate=50", "the default ip"),
        (
            ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "app"),
            "producer_byte_rate=4096",
            "user-principal 'alice', client-id 'app'",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) and "=" in one else "",
)
def test_kafka_configs_sets_shows_and_deletes_quotas(
    lamina: Lamina, entity: tuple[str, ...], quota: str, described: str
) -> None:
    key, _, value = quota.partition("=")
    configs(lamina, *entity, "--alter", "--add-config", quota)
    shown = configs(lamina, *entity, "--describe")
    assert re.search(rf"Quota configs for {re.escape(described)} are {key}={float(value)}", shown), shown
    configs(lamina, *entity, "--alter", "--delete-config", key)
    assert "Quota configs" not in configs(lamina, *entity, "--describe")


def test_kafka_configs_is_told_why_a_quota_cannot_be(lamina: Lamina) -> None:
    of_alice = ("--entity-type", "users", "--entity-name", "alice")
    with pytest.raises(KafkaFailedError, match="must be a number above 0"):
        configs(lamina, *of_alice, "--alter", "--add-config", "producer_byte_rate=-1")


def test_the_java_producer_waits_as_it_is_told(lamina: Lamina) -> None:
    of_client = ("--entity-type", "clients", "--entity-name", "throttled")
    configs(lamina, *of_client, "--alter", "--add-config", "producer_byte_rate=100000")
    arguments = ("--topic", "throttled", "--num-records", "130", "--record-size", "10000", "--throughput", "-1")
    told = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *arguments,
        "--print-metrics",
        "--producer-props",
        f"bootstrap.servers={lamina.bootstrap}",
        "client.id=throttled",
    )
    assert "130 records sent" in told
    found = re.search(r"producer-metrics:produce-throttle-time-max:\{client-id=throttled\}\s*:\s*([0-9.]+)", told)
    assert found is not None, told
    assert float(found[1]) > 100
