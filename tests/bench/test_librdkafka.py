"""What clients do in a measurement, and what of it is timed."""

from collections.abc import Sequence
from typing import Any

import pytest

from bench import librdkafka
from bench.librdkafka import consume_seconds, produce_together_seconds


class Story:
    """Clients that note what is asked of them; every call takes a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        self.now = 0.0
        monkeypatch.setattr("bench.librdkafka.time.perf_counter", lambda: self.now)
        monkeypatch.setattr(librdkafka, "Consumer", lambda config: FakeConsumer(self, config))
        monkeypatch.setattr(librdkafka, "Producer", lambda config: FakeProducer(self, config))
        self.configs: list[dict[str, Any]] = []

    def note(self, event: str) -> None:
        self.events.append(event)
        self.now += 1


class FakeMessage:
    def error(self) -> None:
        return None


class FakeConsumer:
    def __init__(self, story: Story, config: dict[str, Any]) -> None:
        self._story = story
        story.configs.append(config)
        story.note("open")

    def assign(self, partitions: Sequence[Any]) -> None:
        self._story.note("assign")

    def consume(self, count: int, seconds: float) -> list[FakeMessage]:
        self._story.note(f"consume {count}")
        return [FakeMessage()] * min(count, 6_000)

    def close(self) -> None:
        self._story.note("close")


class FakeProducer:
    def __init__(self, story: Story, config: dict[str, Any]) -> None:
        self._story = story
        self._number = len(story.configs)
        story.configs.append(config)

    def list_topics(self, topic: str, seconds: float) -> None: ...

    def produce_batch(self, topic: str, messages: Sequence[Any], partition: int) -> int:
        self._story.note(f"{self._number} sends {len(messages)} to {partition}")
        return len(messages)

    def flush(self, seconds: float) -> int:
        return 0


def test_every_pass_has_a_consumer_of_its_own_timed_from_its_first_message_to_its_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story(monkeypatch)
    seconds = consume_seconds("broker", "topic", 15_000, passes=2)
    once = ["open", "assign", "consume 1", "consume 10000", "consume 8999", "consume 2999", "close"]
    assert story.events == once * 2
    assert seconds == 3 * 2


def test_no_consumer_waits_long_at_the_end_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch)
    consume_seconds("broker", "topic", 1, passes=1)
    assert story.configs[0]["fetch.wait.max.ms"] == 10


@pytest.mark.parametrize(("is_idempotent", "acks"), [(False, 1), (True, "all")])
def test_several_producers_write_to_all_partitions(
    monkeypatch: pytest.MonkeyPatch, is_idempotent: bool, acks: object
) -> None:
    story = Story(monkeypatch)
    produce_together_seconds("broker", "topic", 10, 45_000, 2, 2, is_idempotent)
    assert story.events == [
        "0 sends 10000 to 0",
        "1 sends 10000 to 1",
        "0 sends 10000 to 1",
        "1 sends 10000 to 0",
        "0 sends 5000 to 0",
    ]
    assert [config["acks"] for config in story.configs] == [acks] * 2
