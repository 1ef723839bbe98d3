"""The sender's producer, against a real broker."""

import logging

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
