import threading
from typing import Any

import pytest

from lamina.broker.requests.handlers import create_partitions
from lamina.errors import ErrorCode
from lamina.image.changes import add_partitions
from tests.broker.in_process import InProcessBroker

API_KEY = 37


def more(broker: InProcessBroker, *topics: dict[str, Any], version: int = 3, validate_only: bool = False) -> Any:
    return broker.ask(API_KEY, version, topics=topics, validate_only=validate_only).results


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions_that_are_ready_and_stay(broker: InProcessBroker, version: int) -> None:
    broker.create("t")
    [added] = more(broker, {"name": "t", "count": 3, "assignments": None}, version=version)
    assert (added.name, added.error_code, added.error_message) == ("t", 0, None)
    assert broker.produce("t", 2, partition=2) == 0
    broker.restart()
    assert broker.produce("t", 1, partition=2) == 2


def test_new_partitions_may_be_assigned_by_hand(broker: InProcessBroker) -> None:
    broker.create("t")
    [added] = more(broker, {"name": "t", "count": 2, "assignments": [{"broker_ids": [1]}]})
    assert added.error_code == 0
    assert len(broker.parts.metadata.image.topics["t"].partitions) == 2


def test_validation_alone_adds_nothing(broker: InProcessBroker) -> None:
    broker.create("t")
    [added] = more(broker, {"name": "t", "count": 2, "assignments": None}, validate_only=True)
    assert added.error_code == 0
    assert len(broker.parts.metadata.image.topics["t"].partitions) == 1


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"name": "none", "count": 2}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"name": "t", "count": 2}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "t", "count": 1}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "t", "count": -1}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "t", "count": 20_000}, ErrorCode.POLICY_VIOLATION),
        ({"name": "t", "count": 4, "assignments": [{"broker_ids": [1]}]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "t", "count": 3, "assignments": [{"broker_ids": [9]}]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "t", "count": 3, "assignments": [{"broker_ids": []}]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_wrong_wish_gets_its_error_and_the_others_are_done(
    broker: InProcessBroker, topic: dict[str, Any], code: ErrorCode
) -> None:
    broker.create("t", partitions=2)
    broker.create("other")
    bad, good = more(broker, topic, {"name": "other", "count": 2})
    assert bad.error_code == code
    assert bad.error_message
    assert good.error_code == 0
    assert {name: len(topic.partitions) for name, topic in broker.parts.metadata.image.topics.items()} == {
        "t": 2,
        "other": 2,
    }


def test_a_topic_that_comes_twice_is_refused(broker: InProcessBroker) -> None:
    broker.create("t")
    [answer] = more(broker, {"name": "t", "count": 2}, {"name": "t", "count": 3})
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_all_topics_of_a_request_together_may_not_get_too_many(broker: InProcessBroker) -> None:
    broker.create("t")
    broker.create("u")
    both = more(broker, {"name": "t", "count": 6000}, {"name": "u", "count": 6000})
    assert [answer.error_code for answer in both] == [ErrorCode.POLICY_VIOLATION] * 2


def test_many_new_partitions_of_a_topic_are_placed_on_a_thread(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    added_on = []

    def spied(*given: Any) -> Any:
        added_on.append(threading.current_thread())
        return add_partitions(*given)

    monkeypatch.setattr(create_partitions, "add_partitions", spied)
    monkeypatch.setattr(create_partitions, "AT_ONCE", 2)
    broker.create("t")
    broker.create("u")
    both = more(broker, {"name": "t", "count": 4, "assignments": None}, {"name": "u", "count": 3, "assignments": None})
    assert [answer.error_code for answer in both] == [ErrorCode.NONE] * 2
    assert [thread is threading.current_thread() for thread in added_on] == [False, True]
