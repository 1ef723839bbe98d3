"""Kafka 4.1: DescribeTopicPartitionsRequestHandler (KIP-966)."""

from typing import Any
from uuid import UUID

import pytest

from lamina.broker.requests.authorized_operations import ALL_ON_TOPIC
from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY = 75


def ask(broker: InProcessBroker, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
    topics = [{"name": name} for name in names]
    return broker.ask(API_KEY, 0, topics=topics, response_partition_limit=limit, cursor=at)


def told(response: Any) -> list[tuple[str, list[int]]]:
    """Each topic with its partitions, none of which has an error."""
    assert {topic.error_code for topic in response.topics} <= {ErrorCode.NONE}
    return [(topic.name, [one.partition_index for one in topic.partitions]) for topic in response.topics]


def cursor_of(response: Any) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_a_topic_is_told_with_its_leaders_and_without_eligible_replicas_that_are_not_in_sync(
    broker: InProcessBroker,
) -> None:
    broker.create("t", 2)
    (topic,) = ask(broker, "t").topics
    assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, "t", False)
    assert topic.topic_id == UUID(bytes=broker.parts.metadata.image.topics["t"].id)
    assert topic.topic_authorized_operations == ALL_ON_TOPIC
    first = topic.partitions[0]
    assert (first.leader_id, first.replica_nodes, first.isr_nodes) == (1, (1,), (1,))
    assert (first.eligible_leader_replicas, first.last_known_elr, first.offline_replicas) == ((), (), ())


def test_topics_are_told_in_the_order_of_their_names_each_once(broker: InProcessBroker) -> None:
    broker.create("b")
    broker.create("a", 2)
    assert told(ask(broker, "b", "a", "b")) == [("a", [0, 1]), ("b", [0])]
    assert told(ask(broker)) == [("a", [0, 1]), ("b", [0])]


def test_a_topic_that_is_not_there_is_an_error_where_it_is_named(broker: InProcessBroker) -> None:
    broker.create("t")
    response = ask(broker, "none", "t", "not a name")
    assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in response.topics] == [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        ("not a name", ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
        ("t", ErrorCode.NONE, 1),
    ]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7])
def test_page_after_page_every_partition_is_told_once(broker: InProcessBroker, limit: int, named: bool) -> None:
    sizes = {"a": 3, "b": 1, "c": 2}
    for name, size in sizes.items():
        broker.create(name, size)
    found: list[tuple[str, int]] = []
    cursor = None
    while True:
        response = ask(broker, *(sizes if named else ()), limit=limit, cursor=cursor)
        page = [(name, index) for name, indexes in told(response) for index in indexes]
        found += page
        cursor = cursor_of(response)
        if cursor is None:
            break
        assert len(page) == limit
    assert found == [(name, index) for name, size in sizes.items() for index in range(size)]


def test_a_cursor_stands_at_the_next_partition_or_at_the_next_topic(broker: InProcessBroker) -> None:
    broker.create("a", 2)
    broker.create("b", 2)
    assert cursor_of(ask(broker, limit=1)) == ("a", 1)
    assert cursor_of(ask(broker, limit=2)) == ("b", 0)
    assert cursor_of(ask(broker, limit=4)) is None


def test_the_broker_has_a_limit_of_its_own_and_the_clients_is_at_least_1(broker: InProcessBroker) -> None:
    broker.restart(**{"max.request.partition.size.limit": "2"})
    broker.create("t", 3)
    assert told(ask(broker, "t")) == [("t", [0, 1])]
    assert told(ask(broker, "t", limit=0)) == told(ask(broker, "t", limit=-5)) == [("t", [0])]


def test_a_cursor_behind_the_last_partition_tells_of_none(broker: InProcessBroker) -> None:
    broker.create("a", 2)
    broker.create("b")
    response = ask(broker, cursor=("a", 9))
    assert told(response) == [("a", []), ("b", [0])]
    assert cursor_of(response) is None


@pytest.mark.parametrize("cursor", [("t", -1), ("s", 0), ("z", 0)])
def test_a_cursor_that_cannot_be_is_refused(broker: InProcessBroker, cursor: tuple[str, int]) -> None:
    broker.create("t")
    (topic,) = ask(broker, "t", cursor=cursor).topics
    assert (topic.name, topic.error_code) == ("t", ErrorCode.INVALID_REQUEST)


def test_a_partition_that_is_offline_has_no_leader(broker: InProcessBroker) -> None:
    broker.create("t", 2)
    broker.parts.partitions.failed("t", 1, OSError("a test"))
    (topic,) = ask(broker, "t").topics
    assert [(one.error_code, one.leader_id, one.offline_replicas) for one in topic.partitions] == [
        (ErrorCode.NONE, 1, ()),
        (ErrorCode.NONE, -1, (1,)),
    ]
