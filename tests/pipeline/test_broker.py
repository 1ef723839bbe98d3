"""A real broker with a real Spark engine: a topic is compacted, and a killed broker leaves no Java behind."""

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker.process import BrokerProcess
from tests.broker.test_compaction import make_topic, read_all
from tests.pipeline.engines import processes_of, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SETTINGS = (
    "--set",
    "lamina.spark.master=local[2]",
    "--set",
    "log.cleaner.backoff.ms=50",
    "--set",
    "log.cleaner.min.cleanable.ratio=0.01",
)
KEYS = 50


def test_a_broker_has_its_topics_compacted_by_spark_and_takes_it_along_when_it_is_killed(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data", *SETTINGS).start()
    try:
        make_topic(broker)
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 5})
        latest: dict[bytes, bytes | None] = {}
        for number in range(5000):
            key, value = b"key-%d" % (number % KEYS), b"%d" % number + b"x" * 60
            latest[key] = value
            producer.produce("t", key=key, value=value)
            if number % 500 == 499:
                # Batches smaller than a segment: one that holds everything would stay active.
                assert producer.flush(60) == 0
        partition = tmp_path / "data" / "logs" / "t-0"
        before = total_bytes(partition)
        wait_until(lambda: total_bytes(partition) < before // 2)
        assert read_all(broker) == latest
        assert processes_of(tmp_path, "SparkSubmit")
    finally:
        broker.kill()
    wait_until(lambda: not processes_of(tmp_path))


def total_bytes(partition: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(partition) if entry.name.endswith(".log"))
