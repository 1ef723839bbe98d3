"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords of a partition that other brokers keep too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.partitions.commits import all_deleted_within
from lamina.errors import ErrorCode
from tests.broker.requests.handlers.replicated import FOR_EVER_MS, ME, OTHER, THIRD, ReplicatedBroker

DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH = 21, 23
LATEST, EARLIEST = -1, -2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    opened = ReplicatedBroker(tmp_path)
    opened.place(isr=(ME, OTHER))
    for _ in range(3):
        opened.produced(opened.begin_produce(acks=1))
    yield opened
    opened.close()


def begin_delete(broker: ReplicatedBroker, offset: int, timeout: int = FOR_EVER_MS) -> Any:
    asked = {"partition_index": 0, "offset": offset}
    return broker.begin(DELETE_RECORDS, 2, timeout=timeout, topics=[{"name": "t", "partitions": [asked]}])


def deleted(broker: ReplicatedBroker, begun: Any) -> tuple[int, int]:
    told = broker.finish(begun).topics[0].partitions[0]
    return int(told.error_code), int(told.low_watermark)


# ListOffsets


def test_r37_the_latest_offset_is_the_high_watermark_and_for_brokers_the_log_end(broker: ReplicatedBroker) -> None:
    broker.fetch(2, replica_id=OTHER)
    assert broker.list_offset(LATEST).offset == 2
    assert broker.list_offset(LATEST, replica_id=OTHER).offset == 3
    assert broker.list_offset(LATEST, replica_id=-2).offset == 3


def test_r37_a_follower_answers_only_who_debugs(broker: ReplicatedBroker) -> None:
    broker.place(leader=OTHER)
    for replica_id in (-1, THIRD):
        told = broker.list_offset(LATEST, replica_id=replica_id)
        assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    told = broker.list_offset(LATEST, replica_id=-2)
    assert (told.error_code, told.offset, told.leader_epoch) == (ErrorCode.NONE, 3, broker.epoch)
    assert broker.list_offset(EARLIEST, replica_id=-2).offset == 0
    fenced = broker.list_offset(LATEST, leader_epoch=broker.epoch - 1)
    assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)]
)
def test_r38_r88_a_new_leader_does_not_tell_offsets_that_go_back(
    broker: ReplicatedBroker, version: int, code: ErrorCode
) -> None:
    broker.fetch(2, replica_id=OTHER)
    broker.place(isr=(ME, OTHER))
    far_ms = broker.parts.clocks.now_ms() + 60_000
    assert broker.list_offset(LATEST, version=version).error_code == code
    assert broker.list_offset(far_ms, version=version).error_code == code
    assert broker.list_offset(EARLIEST, version=version).offset == 0
    assert broker.list_offset(0, version=version).offset == 0, "what is found below the high watermark is committed"
    assert broker.list_offset(LATEST, version=version, replica_id=OTHER).offset == 3
    broker.fetch(3, replica_id=OTHER)
    assert broker.list_offset(LATEST, version=version).offset == 3
    assert broker.list_offset(far_ms, version=version).offset == -1


@pytest.mark.parametrize("replica_id", [OTHER, -1])
def test_r90_who_knows_of_an_election_is_told_nothing_by_who_led_before_it_nor_the_other_way_round(
    broker: ReplicatedBroker, replica_id: int
) -> None:
    """KIP-320: this broker does not know yet that another leads, and later whoever asks does not."""

    def answers(epoch: int) -> set[int]:
        fetched = broker.fetch(3, replica_id=replica_id, leader_epoch=epoch)
        assert not fetched.records
        listed = broker.list_offset(LATEST, replica_id=replica_id, leader_epoch=epoch)
        ended, _, _ = ends(broker, 1, current=epoch)
        return {int(fetched.error_code), int(listed.error_code), ended}

    led = broker.epoch
    assert answers(led) == {ErrorCode.NONE}
    assert answers(led + 1) == {ErrorCode.UNKNOWN_LEADER_EPOCH}
    broker.place(leader=OTHER)
    assert broker.epoch == led + 1
    assert answers(led) == {ErrorCode.FENCED_LEADER_EPOCH}


# OffsetForLeaderEpoch


def ends(broker: ReplicatedBroker, leader_epoch: int, current: int = -1) -> tuple[int, int, int]:
    asked = {"partition": 0, "current_leader_epoch": current, "leader_epoch": leader_epoch}
    topics = [{"topic": "t", "partitions": [asked]}]
    told = broker.ask(OFFSET_FOR_LEADER_EPOCH, 4, topics=topics).topics[0].partitions[0]
    return int(told.error_code), int(told.leader_epoch), int(told.end_offset)


def test_r24_the_end_of_an_epoch(broker: ReplicatedBroker) -> None:
    first = broker.epoch
    broker.place(isr=(ME, OTHER))
    assert ends(broker, first) == (0, first, 3)
    assert ends(broker, first + 1) == (0, first + 1, 3)
    assert ends(broker, first + 2) == (0, -1, -1)
    assert ends(broker, -1) == (0, -1, -1)


def test_r37_only_the_leader_tells_where_an_epoch_ends(broker: ReplicatedBroker) -> None:
    broker.place(leader=OTHER)
    assert ends(broker, 1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)
    assert ends(broker, 1, current=broker.epoch - 1) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)


# DeleteRecords


def test_r17_deleting_waits_for_the_replicas_that_are_online(broker: ReplicatedBroker) -> None:
    broker.fetch(3, replica_id=OTHER)
    begun = begin_delete(broker, 2)
    assert not broker.settled(begun)
    assert broker.partition.log.log_start_offset == 2
    broker.fetch(3, replica_id=OTHER, log_start=2)
    assert not broker.settled(begun)
    broker.fetch(3, replica_id=THIRD, log_start=2)
    assert deleted(broker, begun) == (ErrorCode.NONE, 2)


def test_r17_a_replica_that_is_away_is_not_waited_for(broker: ReplicatedBroker) -> None:
    broker.fetch(3, replica_id=OTHER, log_start=3)
    broker.lose(THIRD)
    assert deleted(broker, begin_delete(broker, -1)) == (ErrorCode.NONE, 3)


def test_r17_a_replica_that_goes_is_waited_for_no_longer(broker: ReplicatedBroker) -> None:
    broker.fetch(3, replica_id=OTHER, log_start=2)
    begun = begin_delete(broker, 2)
    assert not broker.settled(begun)
    broker.lose(THIRD)
    assert broker.settled(begun)
    assert deleted(broker, begun) == (ErrorCode.NONE, 2)


def test_r17_the_time_may_be_over(broker: ReplicatedBroker) -> None:
    broker.fetch(3, replica_id=OTHER)
    assert deleted(broker, begin_delete(broker, 1, timeout=1)) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert broker.partition.log.log_start_offset == 1


def test_r17_what_is_not_committed_cannot_be_deleted(broker: ReplicatedBroker) -> None:
    broker.fetch(2, replica_id=OTHER)
    assert deleted(broker, begin_delete(broker, 3)) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_r21_a_leader_that_resigns_tells_who_waits_for_a_deletion(broker: ReplicatedBroker) -> None:
    broker.fetch(3, replica_id=OTHER)
    begun = begin_delete(broker, 2)
    assert not broker.settled(begun)
    broker.place(leader=OTHER)
    assert deleted(broker, begun) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert deleted(broker, begin_delete(broker, 2)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_r21_a_leader_that_resigned_while_others_were_deleted_from_tells_so_of_that_one_alone(
    broker: ReplicatedBroker,
) -> None:
    """The role goes in a turn that many partitions of one request leave to others."""
    broker.fetch(3, replica_id=OTHER)
    broker.place(leader=OTHER)
    clocks = broker.parts.clocks
    waiting = all_deleted_within([(broker.partition, 2)], FOR_EVER_MS, clocks)
    failed = broker.parts.loop.run_until_complete(waiting)
    assert failed["t", 0].code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.place()
    broker.fetch(3, replica_id=OTHER, log_start=2)
