"""A follower's fetch session: a partition that has nothing for it is left alone until it changes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.requests.follower_waits import AWAITED_MS
from lamina.broker.requests.replica_feed import LOOK_AT_ALL_MS
from lamina.errors import ErrorCode
from tests.broker.requests.handlers.replicated import (
    BROKER_EPOCHS,
    FETCH,
    FOR_EVER_MS,
    ME,
    OTHER,
    THIRD,
    ReplicatedBroker,
)

LAG_TIME_MAX_MS = 30_000


class FollowerSession:
    """Broker 2, or another one, that fetches partition 0 of the topic in a session."""

    def __init__(self, broker: ReplicatedBroker, replica_id: int = OTHER) -> None:
        self._broker = broker
        self._replica_id = replica_id
        self.broker_epoch = BROKER_EPOCHS[replica_id]
        self._id = self._epoch = 0

    def begin(
        self, offset: int | None = None, *, max_wait: int = 0, leader_epoch: int = -1, log_start: int = 0
    ) -> "asyncio.Task[Any]":
        """Without an offset: nothing else than before."""
        asked = {
            "partition": 0,
            "current_leader_epoch": leader_epoch,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": log_start,
            "partition_max_bytes": 1 << 20,
        }
        topics = [] if offset is None else [{"topic_id": self._broker.topic_id, "partitions": [asked]}]
        return self._broker.begin(
            FETCH,
            17,
            replica_state={"replica_id": self._replica_id, "replica_epoch": self.broker_epoch},
            max_wait=max_wait,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=topics,
        )

    def finish(self, begun: "asyncio.Task[Any]") -> Any:
        """What is told of the partition, if anything."""
        response = self._broker.finish(begun)
        assert response.error_code == ErrorCode.NONE
        self._id = response.session_id
        self._epoch += 1
        return response.responses[0].partitions[0] if response.responses else None

    def fetch(self, offset: int | None = None, **asked: Any) -> Any:
        return self.finish(self.begin(offset, **asked))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    opened = ReplicatedBroker(tmp_path)
    opened.place(isr=(ME, OTHER))
    yield opened
    opened.close()


@pytest.fixture
def follower(broker: ReplicatedBroker) -> FollowerSession:
    """One that has everything, and was told everything."""
    session = FollowerSession(broker)
    session.fetch(0)
    assert session.fetch() is None
    assert session.fetch() is None
    return session


def looks(broker: ReplicatedBroker, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets at which the partition's log is read from now on."""
    found: list[int] = []
    log, kind = broker.partition.log, type(broker.partition.log)
    read = kind.read

    def counted(self: Any, offset: int, *rest: Any) -> Any:
        if self is log:
            found.append(offset)
        return read(self, offset, *rest)

    monkeypatch.setattr(kind, "read", counted)
    return found


def pass_ms(broker: ReplicatedBroker, duration_ms: int) -> None:
    assert isinstance(broker.clock.monotonic_ms, int)
    broker.clock.monotonic_ms += duration_ms


def append(broker: ReplicatedBroker) -> None:
    broker.produced(broker.begin_produce(acks=1))


def test_a_partition_that_has_nothing_new_is_not_looked_at(
    broker: ReplicatedBroker, follower: FollowerSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = looks(broker, monkeypatch)
    for _ in range(3):
        assert follower.fetch() is None
    assert found == []
    append(broker)
    assert follower.fetch().records
    assert found


def test_an_append_wakes_the_follower_that_waits(broker: ReplicatedBroker, follower: FollowerSession) -> None:
    waiting = follower.begin(max_wait=FOR_EVER_MS)
    assert not broker.settled(waiting)
    append(broker)
    assert follower.finish(waiting).records
    # As long as it has not said that it took them, it is shown them again.
    assert follower.fetch().records


def test_a_record_is_committed_by_the_fetch_that_has_it(broker: ReplicatedBroker, follower: FollowerSession) -> None:
    begun = broker.begin_produce(acks=-1)
    assert follower.fetch().records
    assert not broker.settled(begun)
    follower.fetch(1)
    assert broker.produced(begun).error_code == ErrorCode.NONE
    assert broker.partition.high_watermark == 1
    assert follower.fetch().high_watermark == 1
    assert follower.fetch() is None


def test_a_follower_that_stayed_is_in_sync_when_a_record_comes_at_last(
    broker: ReplicatedBroker, follower: FollowerSession
) -> None:
    """R7, R9: the fetches in which nothing was told have counted."""
    pass_ms(broker, 2 * LAG_TIME_MAX_MS)
    follower.fetch()
    append(broker)
    pass_ms(broker, LAG_TIME_MAX_MS)
    broker.partition.shrink_in_sync()
    assert broker.proposals == []
    pass_ms(broker, 1)
    broker.partition.shrink_in_sync()
    assert [set(proposal.in_sync) for proposal in broker.proposals] == [{ME}]


def test_a_fetch_that_looks_at_nothing_counts_as_one_of_a_partition_that_was_left_alone(
    broker: ReplicatedBroker, follower: FollowerSession
) -> None:
    """R6: not only the look at all partitions, every few seconds, says that it is in sync."""
    pass_ms(broker, LOOK_AT_ALL_MS - 1)
    follower.fetch()
    append(broker)
    pass_ms(broker, LAG_TIME_MAX_MS)
    broker.partition.shrink_in_sync()
    assert broker.proposals == []


def test_a_follower_that_went_is_out_of_sync_after_its_last_fetch(
    broker: ReplicatedBroker, follower: FollowerSession
) -> None:
    pass_ms(broker, LAG_TIME_MAX_MS + 1)
    broker.partition.shrink_in_sync()
    assert broker.proposals == [], "it has the whole log"
    append(broker)
    broker.partition.shrink_in_sync()
    assert [set(proposal.in_sync) for proposal in broker.proposals] == [{ME}]


def test_r8_a_follower_that_may_join_is_looked_at_with_every_fetch(broker: ReplicatedBroker) -> None:
    third = FollowerSession(broker, THIRD)
    third.fetch(0)
    broker.partition.in_sync_refused(broker.proposals.pop(), ErrorCode.INELIGIBLE_REPLICA)
    assert third.fetch() is None
    (again,) = broker.proposals
    assert set(again.in_sync) == {ME, OTHER, THIRD}


def test_r32_another_epoch_is_told_at_once(broker: ReplicatedBroker) -> None:
    session, epoch = FollowerSession(broker), broker.epoch
    session.fetch(0, leader_epoch=epoch)
    session.fetch()
    session.fetch()
    broker.place(isr=(ME, OTHER))
    assert session.fetch().error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert session.fetch(0, leader_epoch=epoch + 1).error_code == ErrorCode.NONE


def test_a_role_that_is_lost_wakes_the_follower_that_waits(broker: ReplicatedBroker, follower: FollowerSession) -> None:
    waiting = follower.begin(max_wait=FOR_EVER_MS)
    assert not broker.settled(waiting)
    broker.place(leader=OTHER)
    assert follower.finish(waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_r17_a_log_start_is_told_with_the_next_look_at_all(broker: ReplicatedBroker, follower: FollowerSession) -> None:
    append(broker)
    follower.fetch(1)
    while follower.fetch() is not None:
        pass
    broker.partition.log.advance_log_start(1)
    assert follower.fetch() is None
    pass_ms(broker, LOOK_AT_ALL_MS)
    assert follower.fetch().log_start_offset == 1


def test_r17_deleted_records_are_told_to_followers_at_once(broker: ReplicatedBroker, follower: FollowerSession) -> None:
    append(broker)
    follower.fetch(1)
    while follower.fetch() is not None:
        pass
    deleted: list[object] = []
    broker.partition.log.advance_log_start(1)
    broker.partition.when_deleted(1, deleted.append)
    assert follower.fetch().log_start_offset == 1
    broker.lose(THIRD)
    follower.fetch(1, log_start=1)
    assert deleted == [None]


def test_r92_a_broker_that_registers_again_is_looked_at_anew(
    broker: ReplicatedBroker, follower: FollowerSession
) -> None:
    follower.broker_epoch += 5
    follower.fetch()
    assert broker.partition.require_leader().followers[OTHER].broker_epoch == follower.broker_epoch


def test_what_a_session_held_is_left_with_it(broker: ReplicatedBroker, follower: FollowerSession) -> None:
    later = FollowerSession(broker)
    later.broker_epoch += 1
    later.fetch(0)
    assert len(broker.parts.fetch_sessions) == 1
    waiting = later.begin(max_wait=FOR_EVER_MS)
    assert not broker.settled(waiting)
    append(broker)
    assert later.finish(waiting).records


def test_a_follower_is_let_go_when_there_may_be_more_for_it_to_fetch(
    broker: ReplicatedBroker, follower: FollowerSession
) -> None:
    """The first record of a new topic does not wait for a fetch that began before it."""
    pass_ms(broker, AWAITED_MS)
    waiting = follower.begin(max_wait=FOR_EVER_MS)
    assert not broker.settled(waiting)
    broker.create("new")
    broker.set_partition("new", 0, replicas=(ME, OTHER), leader=ME, isr=(ME,), leader_epoch=7)
    assert follower.finish(waiting) is None
    assert follower.fetch(max_wait=FOR_EVER_MS) is None, "it need not wait for long"
    pass_ms(broker, AWAITED_MS)
    assert not broker.settled(follower.begin(max_wait=FOR_EVER_MS))
