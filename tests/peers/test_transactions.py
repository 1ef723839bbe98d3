"""Kafka's own transactional producers, tools and Streams against Lamina, and Lamina on what Kafka left open."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.process import COMMAND, BrokerProcess
from tests.peers.driver import Driver, DriverError, Record
from tests.peers.kafka import JAVA_DIRECTORY, QUIET, Kafka, driver_of, dump_segments, run_tool, streams_jars

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

LINES = ["the broker writes the log", "the reader reads the log", "a log is a log is a log", "the end"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("lamina") / "data") as process:
        yield process
    assert "Traceback" not in "\n".join(process.log)


@pytest.fixture(scope="module")
def driver(broker: BrokerProcess) -> Iterator[Driver]:
    with driver_of(broker.address) as connected:
        yield connected


def values(*texts: str) -> list[Record]:
    return [Record(None, text.encode()) for text in texts]


def read(driver: Driver, topic: str) -> list[bytes | None]:
    return [stored.record.value for stored in driver.read(topic, 0, "read_committed").records]


def requests(broker: BrokerProcess) -> dict[tuple[str, int], float]:
    """How many there were, by API and version."""
    with urllib.request.urlopen(f"{broker.facts['admin'][0]['url']}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r'^lamina_requests_total\{api="(\w+)",version="(\d+)"\} (\S+)', text, re.MULTILINE)
    return {(api, int(version)): float(count) for api, version, count in found}


def transact(driver: Driver, topic: str) -> None:
    """Commits and aborts in turn, with offsets."""
    driver.create_topic(topic)
    driver.open_producer(topic, {"transactional.id": topic})
    for number in range(4):
        driver.begin(topic)
        driver.send(topic, topic, values(f"{number}.0", f"{number}.1"))
        driver.send_offsets(topic, f"{topic}-group", topic, 0, number)
        if number % 2:
            driver.abort(topic)
        else:
            driver.commit(topic)
    driver.close_producer(topic)
    assert read(driver, topic) == [b"0.0", b"0.1", b"2.0", b"2.1"]


def test_java_producers_speak_transaction_version_2(broker: BrokerProcess, driver: Driver) -> None:
    transact(driver, "second")
    asked = requests(broker)
    assert asked[("Produce", 13)] >= 4
    assert asked[("EndTxn", 5)] == 4
    assert asked[("TxnOffsetCommit", 5)] == 4
    assert not any(api in ("AddPartitionsToTxn", "AddOffsetsToTxn") for api, _ in asked)


def test_java_producers_speak_the_classic_protocol_where_the_level_is_1(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        features = ("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", broker.address)
        run_tool(*features, "downgrade", "--feature", "transaction.version=1")
        with driver_of(broker.address) as driver:
            transact(driver, "first")
        asked = requests(broker)
        assert {"AddPartitionsToTxn", "AddOffsetsToTxn"} <= {api for api, _ in asked}
        assert sum(count for (api, version), count in asked.items() if api == "EndTxn" and version < 5) == 4


def test_a_java_zombie_is_fenced(driver: Driver) -> None:
    driver.create_topic("zombie")
    for name in ("zombie", "heir"):
        driver.open_producer(name, {"transactional.id": "haunted"})
        driver.begin(name)
        if name == "zombie":
            driver.send(name, "zombie", values("from the dead"))
    driver.send("heir", "zombie", values("alive"))
    driver.commit("heir")
    with pytest.raises(DriverError, match=r"ProducerFenced|InvalidProducerEpoch"):
        driver.commit("zombie")
    assert read(driver, "zombie") == [b"alive"]


def test_kafka_transactions_lists_and_describes(broker: BrokerProcess, driver: Driver) -> None:
    driver.create_topic("described")
    driver.open_producer("described", {"transactional.id": "described"})
    driver.begin("described")
    driver.send("described", "described", values("open"))

    def tool(*arguments: str) -> list[list[str]]:
        command = ("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", broker.address)
        return [line.split() for line in run_tool(*command, *arguments).splitlines()]

    (listed,) = [line for line in tool("list") if line[0] == "described"]
    assert listed[-1] == "Ongoing"
    described = tool("describe", "--transactional-id", "described")
    assert described[0][:2] == ["CoordinatorId", "TransactionalId"]
    assert described[1][1] == "described"
    assert described[1][-1] == "described-0"
    assert tool("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")[1:] == []
    driver.abort("described")


def test_kafkas_tool_reads_the_state_log_and_the_markers(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", "--set", "transaction.state.log.num.partitions=1") as broker:
        with driver_of(broker.address) as driver:
            transact(driver, "dumped")
        broker.stop()
        state = broker.log_dir / "__transaction_state-0/00000000000000000000.log"
        dumped = dump_segments(state, options=("--transaction-log-decoder", "--deep-iteration"))
        assert '"transactionalId":"dumped"' in dumped
        statuses = re.findall(r'"transactionStatus":(\d)', dumped)
        ended = {"2": "commit", "3": "abort", "4": "committed", "5": "aborted"}
        assert [ended[status] for status in statuses if status in ended] == [
            "commit",
            "committed",
            "abort",
            "aborted",
        ] * 2
        assert "Could not" not in dumped
        markers = dump_segments(broker.log_dir / "dumped-0/00000000000000000000.log", options=("--deep-iteration",))
        assert (markers.count("endTxnMarker: COMMIT"), markers.count("endTxnMarker: ABORT")) == (2, 2)
        broker.start()


def test_what_a_real_kafka_left_open_is_open_here_and_ends(tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "kafka")
    with kafka, driver_of(kafka.bootstrap) as driver:
        driver.create_topic("left")
        driver.open_producer("done", {"transactional.id": "done"})
        driver.begin("done")
        driver.send("done", "left", values("committed"))
        driver.commit("done")
        driver.open_producer("open", {"transactional.id": "open"})
        driver.begin("open")
        driver.send("open", "left", values("open"))
        kafka.stop()
    data = tmp_path / "data"
    adopting = [*COMMAND, "adopt", "--data-dir", str(data), str(kafka.data_directory)]
    adopted = subprocess.run(adopting, capture_output=True, text=True)
    assert adopted.returncode == 0, adopted.stderr
    with BrokerProcess(data) as broker, driver_of(broker.address) as driver:
        view = driver.read("left", 0, "read_committed")
        assert ([stored.record.value for stored in view.records], view.end_offset) == ([b"committed"], 2)
        driver.open_producer("open", {"transactional.id": "open"})
        driver.begin("open")
        driver.send("open", "left", values("after"))
        driver.commit("open")
        assert read(driver, "left") == [b"committed", b"after"]


def wait_for(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.5)


def test_a_streams_word_count_with_exactly_once_agrees_with_a_plain_count(tmp_path: Path) -> None:
    """Streams is killed half way, and goes on."""
    lines = LINES * 100
    wanted = Counter(word for line in lines for word in line.split(" "))
    sent = 0
    with BrokerProcess(tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        topics = [NewTopic("lines", 2, 1), NewTopic("counts", 1, 1)]
        for made in admin.create_topics(topics).values():
            made.result(30)
        command = ["java", "-Xmx256M", *QUIET, "-cp", streams_jars()]
        command += [str(JAVA_DIRECTORY / "streams/WordCount.java"), broker.address, str(tmp_path / "state")]
        command += ["lines", "counts"]
        with (tmp_path / "streams.log").open("wb") as log:
            for half in (lines[:200], lines[200:]):
                with subprocess.Popen(command, stdout=log, stderr=log) as streams:
                    try:
                        producer = Producer({"bootstrap.servers": broker.address})
                        for number, line in enumerate(half):
                            producer.produce("lines", line.encode(), str(number).encode())
                        assert producer.flush(30) == 0
                        sent += sum(len(line.split(" ")) for line in half)
                        wait_for(lambda wanted_sum=sent: sum(counts(broker).values()) >= wanted_sum, 180)  # type: ignore[misc]
                    finally:
                        streams.kill()
        assert counts(broker) == wanted


def counts(broker: BrokerProcess) -> Counter[str]:
    """The last count of each word that was committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("counts", 0, OFFSET_BEGINNING)])
    found: Counter[str] = Counter()
    try:
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                return found
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            found[key.decode()] = int(value)
    finally:
        consumer.close()
