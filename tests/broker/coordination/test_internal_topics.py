"""The topics that a broker keeps for itself: how many replicas they get, and who is asked to make them."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lamina.broker.coordination.internal_topics import InternalTopics
from lamina.broker.metadata.topic_creation import NewTopic
from lamina.errors import (
    CoordinatorNotAvailable,
    InvalidReplicationFactor,
    KafkaError,
    NetworkError,
    TopicAlreadyExists,
)
from lamina.image.topic import CONSUMER_OFFSETS, Topic
from lamina.settings.groups import OFFSETS_TOPIC_REPLICATION_FACTOR
from lamina.settings.transactions import TRANSACTION_STATE_LOG_MIN_ISR
from tests.broker.in_process import InProcessBroker


class Controller:
    """Whoever decides that a topic is made; this broker's image does not show it yet."""

    def __init__(self) -> None:
        self.asked: list[NewTopic] = []
        self.in_flight = 0
        self.error: KafkaError | None = None

    async def create(self, topics: Sequence[NewTopic]) -> Mapping[str, Topic | KafkaError]:
        self.asked += topics
        self.in_flight += 1
        assert self.in_flight == 1, "one at a time"
        await asyncio.sleep(0)
        self.in_flight -= 1
        if isinstance(self.error, NetworkError):
            raise self.error
        return {topic.name: self.error or Topic(topic.name, b"", ()) for topic in topics}


@pytest.mark.parametrize(
    ("is_alone", "given", "factor", "min_isr"),
    [(True, {}, 1, 1), (False, {}, 3, 2), (True, {"offsets.topic.replication.factor": "2"}, 2, 1)],
)
def test_a_lone_broker_makes_one_replica_unless_told_a_cluster_as_many_as_configured(
    tmp_path: Path, is_alone: bool, given: dict[str, str], factor: int, min_isr: int
) -> None:
    broker = InProcessBroker(tmp_path, given)
    controller = Controller()
    topics = InternalTopics(broker.parts.metadata, controller.create, is_alone=is_alone)
    broker.parts.loop.run_until_complete(
        topics.create(CONSUMER_OFFSETS, 50, OFFSETS_TOPIC_REPLICATION_FACTOR, {"cleanup.policy": "compact"})
    )
    assert topics.copies(TRANSACTION_STATE_LOG_MIN_ISR) == min_isr
    broker.close()
    expected = NewTopic(CONSUMER_OFFSETS, 50, factor, configs={"cleanup.policy": "compact"})
    assert controller.asked == [expected]


def test_those_who_need_a_topic_at_once_ask_for_it_one_after_the_other(tmp_path: Path) -> None:
    broker = InProcessBroker(tmp_path, {})
    controller = Controller()
    topics = InternalTopics(broker.parts.metadata, controller.create, is_alone=False)

    async def many() -> None:
        await asyncio.gather(
            *(topics.create(CONSUMER_OFFSETS, 1, OFFSETS_TOPIC_REPLICATION_FACTOR, {}) for _ in range(3))
        )

    broker.parts.loop.run_until_complete(many())
    broker.close()
    assert len(controller.asked) == 3, "the image does not show it yet"


@pytest.mark.parametrize(
    ("is_alone", "error", "told"),
    [
        (True, InvalidReplicationFactor("too many"), InvalidReplicationFactor),
        (False, InvalidReplicationFactor("others are away"), CoordinatorNotAvailable),
        (False, TopicAlreadyExists("made by another broker"), None),
        (False, CoordinatorNotAvailable("no controller"), CoordinatorNotAvailable),
        (False, NetworkError("no answer"), CoordinatorNotAvailable),
    ],
)
def test_what_a_client_is_told_where_the_topic_is_not_made(
    tmp_path: Path, is_alone: bool, error: KafkaError, told: type[KafkaError] | None
) -> None:
    """In a cluster all of it may pass: clients shall ask again (R74)."""
    broker = InProcessBroker(tmp_path, {})
    controller = Controller()
    controller.error = error
    topics = InternalTopics(broker.parts.metadata, controller.create, is_alone=is_alone)
    creating = topics.create(CONSUMER_OFFSETS, 1, OFFSETS_TOPIC_REPLICATION_FACTOR, {})
    try:
        if told is None:
            broker.parts.loop.run_until_complete(creating)
        else:
            with pytest.raises(told):
                broker.parts.loop.run_until_complete(creating)
    finally:
        broker.close()
