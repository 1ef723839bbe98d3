"""A producer that brokers are too slow for holds back, so that what it has sent is answered."""

from itertools import count
from typing import Any

import pytest

from tests.broker.process import eventually
from tests.cluster import verifiable_producer
from tests.cluster.verifiable_producer import VerifiableProducer


class SilentProducer:
    """Takes records, and answers none before it is told to."""

    def __init__(self, _: dict[str, Any]) -> None:
        self.unanswered: list[Any] = []
        self.answers = False

    def poll(self, _: float) -> None:
        while self.answers and self.unanswered:
            self.unanswered.pop(0)(None, Answered())

    def flush(self, _: float) -> None:
        self.answers = True
        self.poll(0)

    def produce(self, *_: object, on_delivery: Any, **__: object) -> None:
        self.unanswered.append(on_delivery)


class Answered:
    def offset(self) -> int:
        return 0


def test_nothing_is_sent_while_a_record_waits_longer_than_the_producers_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verifiable_producer, "Producer", SilentProducer)
    seconds = count()
    with VerifiableProducer(
        "nowhere:1", "t", now_ms=lambda: next(seconds) * 1000.0, per_second=10, patience_seconds=60
    ) as producer:
        eventually(lambda: producer.was_held_back)
        sent = producer.sent
        passed = next(seconds)
        eventually(lambda: next(seconds) > passed + 100)
        assert producer.sent == sent
        producer._producer.answers = True  # type: ignore[attr-defined]
        eventually(lambda: producer.sent > sent)
    assert producer.acked_count == producer.sent
