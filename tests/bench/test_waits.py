"""How long a steady producer waits, and what of what it was told is wrong."""

from typing import Any

import pytest

from bench import waits
from bench.waits import Acked, SteadyProducer, WrongRecords, longest_gap_seconds, lost_and_doubled


def acked(*found: tuple[int, int, float]) -> list[Acked]:
    return [Acked(partition, b"%d" % number, at_seconds) for partition, number, at_seconds in found]


def test_a_wait_is_the_longest_time_of_one_partition_between_two_acknowledgements() -> None:
    assert longest_gap_seconds(acked((0, 0, 1.0), (0, 2, 1.5), (0, 4, 1.75))) == 0.5


def test_partitions_that_go_on_do_not_shorten_the_wait_of_another() -> None:
    going_on = [(1, number, number / 10) for number in range(100)]
    assert longest_gap_seconds(acked((0, 100, 2.0), *going_on, (0, 101, 8.0))) == 6.0


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([b"0", b"1", b"2"], (0, 0)),
        ([b"0", b"2"], (1, 0)),
        ([b"0", b"1", b"1", b"1", b"2"], (0, 1)),
        # Never acknowledged, and there all the same: nobody was told anything wrong.
        ([b"0", b"1", b"2", b"3"], (0, 0)),
        ([], (3, 0)),
    ],
)
def test_records_that_are_not_there_are_told_from_those_that_are_there_twice(
    found: list[bytes], wrong: tuple[int, int]
) -> None:
    assert lost_and_doubled([b"0", b"1", b"2"], found) == wrong


class FakeClient:
    """Acknowledges nothing by itself."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> SteadyProducer:
    monkeypatch.setattr(waits, "Producer", FakeClient)
    return SteadyProducer("broker", "topic", 2)


class FakeMessage:
    def __init__(self, partition: int, value: bytes) -> None:
        self._partition = partition
        self._value = value

    def partition(self) -> int:
        return self._partition

    def value(self) -> bytes:
        return self._value


def test_a_producer_is_served_again_when_each_partition_has_taken_something_new(
    producer: SteadyProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer._sent = 10
    producer.acked += acked((0, 8, 0.0), (1, 9, 0.0))
    coming = acked((0, 7, 1.0), (1, 11, 1.0), (1, 13, 1.0), (0, 10, 1.0), (0, 12, 1.0))
    looks = 0

    def await_until(holds: Any, otherwise: str, seconds: float) -> None:
        nonlocal looks
        while not holds():
            looks += 1
            producer.acked.append(coming[looks - 1])

    monkeypatch.setattr(waits, "await_until", await_until)
    producer.await_all_partitions()
    assert looks == 4


def test_what_a_client_is_told_is_looked_for_in_the_log(
    producer: SteadyProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    message: Any = FakeMessage(1, b"0")
    producer._delivered(None, message)
    monkeypatch.setattr(waits, "read_all", lambda *_: {("topic", 1): {0: b"0"}})
    producer.check()
    monkeypatch.setattr(waits, "read_all", lambda *_: {})
    with pytest.raises(WrongRecords, match="of 1 acknowledged records 1 are lost"):
        producer.check()


def test_a_record_that_is_refused_is_told(producer: SteadyProducer) -> None:
    message: Any = FakeMessage(1, b"7")
    error: Any = "no"
    producer._delivered(error, message)
    with pytest.raises(WrongRecords, match="1 records were refused, one is b'7': no"):
        producer.check()


def test_a_producer_connects_again_soon_and_waits_for_all_in_sync(producer: SteadyProducer) -> None:
    client: Any = producer._producer
    assert client.config["reconnect.backoff.max.ms"] == 250
    assert client.config["enable.idempotence"] is True
