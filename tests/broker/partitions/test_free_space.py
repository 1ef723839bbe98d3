"""A disk that is nearly full: writes stop before it is, and go on by themselves."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer

from lamina.broker.partitions.free_space import FreeSpace
from lamina.errors import ErrorCode, PolicyViolation
from lamina.log.files import Disk
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker, batch_of
from tests.broker.network.test_limits import set_on_broker
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient

MIN = 1000
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS, METADATA = 19, 20, 21, 37, 3


def test_before_it_was_measured_and_without_a_limit_there_is_room() -> None:
    room = FreeSpace("/logs")
    room.check(1 << 60)
    room.measured(0, 0, 0)
    room.check(1 << 60)
    assert not room.is_low


def test_without_a_limit_a_disk_that_is_more_than_full_is_not_low() -> None:
    room = FreeSpace("/logs")
    room.measured(10, 0, MIN)
    room.take(100)
    room.measured(10, 0, 0)
    assert not room.is_low
    room.measured(10, 0, 0)
    assert not room.is_low


def test_a_burst_between_two_measurements_stops_at_the_limit() -> None:
    room = FreeSpace("/logs")
    room.measured(MIN + 250, 0, MIN)
    for _ in range(2):
        room.check(100)
        room.take(100)
    with pytest.raises(PolicyViolation, match="/logs is nearly full: 1050 bytes are free"):
        room.check(100)
    assert room.is_low
    assert room.refused == 1
    with pytest.raises(PolicyViolation):
        room.check(1)


def test_what_is_appended_while_the_disk_is_asked_still_counts() -> None:
    room = FreeSpace("/logs")
    room.measured(MIN + 500, 0, MIN)
    room.take(100)
    taken_before = room.taken_bytes
    room.take(300)
    room.measured(MIN + 400, taken_before, MIN)
    assert room.free_bytes == MIN + 100


def test_it_is_low_until_a_tenth_more_is_free_and_says_so_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    room = FreeSpace("/logs")
    lows = []
    with caplog.at_level(logging.INFO):
        for free in (MIN, MIN - 1, MIN - 5, MIN, MIN + 99, MIN + 100, MIN + 5):
            room.measured(free, 0, MIN)
            lows.append(room.is_low)
    assert lows == [False, True, True, True, True, False, False]
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "999 bytes are free" in caplog.text
    assert "/logs has space again" in caplog.text


def test_a_limit_that_sinks_lets_writes_go_on() -> None:
    room = FreeSpace("/logs")
    room.measured(10, 0, MIN)
    room.measured(10, 0, 0)
    room.check(100)


def test_the_disk_tells_what_is_free(tmp_path: Path) -> None:
    assert Disk().free_bytes(str(tmp_path)) > 0


# A broker whose disk is a fake


@dataclass
class FakeRoom:
    broker: InProcessBroker
    free: dict[str, int]

    def measure(self, **free_bytes: int) -> None:
        self.free |= free_bytes
        loop = self.broker.parts.loop
        loop.run_until_complete(self.broker.parts.upkeep.measure_free_space(MIN))

    def produce(self, topic: str = "t", partition: int = 0) -> Any:
        data = {"index": partition, "records": batch_of(self.broker, 1)}
        topics = [{"name": topic, "partition_data": [data]}]
        answer = self.broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=topics)
        return answer.responses[0].partition_responses[0]

    def create(self, name: str) -> Any:
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
        return self.broker.ask(CREATE_TOPICS, 7, topics=[topic]).topics[0]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRoom]:
    free = {"a": 10 * MIN, "b": 10 * MIN}
    monkeypatch.setattr(Disk, "free_bytes", lambda _, path: free[path.rpartition("/")[2]])
    directories = f"{tmp_path}/a,{tmp_path}/b"
    broker = InProcessBroker(tmp_path / "data", {"log.dirs": directories, "lamina.disk.free.min.bytes": str(MIN)})
    yield FakeRoom(broker, free)
    broker.close()


def test_a_full_disk_refuses_what_is_produced_there_and_nothing_else(fake: FakeRoom) -> None:
    fake.broker.create("t", partitions=2)
    for partition in range(2):
        assert fake.produce(partition=partition).error_code == 0
    fake.measure(a=MIN - 1)
    outcomes = {partition: fake.produce(partition=partition) for partition in range(2)}
    codes = sorted(one.error_code for one in outcomes.values())
    assert codes == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]
    refused = next(one for one in outcomes.values() if one.error_code)
    assert "/a is nearly full" in refused.error_message
    fake.measure(a=2 * MIN)
    assert fake.produce(partition=refused.index).error_code == 0


def test_new_partitions_go_where_there_is_room(fake: FakeRoom) -> None:
    fake.measure(a=0)
    fake.broker.create("t", partitions=3)
    assert {directory.path[-1] for directory in fake.broker.parts.directories.of.values()} == {"b"}


def test_without_room_topics_are_neither_made_nor_enlarged(fake: FakeRoom) -> None:
    fake.broker.create("t")
    fake.measure(a=0, b=0)
    assert fake.create("new").error_code == ErrorCode.POLICY_VIOLATION
    more = fake.broker.ask(CREATE_PARTITIONS, 3, topics=[{"name": "t", "count": 2, "assignments": None}]).results[0]
    assert more.error_code == ErrorCode.POLICY_VIOLATION
    asked = fake.broker.ask(METADATA, 12, topics=[{"name": "auto"}], allow_auto_topic_creation=True).topics[0]
    assert asked.error_code == ErrorCode.POLICY_VIOLATION
    fake.measure(b=2 * MIN)
    assert fake.create("new").error_code == 0


def test_records_and_topics_are_deleted_without_room(fake: FakeRoom) -> None:
    fake.broker.create("t")
    fake.produce()
    fake.measure(a=0, b=0)
    deletion = [{"name": "t", "partitions": [{"partition_index": 0, "offset": 1}]}]
    assert fake.broker.ask(DELETE_RECORDS, 2, topics=deletion).topics[0].partitions[0].low_watermark == 1
    gone = fake.broker.ask(DELETE_TOPICS, 5, topic_names=["t"]).responses[0]
    assert gone.error_code == 0


def test_the_bytes_that_were_appended_count_until_the_disk_is_asked_again(fake: FakeRoom) -> None:
    fake.broker.create("t")
    size = len(batch_of(fake.broker, 1))
    fake.measure(a=MIN + 2 * size, b=MIN + 2 * size)
    assert [fake.produce().error_code for _ in range(4)] == [0, 0, *[ErrorCode.POLICY_VIOLATION] * 2]


def test_a_disk_that_cannot_say_what_is_free_has_failed(fake: FakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Disk, path: str) -> int:
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr(Disk, "free_bytes", broken)
    fake.measure()
    assert all(directory.failure is not None for directory in fake.broker.parts.directories)


# Real clients


@pytest.mark.parametrize("idempotent", [False, True])
def test_librdkafka_is_told_at_once_and_goes_on_when_there_is_room(
    own_broker: Callable[..., BrokerProcess], idempotent: bool
) -> None:
    broker = own_broker()
    delivered: list[KafkaError | None] = []

    def report(error: KafkaError | None, _: Message) -> None:
        delivered.append(error)

    producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": idempotent})

    def send() -> KafkaError | None:
        producer.produce("t", b"value", on_delivery=report)
        assert producer.flush(60) == 0
        return delivered[-1]

    with RawClient(broker) as raw:
        assert send() is None
        set_on_broker(raw, "lamina.disk.free.min.bytes", str(1 << 62))
        broker.wait_for_log("nothing is written")
        for _ in range(3):
            error = send()
            assert error is not None
            assert error.code() == KafkaError.POLICY_VIOLATION
            assert not error.fatal()
        topic = raw.create_topic("t")
        assert raw.fetch(topic, 0).records
        set_on_broker(raw, "lamina.disk.free.min.bytes", "0")
        broker.wait_for_log("writes go on")
        assert send() is None
        assert raw.list_offset("t", -1).offset == 2
