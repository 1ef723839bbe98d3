"""Truncating a follower's log beside everything else: one after the other, never half, and never under a pass."""

import asyncio
from pathlib import Path

import pytest

from lamina.broker.partitions.follower import Follower
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.truncations import Truncations
from lamina.errors import StorageError
from lamina.image.topic import Partition as PartitionState
from lamina.log.checkpoints import HIGH_WATERMARK, read_offsets
from lamina.records.marker import ControlType, build_marker
from tests.broker.in_process import InProcessBroker
from tests.broker.replication.following_broker import FollowingBroker
from tests.broker.replication.test_fetcher import append_epoch, run
from tests.log.building import NOW_MS, a_batch

VALUES = [b"k=%d" % number for number in range(20)]


def of(broker: FollowingBroker) -> tuple[Partition, Truncations]:
    broker.lead(segment_bytes=500)
    partition = broker.replica()
    append_epoch(partition.log, 0, *VALUES)
    partition.high_watermark = 15
    return partition, Truncations(broker.clocks, broker.threads, broker.directories, broker.partitions, broker.cleaning)


def marks(partition: Partition) -> tuple[int, int, int]:
    return partition.log.log_start_offset, partition.high_watermark, partition.log.log_end_offset


def test_r16_a_truncation_lowers_the_high_watermark_to_the_log_end_here_and_on_disk(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        broker.directory.write_high_watermarks({("t", 0): 15})
        await truncations.truncate(partition, 7)
        assert marks(partition) == (0, 7, 7)
        known = read_offsets(broker.directory.disk, f"{broker.directory.path}/{HIGH_WATERMARK}")
        assert known == {("t", 0): 7}
        assert broker.cleaning.paused == broker.cleaning.resumed == [("t", 0)]

    run(tmp_path, scenario)


def test_r89_a_log_that_starts_anew_has_its_high_watermark_there(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        for offset in (40, 30):
            await truncations.start_anew(partition, offset)
            assert marks(partition) == (offset, offset, offset)

    run(tmp_path, scenario)


def test_r16_a_truncation_takes_nothing_back_of_transactions_that_ended_below_the_high_watermark(
    tmp_path: Path,
) -> None:
    """The log's producers are found again by replaying it, which does not know how far it was replicated."""

    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        log = partition.log
        sent = a_batch(b"k=20", base_offset=20, leader_epoch=0, producer_id=7, is_transactional=True)
        marker = build_marker(
            ControlType.COMMIT, offset=21, timestamp_ms=NOW_MS, producer_id=7, producer_epoch=0, coordinator_epoch=0
        )
        for batch in (sent, marker):
            log.append_as_follower(memoryview(batch), NOW_MS)
        append_epoch(log, 0, *VALUES[:3])
        partition.take_watermarks(22, 0)
        assert (partition.high_watermark, partition.last_stable_offset) == (22, 22)
        await truncations.truncate(partition, 23)
        assert (partition.high_watermark, partition.last_stable_offset) == (22, 22)
        await truncations.truncate(partition, 22)
        assert (partition.high_watermark, partition.last_stable_offset) == (22, 22)

    run(tmp_path, scenario)


def test_no_high_watermark_is_ever_outside_of_the_log(tmp_path: Path) -> None:
    """Readers look at it between two steps."""

    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        task = asyncio.create_task(truncations.truncate(partition, 7))
        while not task.done():
            start, high_watermark, end = marks(partition)
            assert start <= high_watermark <= end
            await asyncio.sleep(0)

    run(tmp_path, scenario)


def test_one_truncation_follows_the_other(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        await asyncio.gather(truncations.truncate(partition, 9), truncations.truncate(partition, 5))
        assert marks(partition) == (0, 5, 5)
        assert not partition.log.is_truncating

    run(tmp_path, scenario)


def test_a_log_is_not_cut_for_an_earlier_role_by_a_truncation_that_waited_for_its_turn(tmp_path: Path) -> None:
    """Whoever leads by then has acknowledged what would be cut."""

    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        partition.follow(Follower(1, 0))
        broker.cleaning.gate.clear()
        cutting = [asyncio.create_task(truncations.truncate(partition, offset)) for offset in (15, 5)]
        await asyncio.sleep(0)

        async def lead() -> None:
            partition.resign()
            await truncations.finish(partition)
            partition.lead(PartitionState((2,), 2, 1, (2,)))

        leading = asyncio.create_task(lead())
        await asyncio.sleep(0)
        broker.cleaning.gate.set()
        await asyncio.gather(*cutting, leading)
        assert partition.leader is not None
        assert partition.log.log_end_offset == 20

    run(tmp_path, scenario)


def test_who_gives_up_does_not_leave_a_log_half_cut(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        task = asyncio.create_task(truncations.truncate(partition, 7))
        while not partition.log.is_truncating:
            await asyncio.sleep(0)
        task.cancel()
        await truncations.finish(partition)
        assert not partition.log.is_truncating
        assert not truncations.is_pending(partition)

    run(tmp_path, scenario)


def test_a_partition_that_was_deleted_is_not_truncated(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        broker.partitions.remove("t", 0)
        with pytest.raises(StorageError, match="was deleted"):
            await truncations.truncate(partition, 7)

    run(tmp_path, scenario)


def test_a_truncation_lowers_the_cleaners_checkpoint_and_no_pass_begins_meanwhile(tmp_path: Path) -> None:
    broker = InProcessBroker(tmp_path, {})
    parts = broker.parts
    broker.create("t", cleanup_policy="compact")
    broker.produce("t", 1)
    partition = parts.partitions.get("t", 0)
    for _ in range(4):
        partition.log.roll(parts.clocks.now_ms())
        broker.produce("t", 1)
    (directory,) = parts.directories
    directory.write_cleaner_offsets({("t", 0): 4})
    truncations = Truncations(parts.clocks, parts.threads, parts.directories, parts.partitions, parts.cleaner)
    partition.resign()
    may_begin: list[bool] = []
    partition.log.on_truncate = lambda _: may_begin.append(parts.cleaner.states.may_begin(("t", 0)))
    broker._loop.run_until_complete(truncations.truncate(partition, 2))
    assert set(may_begin) == {False}
    assert parts.cleaner.states.may_begin(("t", 0))
    assert directory.offset_checkpoints.cleaner_offsets["t", 0] <= 2
    assert (partition.high_watermark, partition.log.log_end_offset) == (2, 2)
    broker.close()


def test_a_log_that_this_broker_leads_by_then_is_not_cut(tmp_path: Path) -> None:
    """A truncation waits until a pass of the cleaner is in place: an election may come meanwhile."""

    async def scenario(broker: FollowingBroker) -> None:
        partition, truncations = of(broker)
        partition.follow(Follower(2, 5))
        broker.cleaning.gate.clear()
        truncating = asyncio.create_task(truncations.truncate(partition, 7))
        await broker.until(lambda: bool(broker.cleaning.paused))
        partition.follower = None
        broker.cleaning.gate.set()
        await truncating
        assert partition.log.log_end_offset == len(VALUES)

    run(tmp_path, scenario)
