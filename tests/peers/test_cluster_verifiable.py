"""Kafka's verifiable producer and consumer while one of three Lamina brokers is killed and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.process import eventually
from tests.cluster.three_brokers import WAIT_SECONDS, ThreeBrokers
from tests.peers.tool_process import Event, ToolProcess

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

PARTITIONS = 3
COUNT = 8000
PER_SECOND = 400
BEFORE = 1500
"""Acknowledged when the broker is killed."""
RETRIES = "retries=2147483647\nenable.idempotence=true\n"

Place = tuple[int, int]
"""A partition and an offset in it."""


def values(events: list[Event]) -> dict[Place, int]:
    """By place; whoever is told of a place twice is told the same."""
    found: dict[Place, int] = {}
    for event in events:
        place = (event["partition"], event["offset"])
        assert found.setdefault(place, int(event["value"])) == int(event["value"]), place
    return found


def producing(brokers: ThreeBrokers, topic: str, *arguments: str) -> ToolProcess:
    where = ("--bootstrap-server", brokers.bootstrap, "--topic", topic, "--acks", "-1")
    amount = ("--max-messages", str(COUNT), "--throughput", str(PER_SECOND))
    return ToolProcess("org.apache.kafka.tools.VerifiableProducer", *where, *amount, *arguments)


def consuming(brokers: ThreeBrokers, topic: str, protocol: str) -> ToolProcess:
    where = ("--bootstrap-server", brokers.bootstrap, "--topic", topic, "--group-id", f"{topic}-group")
    options = ("--group-protocol", protocol, "--reset-policy", "earliest", "--verbose")
    return ToolProcess("org.apache.kafka.tools.VerifiableConsumer", *where, *options)


def hurt(brokers: ThreeBrokers, topic: str, producer: ToolProcess, consumer: ToolProcess, victim: str) -> None:
    """Kill the leader of a partition of ``victim`` while both work; it comes back before they are done."""
    producer.await_named("producer_send_success", BEFORE)
    consumer.await_named("record_data", BEFORE // 2)
    killed = brokers.leader(victim)
    brokers.kill(killed)
    brokers.await_leader(victim, other_than=killed)
    producer.await_named("producer_send_success", len(producer.named("producer_send_success")) + PER_SECOND)
    brokers.restart(killed)
    producer.await_end()
    brokers.await_in_sync(topic)


def verify(acked: dict[Place, int], consumer: ToolProcess) -> dict[Place, int]:
    """All that was acknowledged was read where it was told to be, and each partition from its start without a gap."""
    eventually(
        lambda: acked.keys() <= values(consumer.named("record_data")).keys(),
        WAIT_SECONDS,
        lambda: sorted(acked.keys() - values(consumer.named("record_data")).keys())[:10],
    )
    consumer.stop()
    consumed = values(consumer.named("record_data"))
    assert {place: consumed[place] for place in acked} == acked
    for partition in range(PARTITIONS):
        in_order = [event["offset"] for event in consumer.named("record_data") if event["partition"] == partition]
        # What was read and not committed may come again; what comes for the first time is the next one.
        assert list(dict.fromkeys(in_order)) == list(range(len(set(in_order)))), "not in order"
    return consumed


@pytest.mark.parametrize(
    ("protocol", "victim"),
    [("classic", "the topic"), ("consumer", "__consumer_offsets")],
    ids=["leader", "coordinator"],
)
def test_a_producer_that_tries_again_writes_everything_once_and_in_order(
    brokers: ThreeBrokers, topic: str, tmp_path: Path, protocol: str, victim: str
) -> None:
    brokers.create_topic(topic, PARTITIONS)
    (tmp_path / "producer.properties").write_text(RETRIES)
    retrying = ("--producer.config", str(tmp_path / "producer.properties"))
    with producing(brokers, topic, *retrying) as producer, consuming(brokers, topic, protocol) as consumer:
        hurt(brokers, topic, producer, consumer, topic if victim == "the topic" else victim)
        acked = values(producer.named("producer_send_success"))
        assert producer.named("producer_send_error") == []
        (summary,) = producer.named("tool_data")
        assert (summary["sent"], summary["acked"], len(acked)) == (COUNT, COUNT, COUNT)
        assert verify(acked, consumer) == acked, "nothing was written that was not acknowledged"
    for partition in range(PARTITIONS):
        numbers = [value for (where, _), value in sorted(acked.items()) if where == partition]
        assert numbers == sorted(numbers), "not in the order of sending"


def test_a_producer_that_never_tries_again_loses_nothing_that_was_acknowledged(
    brokers: ThreeBrokers, topic: str
) -> None:
    """The tool's own default. It is told of an error, or of a place where its record then is."""
    brokers.create_topic(topic, PARTITIONS)
    with producing(brokers, topic) as producer, consuming(brokers, topic, "classic") as consumer:
        hurt(brokers, topic, producer, consumer, topic)
        acked = values(producer.named("producer_send_success"))
        failed = producer.named("producer_send_error")
        assert len(acked) + len(failed) == COUNT
        print(f"{len(failed)} of {COUNT} records failed")
        consumed = verify(acked, consumer)
    assert set(consumed.values()) - set(acked.values()) <= {int(event["value"]) for event in failed}
