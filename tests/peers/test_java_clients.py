"""Kafka's own Java clients against Lamina: the admin client, the default idempotent producer, an assigned consumer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.peers.driver import Driver, DriverError, Record
from tests.peers.kafka import driver_of
from tests.peers.lamina import Lamina

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

RECORDS = [
    Record(b"key", b"value", 1_700_000_000_000, (("name", b"content"), ("empty", None))),
    Record(None, b"no key", 1_700_000_000_001),
    Record(b"tombstone", None, 1_700_000_000_002),
    Record("schlüssel".encode(), bytes(range(256)) * 20, 1_700_000_000_003),
]


@pytest.fixture(scope="module")
def driver(lamina: Lamina) -> Iterator[Driver]:
    with driver_of(lamina.bootstrap) as connected:
        yield connected


def test_a_topic_has_the_id_the_partitions_and_the_configs_that_it_was_made_with(driver: Driver) -> None:
    topic_id = driver.create_topic("made", {"retention.ms": "3600000", "cleanup.policy": "compact,delete"}, 3)
    described = driver.describe_topic("made")
    assert described.topic_id == topic_id
    assert described.partitions == 3
    assert described.configs == {"retention.ms": "3600000", "cleanup.policy": "compact,delete"}


def test_a_topic_cannot_be_made_twice(driver: Driver) -> None:
    driver.create_topic("twice")
    with pytest.raises(DriverError, match="TopicExistsException"):
        driver.create_topic("twice")


def test_a_changed_config_is_read_back(driver: Driver) -> None:
    driver.create_topic("changed")
    driver.configure_topic("changed", {"max.message.bytes": "4096"})
    assert driver.describe_topic("changed").configs == {"max.message.bytes": "4096"}
    driver.open_producer("large", {})
    with pytest.raises(DriverError, match="RecordTooLargeException"):
        driver.send("large", "changed", [Record(None, bytes(5000))])


def test_an_impossible_config_is_refused(driver: Driver) -> None:
    with pytest.raises(DriverError, match="InvalidConfigurationException"):
        driver.create_topic("impossible", {"retention.ms": "soon"})


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_default_producer_is_idempotent_and_a_consumer_reads_what_it_sent(driver: Driver, codec: str) -> None:
    topic = f"sent-{codec}"
    driver.create_topic(topic)
    driver.open_producer(topic, {"compression.type": codec, "linger.ms": "100"})
    assert driver.send(topic, topic, RECORDS) == [0, 1, 2, 3]
    assert driver.send(topic, topic, RECORDS) == [4, 5, 6, 7]
    view = driver.read(topic, 0, "read_uncommitted")
    assert (view.start_offset, view.end_offset) == (0, 8)
    assert [stored.offset for stored in view.records] == list(range(8))
    assert [stored.record for stored in view.records] == RECORDS * 2
    assert driver.read(topic, 0, "read_committed") == view


@pytest.mark.parametrize("acks", ["0", "1"])
def test_fewer_acknowledgements_without_idempotence(driver: Driver, acks: str) -> None:
    topic = f"acks-{acks}"
    driver.create_topic(topic)
    driver.open_producer(topic, {"acks": acks, "enable.idempotence": "false"})
    driver.send(topic, topic, RECORDS)
    driver.close_producer(topic)
    view = driver.read(topic, 0, "read_uncommitted")
    assert [stored.record for stored in view.records] == RECORDS


def test_deleted_records_are_gone(driver: Driver) -> None:
    driver.create_topic("shortened")
    driver.open_producer("shortened", {})
    driver.send("shortened", "shortened", RECORDS)
    driver.delete_records("shortened", 0, 3)
    view = driver.read("shortened", 0, "read_uncommitted")
    assert view.start_offset == 3
    assert [stored.record for stored in view.records] == RECORDS[3:]


def test_an_unknown_partition_fails_in_the_client(driver: Driver) -> None:
    driver.create_topic("one")
    driver.open_producer("stray", {"max.block.ms": "1000", "delivery.timeout.ms": "1500", "request.timeout.ms": "1000"})
    with pytest.raises(DriverError, match="TimeoutException"):
        driver.send("stray", "one", RECORDS, partition=5)
