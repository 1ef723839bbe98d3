"""Requests whose entries are always worked on in turns of the loop, however few they are."""

import gc
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.coordination import transaction_markers
from lamina.broker.requests.handlers import add_partitions_to_txn, consumer_group_heartbeat, leave_group, offset_commit
from tests.broker.in_process import InProcessBroker, counted_turns

COUNT = 7
INDEXES = range(COUNT)
PARTITIONS = [{"partition_index": index} for index in INDEXES]
EACH_OF_TOPICS = [{"name": f"t{number}", "partitions": [0]} for number in INDEXES]
FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN = 10, 22, 24, 25, 26
WRITE_TXN_MARKERS, CONSUMER_GROUP_HEARTBEAT = 27, 68
GROUP, ID = "g", "tx"
JOINING: dict[str, Any] = {"topic_partitions": (), "rebalance_timeout": 1000}

REQUESTS: dict[str, tuple[int, int, dict[str, Any], int]] = {
    "AddPartitionsToTxn": (
        24,
        3,
        {
            "v3_and_below_transactional_id": ID,
            "v3_and_below_topics": [{"name": "t", "partitions": INDEXES}],
        },
        2,
    ),
    "AddPartitionsToTxn for brokers": (
        24,
        5,
        {
            "transactions": [
                {"transactional_id": ID, "verify_only": True, "topics": [{"name": "t", "partitions": [index]}]}
                for index in INDEXES
            ]
        },
        3,
    ),
    "AlterPartitionReassignments": (
        45,
        1,
        {"topics": [{"name": "t", "partitions": [{**one, "replicas": [1]} for one in PARTITIONS]}]},
        3,
    ),
    "AlterReplicaLogDirs": (34, 2, {"dirs": [{"path": "/none", "topics": EACH_OF_TOPICS}]}, 2),
    "ConsumerGroupDescribe": (69, 1, {"group_ids": ["consumers"]}, 2),
    "ConsumerGroupHeartbeat": (
        68,
        1,
        {"group_id": "more", "member_id": "m", **JOINING, "subscribed_topic_names": [f"t{one}" for one in INDEXES]},
        1,
    ),
    "DeleteRecords": (21, 2, {"topics": [{"name": "t", "partitions": PARTITIONS}]}, 2),
    "DescribeLogDirs": (35, 4, {"topics": [{"topic": "t", "partitions": INDEXES}]}, 1),
    "DescribeProducers": (61, 0, {"topics": [{"name": "t", "partition_indexes": INDEXES}]}, 1),
    "DescribeProducers of one partition": (61, 0, {"topics": [{"name": "written", "partition_indexes": [0]}]}, 1),
    "ElectLeaders": (
        43,
        2,
        {"topic_partitions": [{"topic": one["name"], "partitions": [0]} for one in EACH_OF_TOPICS], "timeout": 1000},
        2,
    ),
    "LeaveGroup": (13, 5, {"group_id": GROUP, "members": [{"member_id": f"m{index}"} for index in INDEXES]}, 1),
    "ListConfigResources": (74, 1, {}, 1),
    "ListTransactions": (66, 2, {"transactional_id_pattern": "tx.*"}, 2),
    "ListTransactions that find nothing": (66, 2, {"transactional_id_pattern": "none"}, 1),
    "TxnOffsetCommit": (
        28,
        3,
        {
            "transactional_id": ID,
            "group_id": GROUP,
            "generation_id": -1,
            "topics": [{"name": "t", "partitions": PARTITIONS}],
        },
        3,
    ),
    "WriteTxnMarkers": (
        27,
        1,
        {"markers": [{"topics": [{"name": "t", "partition_indexes": INDEXES}]}]},
        2,
    ),
    "WriteTxnMarkers of many producers": (
        27,
        1,
        {"markers": [{"topics": [{"name": "t", "partition_indexes": [index]}]} for index in INDEXES]},
        3,
    ),
}
"""Key, version and facts, and how often the request goes through its entries at least, each time in turns."""


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessBroker]:
    """With as many topics, partitions, transactional ids and producers in one partition as there are entries."""
    for module, limit in (
        (offset_commit, "_PARTITIONS_AT_A_TIME"),
        (leave_group, "_MEMBERS_AT_A_TIME"),
        (consumer_group_heartbeat, "_TOPICS_AT_ONCE"),
        (add_partitions_to_txn, "_TRANSACTIONS_AT_A_TIME"),
    ):
        monkeypatch.setattr(module, limit, 1)
    broker = InProcessBroker(
        tmp_path, {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    )
    for kind in (0, 1):
        broker.ask(FIND_COORDINATOR, 4, key_type=kind, coordinator_keys=["any"])
    broker.settle()
    broker.create("t", COUNT)
    for number in range(COUNT):
        broker.create(f"t{number}")
        broker.ask(INIT_PRODUCER_ID, 4, transactional_id=f"{ID}{number or ''}", transaction_timeout=1000)
    # The first producer has id and epoch 0.
    assert broker.ask(ADD_OFFSETS_TO_TXN, 3, transactional_id=ID, group_id=GROUP).error_code == 0
    subscribed = [one["name"] for one in EACH_OF_TOPICS]
    joining = {"group_id": "consumers", "member_id": "m", **JOINING}
    broker.ask(CONSUMER_GROUP_HEARTBEAT, 1, **joining, subscribed_topic_names=subscribed)
    broker.create("written")
    for number in range(COUNT):
        marker = {"producer_id": 100 + number, "topics": [{"name": "written", "partition_indexes": [0]}]}
        broker.ask(WRITE_TXN_MARKERS, 1, markers=[marker])
    yield broker
    broker.close()


@pytest.mark.parametrize("api", REQUESTS)
def test_entries_are_worked_on_in_turns(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, api: str) -> None:
    api_key, api_version, facts, times = REQUESTS[api]
    shown_ms = itertools.count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    broker.ask(api_key, api_version, **facts)
    assert len(turns) >= times * COUNT


def test_the_markers_of_a_large_transaction_are_written_in_turns(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_markers, "_PARTITIONS_AT_ONCE", COUNT - 1)
    producer = {"producer_id": 0, "producer_epoch": 0}
    adding = {"transactional_id": ID, **producer, "topics": [{"name": "t", "partitions": INDEXES}]}
    in_v3 = {f"v3_and_below_{name}": fact for name, fact in adding.items()}
    assert broker.ask(ADD_PARTITIONS_TO_TXN, 3, **in_v3).results_by_topic_v3_and_below[0].results_by_partition
    shown_ms = itertools.count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(shown_ms)
    turns = counted_turns(monkeypatch)
    assert broker.ask(END_TXN, 3, transactional_id=ID, **producer, committed=True).error_code == 0
    broker.settle()
    assert turns.count(0) >= COUNT
    assert broker.parts.transactions.markers.written >= COUNT


@pytest.mark.parametrize("api", REQUESTS)
def test_nothing_is_left_to_the_garbage_collector(broker: InProcessBroker, api: str) -> None:
    """What holds itself is not freed by the time of its answer: the collector walks it, on the loop."""
    api_key, api_version, facts, _ = REQUESTS[api]
    broker.ask(api_key, api_version, **facts)
    gc.collect()
    gc.disable()
    try:
        broker.ask(api_key, api_version, **facts)
        assert gc.collect() == 0
    finally:
        gc.enable()
