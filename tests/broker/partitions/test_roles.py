"""A partition that this broker leads, stops leading, and leads with other replicas that have to follow."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamina.broker.partitions.follower import Follower
from lamina.broker.partitions.partition import Partition
from lamina.errors import ErrorCode, KafkaError, NotLeaderOrFollower
from lamina.image.topic import Partition as PartitionState
from lamina.log.epochs import parse_epochs
from lamina.log.flushing import Flusher
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


def follow(partition: Partition, in_sync: tuple[int, ...] = (1, 2)) -> None:
    """Lead on, with another replica."""
    leader = partition.require_leader()
    partition.lead(PartitionState((1, 2), 1, leader.epoch, in_sync, (), leader.partition_epoch + 1))


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
    follow(partition, in_sync=(1,))
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


def test_r20_the_epoch_is_noted_when_it_begins_and_written_with_the_flush_of_its_first_batch(
    broker: InProcessBroker, partition: Partition
) -> None:
    log, leader = partition.log, partition.require_leader()
    partition.lead(PartitionState((1,), 1, leader.epoch + 1, (1,)))
    append(partition)
    partition.flush_in_background()
    broker.run_until(lambda: log.recovery_point == 4)
    assert parse_epochs(Path(log.epochs.path).read_bytes())[-1] == (leader.epoch + 1, 3)
    partition.lead(PartitionState((1,), 1, leader.epoch + 2, (1,)))
    broker.restart()
    entries = broker.parts.partitions.get("t", 0).log.epochs.entries
    assert (leader.epoch + 1, 3) in entries, "and with a clean stop"


def test_it_leads_or_follows_or_does_neither(partition: Partition) -> None:
    epoch = partition.epoch
    partition.follow(Follower(2, epoch + 1))
    assert (partition.leader, partition.epoch, partition.may_grow) == (None, epoch + 1, True)
    with pytest.raises(NotLeaderOrFollower):
        partition.require_leader()
    partition.lead(PartitionState((1, 2), 1, epoch + 2, (1,)))
    assert (partition.follower, partition.epoch) == (None, epoch + 2)
    partition.resign()
    assert not partition.may_grow
    with pytest.raises(NotLeaderOrFollower):
        partition.check_epoch(-1)


def test_r99_a_flush_that_ends_after_the_role_was_lost_promises_nothing(
    broker: InProcessBroker, partition: Partition
) -> None:
    """Not even if this broker leads again, and the high watermark covers other records at those offsets."""
    epoch, told, flushes = partition.epoch, list[KafkaError | None](), list[Callable[[OSError | None], None]]()
    partition = Partition(
        partition.log,
        partition.topic_id,
        Flusher(partition.log, lambda _, done: flushes.append(done), broker.parts.partitions.due),
        partition.rules.max_decompressed_bytes,
        partition.counters,
        partition.free_space,
        broker.parts.partitions.cluster,
        broker.parts.clocks,
    )
    partition.configure(replace(partition.log.config, flush_messages=1), partition.rules.max_decompressed_bytes)
    partition.lead(PartitionState((1,), 1, epoch + 1, (1,)))
    append(partition)
    partition.when_committed(told.append)
    partition.follow(Follower(2, epoch + 2))
    partition.lead(PartitionState((1,), 1, epoch + 3, (1,)))
    assert (partition.high_watermark, told) == (4, [])
    for done in flushes:
        done(None)
    (error,) = told
    assert isinstance(error, NotLeaderOrFollower)


def test_r99_a_leader_after_another_one_keeps_no_waiters(partition: Partition) -> None:
    follow(partition)
    told: list[KafkaError | None] = []
    append(partition)
    partition.when_committed(told.append)
    partition.lead(PartitionState((1,), 1, partition.epoch + 2, (1,)))
    assert partition.high_watermark == 4
    (error,) = told
    assert isinstance(error, NotLeaderOrFollower), "an epoch between them was somebody else's"


def test_fewer_replicas_in_sync_may_be_enough_by_another_config(partition: Partition) -> None:
    limit_bytes = partition.rules.max_decompressed_bytes
    partition.configure(replace(partition.log.config, min_insync_replicas=2), limit_bytes)
    follow(partition, in_sync=(1,))
    append(partition)
    assert partition.high_watermark == 3, "acks=1 writes what nobody sees (R11)"
    partition.configure(replace(partition.log.config, min_insync_replicas=1), limit_bytes)
    assert partition.high_watermark == 4


def test_a_partition_that_grows_and_shrinks_commits_all_the_time(partition: Partition) -> None:
    """Reassigned from this broker alone to two replicas and back."""
    leader = partition.require_leader()
    alone = PartitionState((1,), 1, leader.epoch, (1,), (1,), leader.partition_epoch)
    partition.lead(replace(alone, replicas=(2, 1), adding=(2,)))
    append(partition)
    assert partition.high_watermark == 4, "who is added has not caught up"
    partition.replica_fetched(2, -1, 4, 0)
    partition.lead(replace(alone, replicas=(2, 1), isr=(2, 1), partition_epoch=alone.partition_epoch + 1))
    append(partition)
    assert partition.high_watermark == 4
    told: list[KafkaError | None] = []
    partition.when_committed(told.append)
    partition.lead(replace(alone, leader_epoch=leader.epoch + 1, partition_epoch=alone.partition_epoch + 2))
    assert (partition.high_watermark, told) == (5, [None])
    append(partition)
    assert partition.high_watermark == 6
