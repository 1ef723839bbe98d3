"""Requests of thousands of names by users with few rights: however many are denied, no turn of the loop is long."""

import asyncio
import itertools
import threading
from typing import Any

import pytest

from lamina.broker.requests.authorization import authorizer as authorizer_module
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.handlers import metadata
from lamina.security.acls import Operation, PatternType, ResourceType
from lamina.wire.building import Shape
from tests.broker.requests.authorization.world import ALICE, CLUSTER, GROUP, ROOT, TOPIC, TRANSACTIONAL_ID, World

COUNT = 3000
MOST_STEPS = 600
"""Decisions and structures of an answer: each takes a few microseconds."""
NAMES = [f"none-{number}" for number in range(COUNT)]
INDEXES = range(COUNT)
EACH_PARTITION: list[dict[str, Any]] = [{"partition": index, "partition_index": index} for index in INDEXES]


def each_topic(**facts: Any) -> list[dict[str, Any]]:
    one = {"partition": 0, "partition_index": 0, "index": 0, "timestamp": -1, "records": b""}
    return [{"name": name, "topic": name, "partitions": [one], "partition_data": [one], **facts} for name in NAMES]


def one_topic(**facts: Any) -> list[dict[str, Any]]:
    return [{"name": "none", "topic": "none", "partitions": EACH_PARTITION, **facts}]


INDEXED = [{"name": name, "partition_indexes": [0]} for name in NAMES]
ONE_INDEXED = [{"name": "none", "partition_indexes": INDEXES}]
OF_GROUP = (Operation.ALL, GROUP, "*")
OF_ID = (Operation.ALL, TRANSACTIONAL_ID, "*")
OF_TOPICS = (Operation.ALL, TOPIC, "none-")
"""By its prefix."""
REQUESTS: dict[str, tuple[int, int, dict[str, Any], list[tuple[Operation, ResourceType, str]]]] = {
    "ListOffsets": (2, 5, {"topics": each_topic()}, []),
    "ListOffsets of one topic": (2, 5, {"topics": one_topic()}, []),
    "OffsetCommit": (8, 8, {"group_id": "g", "topics": each_topic()}, [OF_GROUP]),
    "OffsetCommit of one topic": (8, 8, {"group_id": "g", "topics": one_topic()}, [OF_GROUP]),
    "OffsetFetch": (9, 7, {"group_id": "g", "topics": INDEXED}, [OF_GROUP]),
    "OffsetFetch of one topic": (9, 7, {"group_id": "g", "topics": ONE_INDEXED}, [OF_GROUP]),
    "OffsetFetch of a group that is denied": (9, 7, {"group_id": "g", "topics": ONE_INDEXED}, []),
    "OffsetFetch of groups": (9, 8, {"groups": [{"group_id": "g", "topics": INDEXED}]}, [OF_GROUP]),
    "OffsetFetch of groups that are denied": (9, 8, {"groups": [{"group_id": name} for name in NAMES]}, []),
    "OffsetDelete": (47, 0, {"group_id": "g", "topics": each_topic()}, [OF_GROUP]),
    "FindCoordinator": (10, 4, {"key_type": 0, "coordinator_keys": NAMES}, []),
    "DescribeGroups": (15, 5, {"groups": NAMES}, []),
    "DescribeGroups that are allowed": (
        15,
        5,
        {"groups": NAMES, "include_authorized_operations": True},
        [OF_GROUP],
    ),
    "ConsumerGroupDescribe": (69, 1, {"group_ids": NAMES}, []),
    "ConsumerGroupHeartbeat": (
        68,
        1,
        {"group_id": "g", "member_id": "m", "rebalance_timeout": 1000, "subscribed_topic_names": NAMES},
        [OF_GROUP, OF_TOPICS],
    ),
    "DeleteGroups": (42, 2, {"groups_names": NAMES}, []),
    "DeleteTopics": (20, 6, {"topics": [{"name": name} for name in NAMES]}, []),
    "DeleteRecords": (21, 2, {"topics": each_topic()}, []),
    "CreateTopics": (19, 7, {"topics": [{"name": name, "num_partitions": 1} for name in NAMES]}, []),
    "CreatePartitions": (37, 3, {"topics": [{"name": name, "count": 2} for name in NAMES]}, []),
    "OffsetForLeaderEpoch": (23, 4, {"topics": each_topic()}, []),
    "DescribeProducers of one topic": (61, 0, {"topics": ONE_INDEXED}, []),
    "AddPartitionsToTxn": (
        24,
        3,
        {
            "v3_and_below_transactional_id": "x",
            "v3_and_below_topics": [{"name": name, "partitions": [0]} for name in NAMES],
        },
        [OF_ID],
    ),
    "AddPartitionsToTxn of one topic": (
        24,
        3,
        {"v3_and_below_transactional_id": "x", "v3_and_below_topics": [{"name": "none", "partitions": INDEXES}]},
        [OF_ID],
    ),
    "AddPartitionsToTxn of an id that is denied": (
        24,
        3,
        {"v3_and_below_transactional_id": "x", "v3_and_below_topics": [{"name": "none", "partitions": INDEXES}]},
        [],
    ),
    "TxnOffsetCommit of an id that is denied": (
        28,
        3,
        {"transactional_id": "x", "group_id": "g", "generation_id": -1, "topics": each_topic()},
        [OF_GROUP],
    ),
    "TxnOffsetCommit": (
        28,
        3,
        {"transactional_id": "x", "group_id": "g", "generation_id": -1, "topics": each_topic()},
        [OF_ID, OF_GROUP],
    ),
    "DescribeTransactions": (65, 0, {"transactional_ids": NAMES}, []),
    "IncrementalAlterConfigs": (
        44,
        1,
        {"resources": [{"resource_type": 2, "resource_name": name} for name in NAMES]},
        [],
    ),
    "DescribeConfigs": (32, 4, {"resources": [{"resource_type": 2, "resource_name": name} for name in NAMES]}, []),
    "Metadata": (3, 12, {"topics": [{"name": name} for name in NAMES]}, []),
    "Metadata that creates": (
        3,
        12,
        {"topics": [{"name": name} for name in NAMES], "allow_auto_topic_creation": True},
        [(Operation.DESCRIBE, TOPIC, "none-")],
    ),
    "DescribeTopicPartitions": (75, 0, {"topics": [{"name": name} for name in NAMES]}, []),
    "Produce": (0, 9, {"acks": -1, "topic_data": each_topic()}, []),
    "Produce to topics that are not there": (0, 9, {"acks": -1, "topic_data": each_topic()}, [OF_TOPICS]),
}


class LongestTurn:
    """How many decisions, and structures of answers, one turn of the loop was busy with at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop) -> None:
        self.steps = 0
        self.longest = 0
        self._loop = loop
        own_thread = threading.current_thread()

        def counted(method: Any) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                if threading.current_thread() is own_thread:
                    self.steps += 1
                    self.longest = max(self.longest, self.steps)
                return method(*given, **named)

            return call

        for kind, name in ((Authorizer, "allows"), (Authorizer, "allows_filtering"), (Shape, "__call__")):
            monkeypatch.setattr(kind, name, counted(getattr(kind, name)))
        loop.call_soon(self._turn)

    def _turn(self) -> None:
        self.steps = 0
        self._loop.call_soon(self._turn)


@pytest.fixture
def world(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Decisions are forgotten as if there were far more names; time goes on wherever it is looked at."""
    monkeypatch.setattr(authorizer_module, "MOST_DECISIONS", 100)
    shown_ms = itertools.count(world.broker.parts.clocks.monotonic_ms())
    world.broker.clock.monotonic_ms = lambda: next(shown_ms)
    return world


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_of_many_names_leaves_the_loop_to_others(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    key, version, facts, rules = REQUESTS[name]
    for rule in rules:
        world.allow(rule, kind=PatternType.PREFIXED if rule[2] == "none-" else PatternType.LITERAL)
    turn = LongestTurn(monkeypatch, world.broker.parts.loop)
    world.ask(key, version, **facts)
    assert 0 < turn.longest <= MOST_STEPS


def test_all_topics_are_looked_at_in_turns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "_TOPICS_AT_A_TIME", 1)
    topics = [{"name": f"t{number}", "num_partitions": 1, "replication_factor": 1} for number in range(50)]
    world.ask(19, 7, user=ROOT, topics=topics)
    world.allow((Operation.DESCRIBE, CLUSTER, "kafka-cluster"), user=ALICE)
    turn = LongestTurn(monkeypatch, world.broker.parts.loop)
    assert world.ask(3, 12, topics=None).topics == ()
    assert turn.longest < len(topics)
