"""Planning topics for a cluster: from a broker's wish to an image, over all brokers that are registered."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.metadata import topic_creation
from lamina.broker.metadata.topic_creation import NewTopic, plan_topic
from lamina.errors import InvalidReplicationFactor
from lamina.image.changes import create_topic, register_broker
from lamina.image.image import Image
from tests.broker.in_process import InProcessBroker
from tests.image import steps


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    started = InProcessBroker(tmp_path, {"default.replication.factor": "2"})
    yield started
    started.close()


def with_brokers(count: int) -> Image:
    image = Image(steps.CLUSTER_ID)
    for broker_id in range(1, count + 1):
        image = register_broker(image, steps.broker(broker_id))
    return image


def plan(broker: InProcessBroker, image: Image, wanted: NewTopic) -> Image:
    parts = broker.parts
    planning = plan_topic(parts.metadata, parts.directories, image, wanted, parts.threads)
    return parts.loop.run_until_complete(planning)


def test_leaders_and_replicas_are_spread_over_all_brokers(broker: InProcessBroker) -> None:
    image = plan(broker, with_brokers(3), NewTopic("t", 30, 3))
    partitions = image.topics["t"].partitions
    assert Counter(partition.leader for partition in partitions) == {1: 10, 2: 10, 3: 10}
    assert all(sorted(partition.replicas) == [1, 2, 3] for partition in partitions)
    assert all(partition.isr == partition.replicas for partition in partitions)


def test_topics_do_not_all_begin_at_the_same_broker(broker: InProcessBroker) -> None:
    image = with_brokers(3)
    for number in range(60):
        image = plan(broker, image, NewTopic(f"t{number}", 1, 1))
    assert {topic.partitions[0].leader for topic in image.topics.values()} == {1, 2, 3}


def test_the_default_factor_needs_as_many_brokers(broker: InProcessBroker) -> None:
    """As in Kafka, it is not lowered where brokers are fewer."""
    assert len(plan(broker, with_brokers(2), NewTopic("t")).topics["t"].partitions[0].replicas) == 2
    with pytest.raises(InvalidReplicationFactor, match="1 is registered"):
        plan(broker, with_brokers(1), NewTopic("t"))


@pytest.mark.parametrize("assignments", [{}, dict.fromkeys(range(3), (1,))])
def test_many_partitions_of_a_topic_are_placed_on_a_thread(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, assignments: dict[int, tuple[int, ...]]
) -> None:
    made_on = []

    def spied(*given: Any) -> Image:
        made_on.append(threading.current_thread())
        return create_topic(*given)

    monkeypatch.setattr(topic_creation, "create_topic", spied)
    monkeypatch.setattr(topic_creation, "AT_ONCE", 2)
    count, factor = (-1, -1) if assignments else (3, 1)
    image = plan(broker, with_brokers(1), NewTopic("many", count, factor, assignments))
    image = plan(broker, image, NewTopic("few", 2, 1))
    assert [len(image.topics[name].partitions) for name in ("many", "few")] == [3, 2]
    assert [thread is threading.current_thread() for thread in made_on] == [False, True]
