"""Compaction end to end: a real broker with a real cleaning job, real clients, restarts and kills."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tests.broker.admin.asking import get
from tests.broker.process import BrokerProcess, eventually

START = Callable[..., BrokerProcess]
QUICKLY = ("--set", "log.cleaner.backoff.ms=50", "--set", "log.cleaner.min.cleanable.ratio=0.01")
RATE = "log.cleaner.io.max.bytes.per.second"
SLOWLY = f"{RATE}=1000"
KEYS = 50
SECONDS = 90


def make_topic(broker: BrokerProcess, name: str = "t", **configs: str) -> None:
    given = {"cleanup.policy": "compact", "internal.segment.bytes": "20000", "file.delete.delay.ms": "0"}
    given |= {config.replace("_", "."): value for config, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(name, 1, 1, config=given)])[name].result()


class Writing:
    """Writes to keys in turn until it is stopped; knows what the latest of each is."""

    def __init__(self, broker: BrokerProcess, model: dict[bytes, bytes | None]) -> None:
        self._producer = Producer(
            {"bootstrap.servers": broker.address, "linger.ms": 2, "enable.idempotence": True, "compression.type": "lz4"}
        )
        self._model = model
        self._stopping = Event()
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = len(self._model)
        while not self._stopping.wait(0.02):
            for _ in range(100):
                number += 1
                key = b"key-%d" % (number % KEYS)
                value = None if number % 97 == 0 else b"%d-" % time.time_ns() + b"x" * 60
                self._producer.produce("t", key=key, value=value, on_delivery=self._delivered)
            while self._producer.flush(0.1) and not self._stopping.is_set():
                pass
        self._producer.flush(10)

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self._model[message.key()] = message.value()  # type: ignore[attr-defined]

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def abandon(self) -> None:
        """Nobody will answer any more."""
        self._stopping.set()
        self._producer.purge()
        self._thread.join()


def read_all(broker: BrokerProcess, topic: str = "t") -> dict[bytes, bytes | None]:
    """The latest of each key, as a consumer finds it that begins at the start."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "unused", "enable.auto.commit": False})
    found: dict[bytes, bytes | None] = {}
    try:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
        consumer.assign([TopicPartition(topic, 0, 0)])
        while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None, message.error()
            key = message.key()
            assert isinstance(key, bytes)
            value = message.value()
            assert not isinstance(value, str)
            found[key] = value
            if (message.offset() or 0) >= end - 1:
                break
    finally:
        consumer.close()
    return found


def cleaned(broker: BrokerProcess) -> int:
    return int(get(broker, "/v1/cleaner")["passes"]["cleaned"])


def live(values: dict[bytes, bytes | None]) -> dict[bytes, bytes]:
    """Without tombstones: one whose time has come may be gone."""
    return {key: value for key, value in values.items() if value is not None}


def leftovers(broker: BrokerProcess) -> list[Path]:
    found = [*broker.log_dir.glob("*/*.cleaned"), *broker.log_dir.glob("*/*.swap")]
    return found + list(broker.log_dir.glob("*/.lamina-pass-*"))


@pytest.fixture
def quick(own_broker: START) -> Iterator[BrokerProcess]:
    broker = own_broker(*QUICKLY)
    make_topic(broker)
    yield broker
    assert not [line for line in broker.log if "Traceback" in line], broker.log


def test_a_topic_is_compacted_while_it_is_written_and_read(quick: BrokerProcess) -> None:
    model: dict[bytes, bytes | None] = {}
    writing = Writing(quick, model)
    try:
        eventually(lambda: cleaned(quick) >= 2, SECONDS)
        assert set(read_all(quick)) == {b"key-%d" % number for number in range(KEYS)}
    finally:
        writing.stop()
    assert live(read_all(quick)) == live(model)
    [row] = get(quick, "/v1/cleaner?topic=t")["partitions"]
    assert row["error"] is None
    told = get(quick, "/v1/cleaner/history?topic=t")["passes"]
    assert {one["outcome"] for one in told} == {"cleaned"}
    assert sum(one["dropped"]["superseded"] for one in told) > 0
    quick.restart()
    assert live(read_all(quick)) == live(model)
    quick.stop()
    assert leftovers(quick) == []


@pytest.mark.long
def test_a_broker_that_is_killed_in_the_middle_of_passes_loses_nothing(quick: BrokerProcess) -> None:
    """F8 and F9 of reliability.md, with real kills."""
    model: dict[bytes, bytes | None] = {}
    for round_number in range(3):
        writing = Writing(quick, model)
        eventually(lambda: any(row["phase"] for row in get(quick, "/v1/cleaner")["partitions"]), SECONDS)
        writing.stop()
        if round_number:
            eventually(lambda: cleaned(quick) > 0, SECONDS)
        quick.kill()
        quick.start()
        eventually(lambda: leftovers(quick) == [] or cleaned(quick) > 0, SECONDS)
        assert live(read_all(quick)) == live(model)
    eventually(lambda: cleaned(quick) > 0 or get(quick, "/v1/cleaner")["partitions"][0]["dirty_ratio"] == 0, SECONDS)
    assert live(read_all(quick)) == live(model)


def test_deleting_a_topic_while_it_is_cleaned_does_not_wait(own_broker: START) -> None:
    """Fact 29; F9: not more than ten seconds, whatever the job does."""
    broker = own_broker(*QUICKLY, "--set", SLOWLY)
    make_topic(broker)
    model: dict[bytes, bytes | None] = {}
    writing = Writing(broker, model)
    eventually(lambda: any(row["phase"] == "cleaning" for row in get(broker, "/v1/cleaner")["partitions"]), SECONDS)
    writing.stop()
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.delete_topics(["t"])["t"].result()
    assert get(broker, "/v1/cleaner")["partitions"] == []
    broker.stop()
    assert not [line for line in broker.log if "Traceback" in line], broker.log


def test_a_damaged_batch_makes_only_its_partition_uncleanable_and_is_shown(own_broker: START) -> None:
    """Facts 91 and 93: file, position and offset are named, and nothing is changed."""
    broker = own_broker("--set", "log.cleaner.backoff.ms=3600000")
    make_topic(broker, internal_segment_bytes="3000")
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0})
    for number in range(60):
        producer.produce("t", key=b"k%d" % (number % 5), value=b"v" * 50)
        producer.flush()
    broker.stop()
    first = broker.log_dir / "t-0" / f"{0:020d}.log"
    data = bytearray(first.read_bytes())
    data[100] ^= 1
    first.write_bytes(data)
    broker.start()
    eventually(lambda: get(broker, "/v1/cleaner")["passes"]["uncleanable"] > 0, SECONDS)
    [row] = get(broker, "/v1/cleaner")["partitions"]
    assert row["is_uncleanable"]
    assert f"{0:020d}.log is damaged at position 0" in row["error"]
    assert first.read_bytes() == bytes(data)
    assert leftovers(broker) == []


def job_of(broker: BrokerProcess) -> int | None:
    """The process that cleans for a broker."""
    for pid in Path(f"/proc/{broker.pid}/task/{broker.pid}/children").read_text().split():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"lamina.cleaning" in command:
            return int(pid)
    return None


def a_job_in_the_middle_of_a_pass(broker: BrokerProcess) -> int:
    """The process of a pass that does not end by itself, for it may only move a thousand bytes a second."""
    assert SLOWLY in broker.arguments
    eventually(lambda: any(row["phase"] == "cleaning" for row in get(broker, "/v1/cleaner")["partitions"]), SECONDS)
    eventually(lambda: job_of(broker) is not None, SECONDS)
    job = job_of(broker)
    assert job is not None
    return job


def clean_without_limit(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    entry = ConfigEntry(RATE, str(2**40), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()


def test_a_job_that_is_killed_costs_a_pass_and_is_tried_again(own_broker: START) -> None:
    """F9: the checkpoint stays, nobody calls the partition uncleanable, and the next attempt succeeds."""
    broker = own_broker(*QUICKLY, "--set", SLOWLY)
    make_topic(broker)
    model: dict[bytes, bytes | None] = {}
    writing = Writing(broker, model)
    victim = a_job_in_the_middle_of_a_pass(broker)
    writing.stop()
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: get(broker, "/v1/cleaner")["passes"]["failed"] > 0, SECONDS)
    assert cleaned(broker) == 0
    [row] = get(broker, "/v1/cleaner")["partitions"]
    assert not row["is_uncleanable"]
    clean_without_limit(broker)
    eventually(lambda: cleaned(broker) > 0, SECONDS)
    assert live(read_all(broker)) == live(model)


def test_a_job_ends_with_its_broker(own_broker: START) -> None:
    broker = own_broker(*QUICKLY, "--set", SLOWLY)
    make_topic(broker)
    writing = Writing(broker, {})
    job = a_job_in_the_middle_of_a_pass(broker)
    broker.kill()
    writing.abandon()
    eventually(lambda: not Path(f"/proc/{job}/cmdline").exists() or is_zombie(job), SECONDS)


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
