"""Reassignments on a node that is the whole cluster: as Kafka with one broker answers."""

from typing import Any

import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

ALTER, LIST = 45, 46


def reassign(broker: InProcessBroker, index: int, replicas: list[int] | None, topic: str = "t") -> int:
    partitions = [{"partition_index": index, "replicas": replicas}]
    response = broker.ask(ALTER, 1, topics=[{"name": topic, "partitions": partitions}])
    assert (response.error_code, response.responses[0].name) == (ErrorCode.NONE, topic)
    return int(response.responses[0].partitions[0].error_code)


@pytest.mark.parametrize(
    ("index", "replicas", "code"),
    [
        (0, [1], ErrorCode.NONE),
        (0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [1, 2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (1, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_the_only_broker_keeps_what_it_has_r69(
    broker: InProcessBroker, index: int, replicas: list[int] | None, code: ErrorCode
) -> None:
    broker.create("t")
    assert reassign(broker, index, replicas) == code
    assert broker.produce("t", 1) == 0


def test_a_topic_that_is_not_there(broker: InProcessBroker) -> None:
    assert reassign(broker, 0, [1], topic="no") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("topics", [None, [], [{"name": "t", "partition_indexes": [0, 7]}]])
def test_nothing_is_under_way(broker: InProcessBroker, topics: list[dict[str, Any]] | None) -> None:
    broker.create("t")
    response = broker.ask(LIST, 0, topics=topics)
    assert (response.error_code, response.topics) == (ErrorCode.NONE, ())
