"""Kafka Streams over three Lamina brokers, exactly once, while those it depends on are killed one after another."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from tests.broker.process import eventually
from tests.cluster.three_brokers import WAIT_SECONDS, ThreeBrokers
from tests.peers.kafka import JAVA_DIRECTORY, QUIET, streams_jars

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

LINES = ["the broker writes the log", "the reader reads the log", "a log is a log is a log", "the end"] * 100
"""What is sent in each round."""
IN_A_ROUND = Counter(word for line in LINES for word in line.split(" "))


class CountsReader:
    """Everything that is committed in the topic of counts, in order: for each word the numbers it was given."""

    def __init__(self, brokers: ThreeBrokers, topic: str) -> None:
        self.counts: dict[str, list[int]] = {}
        self.total = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": brokers.bootstrap,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def close(self) -> None:
        self._consumer.close()

    def read_to(self, total: int) -> bool:
        """What came meanwhile; whether so many counts are there."""
        for message in self._consumer.consume(1000, 0.2):
            error = message.error()
            assert error is None or error.retriable() or error.code() < KafkaError.UNKNOWN, error
            if error is None:
                self.counts.setdefault((message.key() or b"").decode(), []).append(int(message.value() or b""))
                self.total += 1
        return self.total >= total


@contextmanager
def word_count(brokers: ThreeBrokers, directory: Path, lines: str, counts: str) -> Iterator[None]:
    """Without a cache every word of a line is one record of the output; all that Streams makes has three copies."""
    command = ["java", "-Xmx256M", *QUIET, "-cp", streams_jars()]
    command += [
        str(JAVA_DIRECTORY / "streams/WordCount.java"),
        brokers.bootstrap,
        str(directory / "state"),
        lines,
        counts,
    ]
    command += ["replication.factor=3", "statestore.cache.max.bytes=0"]
    with (directory / "streams.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as streams:
        try:
            yield
            assert streams.poll() is None, (directory / "streams.log").read_text()
        finally:
            streams.kill()


def send_round(brokers: ThreeBrokers, topic: str) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number, line in enumerate(LINES):
        producer.produce(topic, line.encode(), str(number).encode())
    assert producer.flush(WAIT_SECONDS) == 0


def test_every_word_is_counted_exactly_once_though_coordinators_and_leaders_are_killed(
    brokers: ThreeBrokers, topic: str, tmp_path: Path
) -> None:
    lines, counts = f"{topic}-lines", f"{topic}-counts"
    brokers.create_topic(lines, 2)
    brokers.create_topic(counts)
    reader = CountsReader(brokers, counts)
    rounds = 0
    with word_count(brokers, tmp_path, lines, counts):
        for victim in ("__transaction_state", "__consumer_offsets", counts, lines):
            send_round(brokers, lines)
            rounds += 1
            # It dies while words of this round are counted.
            wanted = IN_A_ROUND.total() * rounds - IN_A_ROUND.total() // 2
            eventually(lambda wanted=wanted: reader.read_to(wanted), 180, lambda: reader.total)  # type: ignore[misc]
            killed = brokers.leader(victim)
            brokers.kill(killed)
            send_round(brokers, lines)
            rounds += 1
            brokers.await_leader(victim, other_than=killed)
            brokers.restart(killed)
            wanted = IN_A_ROUND.total() * rounds
            eventually(lambda wanted=wanted: reader.read_to(wanted), 180, lambda: reader.total)  # type: ignore[misc]
            brokers.await_in_sync(counts)
    reader.read_to(IN_A_ROUND.total() * rounds + 1)
    reader.close()
    assert reader.counts == {word: list(range(1, count * rounds + 1)) for word, count in IN_A_ROUND.items()}
    internal = {name for name in brokers.topic_names() if name.startswith("word-count-")}
    assert {name.rpartition("-")[2] for name in internal} == {"changelog", "repartition"}
    for name in internal:
        brokers.await_in_sync(name)
