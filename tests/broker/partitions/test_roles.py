"""A partition that this broker leads, stops leading, and leads with other replicas that have to follow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.broker.partitions.leader import Leader
from lamina.broker.partitions.partition import Partition
from lamina.errors import ErrorCode, KafkaError, NotLeaderOrFollower
from lamina.records.record import Record, build_batch
from tests.broker.in_process import InProcessBroker

DELETE_RECORDS, LIST_OFFSETS = 21, 2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    started = InProcessBroker(tmp_path, {})
    started.create("t")
    started.produce("t", 3)
    yield started
    started.close()


@pytest.fixture
def partition(broker: InProcessBroker) -> Partition:
    return broker.parts.partitions.get("t", 0)


def follow(partition: Partition) -> None:
    """Lead on, with another replica in the in-sync set."""
    partition.lead(Leader(partition.leader_epoch, (1, 2), frozenset((1, 2))))


def append(partition: Partition) -> None:
    partition.append_own(build_batch([Record(0, 1, b"k", b"v")]), 1)


def test_who_does_not_lead_serves_nobody(broker: InProcessBroker, partition: Partition) -> None:
    partition.resign()
    asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1, "offset": 1}
    for api_key, version in ((LIST_OFFSETS, 8), (DELETE_RECORDS, 2)):
        told = broker.ask(api_key, version, topics=[{"name": "t", "partitions": [asked]}]).topics[0].partitions[0]
        assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(NotLeaderOrFollower):
        append(partition)
    assert partition.log.log_start_offset == 0


def test_what_other_replicas_lack_is_not_committed(partition: Partition) -> None:
    follow(partition)
    told: list[KafkaError | None] = []
    append(partition)
    assert (partition.high_watermark, partition.is_flushed(), partition.is_committed()) == (3, True, False)
    partition.when_flushed(told.append)
    assert told == [None], "acks=1 asks for no other replica"
    partition.when_committed(told.append)
    assert told == [None]
    partition.lead(Leader(partition.leader_epoch, (1, 2), frozenset((1,))))
    assert (partition.high_watermark, told) == (4, [None, None])


def test_who_waits_for_replicas_is_told_when_the_role_is_gone(partition: Partition) -> None:
    follow(partition)
    told: list[KafkaError | None] = []
    append(partition)
    partition.when_committed(told.append)
    partition.resign()
    (error,) = told
    assert isinstance(error, NotLeaderOrFollower)
    partition.when_committed(told.append)
    assert isinstance(told[1], NotLeaderOrFollower)
