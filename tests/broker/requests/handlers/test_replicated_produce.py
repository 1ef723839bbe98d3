"""Produce to a partition that other brokers keep too."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamina.broker.partitions.follower import Follower
from lamina.broker.requests.request import CloseConnection
from lamina.errors import ErrorCode
from tests.broker.requests.handlers.replicated import FOR_EVER_MS, ME, OTHER, THIRD, ReplicatedBroker

WRITE_TXN_MARKERS = 27


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    opened = ReplicatedBroker(tmp_path, min_insync_replicas="2")
    opened.place(isr=(ME, OTHER))
    yield opened
    opened.close()


class Unproven:
    def is_proven(self) -> bool:
        return False

    def was_proven(self) -> bool:
        return True


def test_r14_acks_all_is_answered_when_the_high_watermark_has_passed(broker: ReplicatedBroker) -> None:
    begun = broker.begin_produce(3)
    assert not broker.settled(begun)
    broker.fetch(2, replica_id=OTHER)
    assert not broker.settled(begun)
    broker.fetch(3, replica_id=OTHER)
    produced = broker.produced(begun)
    assert (produced.error_code, produced.base_offset, broker.partition.high_watermark) == (ErrorCode.NONE, 0, 3)


def test_acks_one_asks_for_no_other_replica(broker: ReplicatedBroker) -> None:
    produced = broker.produced(broker.begin_produce(acks=1))
    assert (produced.error_code, broker.partition.high_watermark) == (ErrorCode.NONE, 0)


def test_r14_too_few_in_sync_replicas_are_refused_before_anything_is_written(broker: ReplicatedBroker) -> None:
    broker.place(isr=(ME,))
    assert broker.produced(broker.begin_produce()).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert broker.partition.log.log_end_offset == 0


def test_r14_the_time_may_be_over_before_the_records_are_committed(broker: ReplicatedBroker) -> None:
    broker.produced(broker.begin_produce(2, acks=1))
    produced = broker.produced(broker.begin_produce(3, timeout=1))
    assert (produced.error_code, produced.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 2)
    broker.fetch(5, replica_id=OTHER)
    assert broker.partition.high_watermark == 5, "the records have stayed"


def test_r14_in_sync_replicas_that_leave_after_the_append(tmp_path: Path) -> None:
    """While the leader still brings the records to its own disk."""
    broker = ReplicatedBroker(tmp_path, min_insync_replicas="2", flush_messages="1")
    broker.place(isr=(ME, OTHER))
    begun, partition = broker.begin_produce(), broker.partition
    partition.replica_fetched(OTHER, 20, 1, 0)
    state = broker.parts.metadata.image.topics["t"].partitions[0]
    partition.lead(replace(state, isr=(ME,), partition_epoch=state.partition_epoch + 1))
    assert partition.high_watermark == 1
    produced = broker.produced(begun)
    assert (produced.error_code, produced.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)
    broker.close()


def test_r14_what_was_committed_before_in_sync_replicas_left_is_acknowledged(broker: ReplicatedBroker) -> None:
    begun, partition = broker.begin_produce(), broker.partition
    partition.replica_fetched(OTHER, 20, 1, 0)
    state = broker.parts.metadata.image.topics["t"].partitions[0]
    partition.lead(replace(state, isr=(ME,), partition_epoch=state.partition_epoch + 1))
    assert broker.produced(begun).error_code == ErrorCode.NONE


@pytest.mark.parametrize("leader", [OTHER, -1])
def test_r14_a_leader_that_resigns_tells_who_waits(broker: ReplicatedBroker, leader: int) -> None:
    begun = broker.begin_produce()
    assert not broker.settled(begun)
    broker.place(leader=leader, isr=(OTHER,))
    assert broker.produced(begun).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_r99_a_commit_is_not_told_by_the_records_of_another_leader(broker: ReplicatedBroker) -> None:
    """The role was away and came back in one change, and the high watermark now covers what was never committed."""
    begun = broker.begin_produce()
    assert not broker.settled(begun)
    broker.place(leader=OTHER, isr=(OTHER,))
    broker.place(leader=ME, isr=(ME, THIRD))
    broker.fetch(1, replica_id=THIRD)
    assert broker.partition.high_watermark == 1
    assert broker.produced(begun).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_r99_what_was_cut_away_while_other_partitions_were_written_is_not_acknowledged(
    broker: ReplicatedBroker,
) -> None:
    """The role goes and comes back in the turn that many partitions of one request leave to others."""
    broker.create("u", partitions=8)
    begun = broker.begin_produce(others=("u", 8))
    broker.parts.loop.call_soon(lead_after_another, broker)
    produced = broker.produced(begun)
    assert broker.partition.high_watermark == 1, "it covers another record"
    assert produced.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_r99_a_marker_that_was_cut_away_while_others_were_written_is_not_acknowledged(broker: ReplicatedBroker) -> None:
    producer = {"producer_id": 7, "producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0}
    indexes = {"t": (0,), "nothing": tuple(range(64))}
    topics = [{"name": name, "partition_indexes": some} for name, some in indexes.items()]
    begun = broker.begin(WRITE_TXN_MARKERS, 1, markers=[{**producer, "topics": topics}])
    broker.parts.loop.call_soon(lead_after_another, broker)
    (told,) = broker.finish(begun).markers[0].topics[0].partitions
    assert (told.error_code, broker.partition.high_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)


def lead_after_another(broker: ReplicatedBroker) -> None:
    partition, state = broker.partition, broker.parts.metadata.image.topics["t"].partitions[0]
    assert partition.log.log_end_offset == 1
    partition.follow(Follower(OTHER, state.leader_epoch + 1))
    alone = replace(state, replicas=(ME,), isr=(ME,), leader_epoch=state.leader_epoch + 2)
    partition.lead(alone)


def test_who_leads_on_in_the_next_epoch_still_answers(broker: ReplicatedBroker) -> None:
    begun = broker.begin_produce()
    assert not broker.settled(begun)
    broker.place(isr=(ME, OTHER))
    broker.fetch(1, replica_id=OTHER)
    assert broker.produced(begun).error_code == ErrorCode.NONE


@pytest.mark.parametrize("is_refused_first", [True, False])
def test_r11_a_replica_that_goes_before_it_has_joined_holds_nothing_back(
    broker: ReplicatedBroker, is_refused_first: bool
) -> None:
    """Nobody appends, nobody fetches, and no leader moves: the high watermark has to be looked at by itself."""
    broker.fetch(0, replica_id=THIRD)
    (proposal,) = broker.proposals
    begun = broker.begin_produce()
    broker.fetch(1, replica_id=OTHER)
    assert not broker.settled(begun)
    if is_refused_first:
        broker.partition.in_sync_refused(proposal, ErrorCode.INELIGIBLE_REPLICA)
        assert not broker.settled(begun), "as long as it is there it is about to join"
        broker.lose(THIRD)
    else:
        broker.lose(THIRD)
        assert not broker.settled(begun), "it may have joined"
        broker.partition.in_sync_refused(proposal, ErrorCode.INELIGIBLE_REPLICA)
    assert broker.settled(begun)
    assert broker.produced(begun).error_code == ErrorCode.NONE


def test_r80_a_log_that_fails_tells_who_waits_for_replicas(broker: ReplicatedBroker) -> None:
    begun = broker.begin_produce()
    assert not broker.settled(begun)
    broker.partition.log.take_offline("the disk is gone")
    broker.parts.partitions.directory_failed()
    assert broker.produced(begun).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_r80_a_partition_that_our_own_code_fails_tells_who_waits_for_replicas(broker: ReplicatedBroker) -> None:
    produced = broker.begin_produce()
    assert not broker.settled(produced)
    parked = broker.begin_fetch(0, max_wait=FOR_EVER_MS)
    assert not broker.settled(parked)
    broker.parts.partitions.failed("t", 0, ValueError("a bug"))
    assert broker.produced(produced).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.fetched(parked).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_r34_who_asks_the_wrong_broker_is_told_the_right_one(broker: ReplicatedBroker) -> None:
    broker.place(leader=OTHER)
    response = broker.finish(broker.begin_produce())
    (produced,) = response.responses[0].partition_responses
    assert produced.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (produced.current_leader.leader_id, produced.current_leader.leader_epoch) == (OTHER, broker.epoch)
    (endpoint,) = response.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) == (OTHER, "broker-2.test", 9092, "rack-2")


def test_r34_without_a_leader_the_hint_says_so(broker: ReplicatedBroker) -> None:
    broker.place(leader=-1, isr=(OTHER,))
    response = broker.finish(broker.begin_produce())
    assert response.responses[0].partition_responses[0].current_leader.leader_id == -1
    assert response.node_endpoints == ()


def test_r23_a_topic_of_other_brokers_is_not_led_here_and_no_topic_is_unknown(broker: ReplicatedBroker) -> None:
    broker.parts.partitions.remove("t", 0)
    assert broker.produced(broker.begin_produce()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    begun = broker.begin(
        0, 9, acks=1, topic_data=[{"name": "nothing", "partition_data": [{"index": 0, "records": b""}]}]
    )
    assert broker.produced(begun).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_without_a_proven_session_only_all_replicas_together_may_acknowledge(broker: ReplicatedBroker) -> None:
    broker.parts.partitions.cluster.lease = Unproven()
    assert broker.produced(broker.begin_produce(acks=1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(CloseConnection):
        broker.begin_produce(acks=0)
    assert broker.partition.log.log_end_offset == 0
    begun = broker.begin_produce()
    assert not broker.settled(begun)
    broker.fetch(1, replica_id=OTHER)
    assert broker.produced(begun).error_code == ErrorCode.NONE


def test_without_a_proven_session_the_in_sync_set_is_left_alone(broker: ReplicatedBroker) -> None:
    broker.parts.partitions.cluster.lease = Unproven()
    broker.fetch(0, replica_id=THIRD)
    assert isinstance(broker.clock.monotonic_ms, int)
    broker.clock.monotonic_ms += 60_000
    broker.partition.shrink_in_sync()
    assert broker.proposals == []
