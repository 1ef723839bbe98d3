"""The sender's producer, against a real broker."""

import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from lamina.client import topic as topics
from lamina.client.cluster import Cluster
from lamina.client.sender import Sender
from tests.broker.process import BrokerProcess


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def test_an_idempotent_producer_asks_for_its_id_before_the_first_record(broker: BrokerProcess, topic: str) -> None:
    """Left alone, librdkafka asks half a second after the start."""
    cluster = Cluster(broker.address, {"debug": "eos"})
    topics.create(cluster.admin(), topic)
    lines, log = Lines(), logging.getLogger("lamina.client.cluster.librdkafka")
    log.addHandler(lines)
    log.setLevel(logging.DEBUG)
    try:
        sender = Sender(cluster, topic, {"enable.idempotence": True})
        sender.serve()
    finally:
        log.removeHandler(lines)
        log.setLevel(logging.NOTSET)
    assert any("Acquiring ProducerId" in text for text in lines.texts)


class Late:
    """A producer whose records were given up; ``partitions`` is what a broker tells of them, if one answers."""

    def __init__(self, topic: str, partitions: Mapping[int, Any] | None) -> None:
        self.topic = topic
        self.partitions = partitions

    def flush(self, _seconds: float) -> int:
        return 0

    def list_topics(self, topic: str, timeout: float) -> Any:
        assert (topic, timeout < 10) == (self.topic, True)
        if self.partitions is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=self.partitions)})


def partition(leader: int, *isrs: int) -> Any:
    return SimpleNamespace(leader=leader, isrs=list(isrs))


@pytest.mark.parametrize(
    ("partitions", "late", "said"),
    [
        ({0: partition(1, 1, 2), 1: partition(1, 1)}, 1, "t-1 has 1 replica in sync and min.insync.replicas is 2"),
        ({0: partition(1, 1, 2), 1: partition(1)}, -1, "t-1 has 0 replicas in sync and min.insync.replicas is 2"),
        ({0: partition(-1, 1)}, 0, "t-0 has no leader"),
        (
            {0: partition(1, 1, 2), 1: partition(1, 1)},
            0,
            "`lamina topics describe t` shows who leads and who is in sync",
        ),
        (None, 0, "no broker answers now"),
    ],
)
def test_a_record_that_took_too_long_is_told_with_what_may_hold_it_up(
    broker: BrokerProcess, partitions: Mapping[int, Any] | None, late: int, said: str
) -> None:
    """librdkafka tells only that the time is over."""
    sender = Sender(Cluster(broker.address), "t", {"message.timeout.ms": 1500}, min_in_sync=2)
    sender._producer = Late("t", partitions)  # type: ignore[assignment]
    message = SimpleNamespace(partition=lambda: late)
    sender._delivered(0, 1, KafkaError(KafkaError._MSG_TIMED_OUT), message)  # type: ignore[arg-type]
    sender.finish(lambda: None)
    assert sender.deliveries.failure == f"it took longer than 1.5 s; {said}"
