"""Fetch from a partition that other brokers keep too: by followers, and by consumers of either replica."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from lamina.broker.partitions.follower import Follower
from lamina.broker.partitions.offset_waiters import Waiter
from lamina.broker.requests.follower_waits import AWAITED_MS
from lamina.errors import ErrorCode, KafkaError
from lamina.image.changes import set_partitions
from lamina.log.due_waiters import AT_A_TIME
from lamina.records.record import Record, build_batch
from lamina.settings.replication import RACK_AWARE_SELECTOR
from tests.broker.requests.handlers.replicated import FOR_EVER_MS, ME, OTHER, THIRD, ReplicatedBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    opened = ReplicatedBroker(tmp_path)
    opened.place(isr=(ME, OTHER))
    for _ in range(3):
        opened.produced(opened.begin_produce(acks=1))
    yield opened
    opened.close()


def progress(broker: ReplicatedBroker, replica_id: int = OTHER) -> int:
    return broker.partition.require_leader().followers[replica_id].log_end_offset


# Followers


def test_r11_a_replica_outside_of_the_in_sync_set_that_goes_stale_holds_nothing_back(broker: ReplicatedBroker) -> None:
    """Nobody appends, nobody fetches: the high watermark has to be looked at by itself."""
    broker.parts.partitions.cluster.change_in_sync = None
    broker.place(isr=(ME,))
    broker.fetch(3, replica_id=OTHER)
    broker.produced(broker.begin_produce(acks=1))
    assert broker.partition.high_watermark == 3, "one that has caught up is about to join"
    assert isinstance(broker.clock.monotonic_ms, int)
    broker.clock.monotonic_ms += 60_000
    broker.partition.shrink_in_sync()
    assert broker.partition.high_watermark == 4


def test_r5_a_follower_sees_the_log_end_and_a_consumer_the_high_watermark(broker: ReplicatedBroker) -> None:
    told = broker.fetch(0, replica_id=OTHER)
    assert (told.error_code, told.high_watermark) == (ErrorCode.NONE, 0)
    assert len(told.records) == broker.partition.log.size_bytes()
    assert not broker.fetch(0).records
    broker.fetch(2, replica_id=OTHER)
    assert broker.fetch(2, replica_id=OTHER).high_watermark == 2
    consumed = broker.fetch(0)
    assert (consumed.high_watermark, bool(consumed.records)) == (2, True)
    assert len(consumed.records) < broker.partition.log.size_bytes()


def test_r5_the_watermark_in_an_answer_is_the_one_before_its_fetch(broker: ReplicatedBroker) -> None:
    assert broker.fetch(3, replica_id=OTHER).high_watermark == 0
    assert broker.partition.high_watermark == 3


def test_r1_an_old_follower_names_itself_in_a_plain_field(broker: ReplicatedBroker) -> None:
    assert broker.fetch(3, replica_id=OTHER, version=12).error_code == ErrorCode.NONE
    assert (progress(broker), broker.partition.high_watermark) == (3, 3)


def test_r4_the_order_of_checks(broker: ReplicatedBroker) -> None:
    epoch = broker.epoch
    others = UUID(int=77)

    def error(**asked: object) -> int:
        return int(broker.fetch(3, **{"replica_id": OTHER, **asked}).error_code)

    assert error(topic_id=others) == ErrorCode.UNKNOWN_TOPIC_ID
    assert error(leader_epoch=epoch - 1, replica_id=9) == ErrorCode.FENCED_LEADER_EPOCH
    assert error(leader_epoch=epoch + 1, replica_id=9) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error(leader_epoch=epoch, replica_id=9) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error(replica_id=9) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error(leader_epoch=epoch, broker_epoch=19) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert progress(broker) == -1, "nothing of it was taken in"
    assert error(leader_epoch=epoch) == ErrorCode.NONE
    broker.place(leader=OTHER)
    assert error(leader_epoch=epoch) == ErrorCode.FENCED_LEADER_EPOCH
    assert error(leader_epoch=epoch + 1, replica_id=THIRD) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_r6_a_fetch_counts_when_it_arrives_and_wakes_with_what_is_appended(broker: ReplicatedBroker) -> None:
    waiting = broker.begin_fetch(3, replica_id=OTHER, max_wait=FOR_EVER_MS)
    assert not broker.settled(waiting)
    assert (progress(broker), broker.partition.high_watermark) == (3, 3)
    broker.partition.require_leader().followers[OTHER].log_end_offset = 2
    broker.produced(broker.begin_produce(acks=1))
    assert broker.fetched(waiting).records
    assert progress(broker) == 2, "what leaves the waiting room says nothing new"


def test_one_fetch_that_commits_very_many_partitions_tells_who_waits_there_in_turns(broker: ReplicatedBroker) -> None:
    """And its own answer waits for none of them."""
    count = 5 * AT_A_TIME
    broker.create("many", partitions=count)
    states = {}
    for index, state in enumerate(broker.parts.metadata.image.topics["many"].partitions):
        states["many", index] = replace(
            state, replicas=(ME, OTHER), leader=ME, isr=(ME, OTHER), leader_epoch=state.leader_epoch + 1
        )
    broker.change(lambda image: set_partitions(image, states))
    told: list[int] = []
    in_turns = [0]

    def count_turns() -> None:
        in_turns.append(0)
        if len(in_turns) < 3 * count:
            broker.parts.loop.call_soon(count_turns)

    def waiter(index: int) -> Waiter:
        def tell(_: KafkaError | None) -> None:
            told.append(index)
            in_turns[-1] += 1

        return tell

    for index in range(count):
        partition = broker.parts.partitions.get("many", index)
        partition.append_own(build_batch([Record(0, 1, b"k", b"v")]), 1)
        partition.when_committed(waiter(index))
    count_turns()
    fetching, at_answer = broker.begin_fetch_many("many", range(count), 1), list[int]()
    fetching.add_done_callback(lambda _: at_answer.append(len(told)))
    while len(in_turns) < 3 * count:
        broker.turn()
    assert [told for told in in_turns if told] == [AT_A_TIME] * 5
    assert told == list(range(count))
    assert at_answer[0] < count


def test_r15_a_higher_watermark_does_not_wake_a_follower(broker: ReplicatedBroker) -> None:
    waiting = broker.begin_fetch(3, replica_id=THIRD, max_wait=FOR_EVER_MS)
    assert not broker.settled(waiting)
    broker.fetch(3, replica_id=OTHER)
    assert broker.partition.high_watermark == 3
    assert not broker.settled(waiting)
    broker.partition.release_all()
    broker.finish(waiting)


def test_a_consumer_wakes_when_the_high_watermark_moves(broker: ReplicatedBroker) -> None:
    waiting = broker.begin_fetch(0, max_wait=FOR_EVER_MS)
    assert not broker.settled(waiting)
    broker.produced(broker.begin_produce(acks=1))
    assert not broker.settled(waiting), "what is appended is not committed"
    broker.fetch(1, replica_id=OTHER)
    assert broker.fetched(waiting).records


def test_a_reader_of_committed_records_wakes_when_a_marker_is_committed(broker: ReplicatedBroker) -> None:
    partition = broker.partition
    now_ms = broker.parts.clocks.now_ms()
    guard = partition.log.producers.begin_verification(7, 0, 0, now_ms, begins_at_zero=False)
    batch = build_batch([Record(0, now_ms, b"k", b"v")], producer_id=7, producer_epoch=0, is_transactional=True)
    partition.append_own(batch, now_ms, guard)
    partition.replica_fetched(OTHER, 20, 4, 0)
    waiting = broker.begin_fetch(3, max_wait=FOR_EVER_MS, isolation=1)
    partition.append_marker(7, 0, 0, is_commit=True, transaction_version=1, now_ms=now_ms)
    assert not broker.settled(waiting)
    assert partition.last_stable_offset == 3, "the marker is above the high watermark"
    broker.fetch(5, replica_id=OTHER)
    assert broker.fetched(waiting).records
    assert partition.last_stable_offset == 5


def test_r16_a_marker_above_the_checkpointed_high_watermark_ends_nothing_after_a_restart(
    broker: ReplicatedBroker,
) -> None:
    partition, now_ms = broker.partition, broker.parts.clocks.now_ms()
    guard = partition.log.producers.begin_verification(7, 0, 0, now_ms, begins_at_zero=False)
    batch = build_batch([Record(0, now_ms, b"k", b"v")], producer_id=7, producer_epoch=0, is_transactional=True)
    partition.append_own(batch, now_ms, guard)
    partition.append_marker(7, 0, 0, is_commit=True, transaction_version=1, now_ms=now_ms)
    broker.fetch(4, replica_id=OTHER)
    broker.parts.loop.run_until_complete(broker.parts.upkeep.write_high_watermarks())
    broker.restart()
    partition = broker.partition
    assert (partition.high_watermark, partition.last_stable_offset, partition.log.log_end_offset) == (4, 3, 5)
    assert not broker.fetch(3, isolation=1).records
    broker.fetch(5, replica_id=OTHER)
    assert (partition.high_watermark, partition.last_stable_offset) == (5, 5)


def test_a_leader_that_resigns_sends_parked_readers_away(broker: ReplicatedBroker) -> None:
    assert isinstance(broker.clock.monotonic_ms, int)
    broker.clock.monotonic_ms += AWAITED_MS
    follower = broker.begin_fetch(3, replica_id=OTHER, max_wait=FOR_EVER_MS)
    consumer = broker.begin_fetch(3, max_wait=FOR_EVER_MS, leader_epoch=broker.epoch)
    assert not broker.settled(follower)
    broker.place(leader=OTHER)
    assert broker.fetched(follower).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.fetched(consumer).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_r8_a_follower_that_has_caught_up_is_proposed(broker: ReplicatedBroker) -> None:
    broker.fetch(3, replica_id=OTHER)
    broker.fetch(2, replica_id=THIRD)
    assert broker.proposals == []
    broker.fetch(3, replica_id=THIRD)
    (proposal,) = broker.proposals
    assert dict(proposal.in_sync) == {ME: -1, OTHER: 20, THIRD: 30}
    partition = broker.partition
    broker.produced(broker.begin_produce(acks=1))
    stored = (proposal, (ME, OTHER, THIRD), broker.epoch, proposal.partition_epoch + 1)
    assert partition.in_sync_committed(*stored) == 1
    assert partition.in_sync_committed(*stored) == 0, "that is no news"
    broker.fetch(4, replica_id=OTHER)
    assert partition.high_watermark == 3
    broker.fetch(4, replica_id=THIRD)
    assert partition.high_watermark == 4


def test_r9_r13_a_follower_that_is_behind_is_dropped_and_the_watermark_moves(broker: ReplicatedBroker) -> None:
    assert isinstance(broker.clock.monotonic_ms, int)
    broker.clock.monotonic_ms += 30_001
    partition = broker.partition
    partition.shrink_in_sync()
    (proposal,) = broker.proposals
    assert (list(proposal.in_sync), partition.high_watermark) == ([ME], 0)
    assert partition.in_sync_refused(proposal, ErrorCode.NETWORK_EXCEPTION), "to be sent again"
    assert partition.in_sync_committed(proposal, (ME,), broker.epoch, proposal.partition_epoch + 1) == -1
    assert partition.high_watermark == 3


def test_a_listener_may_be_closed_to_followers(broker: ReplicatedBroker) -> None:
    handler = broker.parts.router.handler(1)
    handler.__self__._may_replicate = lambda _: False  # type: ignore[attr-defined]
    assert broker.fetch(3, replica_id=OTHER).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert progress(broker) == -1
    assert broker.fetch(0).error_code == ErrorCode.NONE


# Divergence


@pytest.mark.parametrize("replica_id", [OTHER, -1])
def test_r26_who_has_what_this_log_lacks_is_told_where_they_part(broker: ReplicatedBroker, replica_id: int) -> None:
    epoch = broker.epoch
    told = broker.fetch(8, replica_id=replica_id, last_epoch=epoch)
    assert (told.error_code, told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (0, epoch, 3)
    assert not told.records
    assert progress(broker) == -1, "it will not have the log that it has now (R86)"
    assert broker.fetch(8, replica_id=replica_id).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert broker.fetch(3, replica_id=replica_id, last_epoch=epoch + 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert broker.fetch(3, replica_id=replica_id, last_epoch=epoch).diverging_epoch.epoch == -1


def test_r86_the_offset_of_a_diverging_follower_commits_nothing_that_it_lacks(broker: ReplicatedBroker) -> None:
    before = broker.epoch
    broker.place(isr=(ME, OTHER))
    for _ in range(2):
        broker.produced(broker.begin_produce(acks=1))
    told = broker.fetch(5, replica_id=OTHER, last_epoch=before)
    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (before, 3)
    assert (progress(broker), broker.partition.high_watermark) == (-1, 0)
    broker.fetch(3, replica_id=OTHER, last_epoch=before)
    assert (progress(broker), broker.partition.high_watermark) == (3, 3), "cut off, it has what both have"


def test_r26_an_epoch_that_this_log_never_had_ends_with_the_one_below(broker: ReplicatedBroker) -> None:
    first = broker.epoch
    for _ in range(2):
        broker.place(isr=(ME, OTHER))
    broker.produced(broker.begin_produce(acks=1))
    told = broker.fetch(3, replica_id=OTHER, last_epoch=first + 1)
    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (first, 3)


def test_r98_below_the_log_start_is_out_of_range_whatever_the_epochs_say(broker: ReplicatedBroker) -> None:
    epoch = broker.epoch
    broker.fetch(3, replica_id=OTHER)
    broker.partition.log.advance_log_start(2)
    assert broker.fetch(1, replica_id=OTHER, last_epoch=epoch).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert broker.fetch(1, replica_id=OTHER, last_epoch=epoch - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_r20_a_new_leader_notes_its_epoch_before_it_writes(broker: ReplicatedBroker) -> None:
    broker.place(isr=(ME, OTHER))
    assert broker.partition.log.epochs.entries[-1] == (broker.epoch, 3)
    told = broker.fetch(5, replica_id=OTHER, last_epoch=broker.epoch - 1)
    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (broker.epoch - 1, 3)


# Consumers


def test_r34_a_consumer_is_told_who_leads(broker: ReplicatedBroker) -> None:
    before = broker.epoch
    broker.place(leader=OTHER)
    response = broker.finish(broker.begin_fetch(0, leader_epoch=before))
    (told,) = response.responses[0].partitions
    assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (OTHER, broker.epoch)
    assert [(one.node_id, one.host) for one in response.node_endpoints] == [(OTHER, "broker-2.test")]


def test_r34_a_follower_gets_the_hint_without_endpoints(broker: ReplicatedBroker) -> None:
    broker.place(leader=OTHER)
    response = broker.finish(broker.begin_fetch(0, replica_id=THIRD))
    assert response.responses[0].partitions[0].current_leader.leader_id == OTHER
    assert response.node_endpoints == ()


def test_r35_a_follower_serves_consumers_that_know_of_it(broker: ReplicatedBroker) -> None:
    broker.fetch(2, replica_id=OTHER)
    broker.place(leader=OTHER)
    assert broker.partition.follower == Follower(OTHER, broker.epoch)
    assert broker.fetch(0, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    told = broker.fetch(0, version=11)
    assert (told.error_code, told.high_watermark, bool(told.records)) == (ErrorCode.NONE, 2, True)
    above = broker.fetch(3, max_wait=FOR_EVER_MS)
    assert (above.error_code, bool(above.records)) == (ErrorCode.NONE, False), "at once: the offset is there, not yet"
    assert broker.fetch(4).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_r5_a_debugging_reader_sees_everything_on_any_replica(broker: ReplicatedBroker) -> None:
    broker.place(leader=OTHER)
    assert len(broker.fetch(0, replica_id=-2).records) == broker.partition.log.size_bytes()


@pytest.fixture
def rack_aware(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    opened = ReplicatedBroker(tmp_path, {"replica.selector.class": RACK_AWARE_SELECTOR})
    opened.place(isr=(ME, OTHER, THIRD))
    opened.produced(opened.begin_produce(3, acks=1))
    for replica_id in (OTHER, THIRD):
        opened.fetch(3, replica_id=replica_id)
    yield opened
    opened.close()


def test_r36_a_consumer_is_sent_to_the_follower_in_its_rack(rack_aware: ReplicatedBroker) -> None:
    told = rack_aware.fetch(0, rack="rack-3", max_wait=FOR_EVER_MS)
    assert (told.error_code, told.preferred_read_replica, bool(told.records)) == (ErrorCode.NONE, THIRD, False)
    assert (told.high_watermark, told.last_stable_offset, told.log_start_offset) == (3, 3, 0)


@pytest.mark.parametrize("asked", [{}, {"rack": "here"}, {"rack": "nowhere"}, {"rack": "rack-3", "replica_id": -2}])
def test_r36_others_read_from_the_leader(rack_aware: ReplicatedBroker, asked: dict[str, object]) -> None:
    told = rack_aware.fetch(0, **asked)
    assert (told.preferred_read_replica, bool(told.records)) == (-1, True)


def test_r36_only_a_follower_that_is_in_sync_and_has_the_offset(rack_aware: ReplicatedBroker) -> None:
    rack_aware.produced(rack_aware.begin_produce(acks=1))
    assert rack_aware.fetch(4, rack="rack-3").preferred_read_replica == -1
    assert rack_aware.fetch(3, rack="rack-3").preferred_read_replica == THIRD
    rack_aware.lose(THIRD)
    assert rack_aware.fetch(0, rack="rack-3").preferred_read_replica == -1
    rack_aware.place(isr=(ME, THIRD))
    assert rack_aware.fetch(0, rack="rack-2").preferred_read_replica == -1


def test_without_a_selector_nobody_is_sent_away(broker: ReplicatedBroker) -> None:
    broker.fetch(3, replica_id=OTHER)
    assert broker.fetch(0, rack="rack-2").preferred_read_replica == -1
