"""A follower copies what its leader writes, whatever its own log held before (R15-R32)."""

import asyncio
import errno
import gc
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lamina.broker.partitions.follower import FollowerState
from lamina.broker.partitions.partition import Partition
from lamina.broker.replication.replica_fetchers import fetcher_number
from lamina.errors import ErrorCode, StorageError
from lamina.log import offset_checkpoints
from lamina.log.flushing import Flush, close_cleanly, flush
from lamina.log.partition_log import PartitionLog
from lamina.records import replicated
from lamina.records.batch import walk
from lamina.wire.fetch_response import DivergingEpoch
from tests.broker.replication.following_broker import (
    BROKER_EPOCH,
    LEADER,
    NODE,
    FollowingBroker,
    with_broker,
    without_broker,
)
from tests.broker.replication.memory_leader import FETCH, LIST_OFFSETS
from tests.log.building import NOW_MS, LogBuilder, a_batch, batches_of, records_of
from tests.log.test_following import files, write_something

Scenario = Callable[[FollowingBroker], Coroutine[Any, Any, None]]


def run(tmp_path: Path, scenario: Scenario, **settings: str) -> None:
    async def main() -> None:
        async with FollowingBroker(tmp_path, **settings) as broker:
            await asyncio.wait_for(scenario(broker), 60)

    asyncio.run(main())


def texts(log: PartitionLog) -> list[bytes]:
    return [(record.key or b"") + b"=" + (record.value or b"") for record in records_of(log)]


def same_files(partition: Partition, leader: LogBuilder) -> None:
    for log in (partition.log, leader.log):
        close_cleanly(log)
    ours, theirs = files(Path(partition.log.path)), files(leader.path)
    ours.pop("partition.metadata", None)
    theirs.pop("partition.metadata", None)
    assert ours == theirs


def append_epoch(log: PartitionLog, epoch: int, *values: bytes) -> None:
    """Batches of one record, which this broker wrote when it led."""
    for value in values:
        batch = a_batch(value, base_offset=log.log_end_offset, leader_epoch=epoch)
        log.append_as_follower(bytes(batch), NOW_MS)


# Copying


def test_a_follower_has_its_leaders_files_byte_for_byte(tmp_path: Path) -> None:
    """Producers, transactions, epochs, several segments; more than one answer holds."""

    async def scenario(broker: FollowingBroker) -> None:
        partitions = []
        for index in range(4):
            builder = broker.lead(index=index, segment_bytes=700)
            write_something(builder, Random(index), 60)
            broker.led(index=index).epoch = builder.log.epochs.latest
            partitions.append(broker.replica(index=index))
            broker.follow(partitions[-1])
        for partition in partitions:
            await broker.caught_up(partition)
        for index, partition in enumerate(partitions):
            leader = broker.led(index=index).builder
            assert partition.log.epochs.entries == leader.log.epochs.entries
            leader.log.producers.high_watermark_moved(leader.log.log_end_offset)
            assert partition.log.producers.first_unstable_offset() == leader.log.producers.first_unstable_offset()
            same_files(partition, leader)

    run(tmp_path, scenario, replica_fetch_max_bytes="300")


def test_what_is_written_while_it_follows_comes_too_and_the_high_watermark_with_it(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        follower = broker.follow(partition)
        for number in range(5):
            builder.append(b"k=%d" % number)
            await broker.caught_up(partition)
        assert texts(partition.log) == [b"k=%d" % number for number in range(5)]
        assert (follower.state, follower.lag(5)) == (FollowerState.FETCHING, 0)

    run(tmp_path, scenario)


def test_a_short_answer_is_taken_and_the_next_fetch_sent_in_the_turn_in_which_it_comes(tmp_path: Path) -> None:
    """Each acks=all produce waits for that fetch."""

    async def scenario(broker: FollowingBroker) -> None:
        broker.clock.monotonic_ms = 0
        builder, partition = broker.lead(), broker.replica()
        builder.append(b"k=v")
        broker.follow(partition)
        await broker.caught_up(partition)
        del broker.leader.asked_at_once[:]
        for number in range(5):
            builder.append(b"k=%d" % number)
            await broker.caught_up(partition)
        assert len(broker.leader.asked_at_once) >= 5
        assert all(broker.leader.asked_at_once)

    run(tmp_path, scenario)


def test_an_answer_that_comes_after_the_metadata_has_changed_is_taken_too(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.clock.monotonic_ms = 0
        builder, partition = broker.lead(), broker.replica()
        broker.follow(partition)
        for number in range(9):
            builder.append(b"k=%d" % number)
            await broker.caught_up(partition)
            if number % 3 == 2:
                broker.change_image(with_broker(broker.image, 7 + number, 9007, 1))
        first, *others = broker.leader.fetches()
        assert [request.session_epoch for request in others] == list(range(1, len(others) + 1))
        assert not any(topic.partitions == first.topics[0].partitions for one in others for topic in one.topics)

    run(tmp_path, scenario)


def test_an_answer_that_takes_longer_than_a_turn_leaves_the_loop_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated, "PIECE_BATCHES", 1)

    async def scenario(broker: FollowingBroker) -> None:
        broker.clock.monotonic_ms = 0
        broker.lead().append_batches(50)
        partition = broker.replica()
        append, ends = partition.append_as_follower, set[int]()

        def slow(batches: memoryview, now_ms: int) -> None:
            append(batches, now_ms)
            broker.clock.monotonic_ms = partition.log.log_end_offset

        monkeypatch.setattr(Partition, "append_as_follower", lambda _, batches, now_ms: slow(batches, now_ms))
        broker.follow(partition)
        while partition.high_watermark < 50:
            await asyncio.sleep(0)
            ends.add(partition.log.log_end_offset)
        assert len(ends) >= 50
        assert texts(partition.log) == texts(broker.led().builder.log)

    run(tmp_path, scenario)


def test_r15_the_high_watermark_is_the_leaders_not_the_log_end(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(5)
        broker.led().high_watermark = 3
        partition = broker.replica()
        broker.follow(partition)
        await broker.caught_up(partition)
        assert (partition.high_watermark, partition.log.log_end_offset) == (3, 5)

    run(tmp_path, scenario)


def test_r6_what_flush_messages_wants_on_disk_is_there_before_a_fetch_says_that_this_replica_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader takes the offset of a fetch for what the follower has. As in Kafka, the next fetch waits for all."""
    may_flush, run_flush = threading.Event(), Flush.run

    def wait_and_flush(self: Flush) -> None:
        may_flush.wait(30)
        run_flush(self)

    monkeypatch.setattr(Flush, "run", wait_and_flush)

    async def scenario(broker: FollowingBroker) -> None:
        broker.lead(flush_messages=1).append(b"k=0")
        partition = broker.replica()
        broker.follow(partition)
        await broker.until(lambda: partition.log.log_end_offset == 1)
        asked = len(broker.leader.fetches())
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(broker.leader.fetches()) == asked
        may_flush.set()
        await broker.until(lambda: len(broker.leader.fetches()) > asked)
        assert partition.log.recovery_point == 1
        broker.led(index=0).builder.append(b"k=1")
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_a_follower_goes_on_after_a_flush_for_which_descriptors_were_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors, run_flush = [OSError(errno.EMFILE, "Too many open files")], Flush.run

    def fail_once(self: Flush) -> None:
        if errors:
            raise errors.pop()
        run_flush(self)

    monkeypatch.setattr(Flush, "run", fail_once)

    async def scenario(broker: FollowingBroker) -> None:
        broker.lead(flush_messages=1).append(b"k=0")
        partition = broker.replica()
        broker.follow(partition)
        await broker.until(lambda: partition.log.recovery_point == 1)
        broker.led().builder.append(b"k=1")
        await broker.caught_up(partition)
        assert not errors

    run(tmp_path, scenario)


def test_gaps_of_a_compacted_log_are_copied(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        for base_offset in (3, 8, 2**31 + 20):
            builder.log.append_as_follower(bytes(a_batch(b"k=v", base_offset=base_offset, leader_epoch=0)), NOW_MS)
        partition = broker.replica()
        broker.follow(partition)
        await broker.caught_up(partition)
        assert [header.base_offset for header, _ in batches_of(partition.log)] == [3, 8, 2**31 + 20]
        same_files(partition, builder)

    run(tmp_path, scenario)


def test_r1_a_fetch_says_who_asks_and_what_it_has(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(3, epoch=0)
        broker.led().elect()
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0")
        broker.follow(partition)
        await broker.caught_up(partition)
        first = broker.leader.fetches()[0]
        assert (first.replica_id, first.replica_epoch, first.session_epoch) == (NODE, BROKER_EPOCH, 0)
        ((_, topic_id, (asked,)),) = first.topics
        assert topic_id == partition.topic_id
        assert asked[:5] == (0, 1, 1, 0, 0)
        assert broker.leader.asked[0][1] == f"broker-{NODE}-fetcher-0"

    run(tmp_path, scenario)


def test_sessions_are_incremental_and_many_partitions_share_a_request(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        partitions = []
        for index in range(20):
            broker.lead(index=index).append_batches(2)
            partitions.append(broker.replica(index=index))
            broker.follow(partitions[-1])
        for partition in partitions:
            await broker.caught_up(partition)
        first, *later = broker.leader.fetches()
        assert len(first.topics[0].partitions) == 20
        await broker.until(lambda: not broker.leader.pending())
        assert all(led.parked for led in broker.leader.led.values()), "nobody is looked at before it has changed"
        broker.led(index=7).builder.append(b"k=v")
        await broker.caught_up(partitions[7])
        told = [one.partition_index for one in broker.leader.fetches()[-1].topics[0].partitions]
        assert told == [7]
        assert all(request.session_epoch > 0 for request in later)

    run(tmp_path, scenario)


# Logs that differ


def test_r83_a_foreign_tail_of_several_epochs_is_cut_epoch_by_epoch(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, led = broker.lead(), broker.led()
        builder.append_batches(5)
        for epoch in (1, 3):
            builder.append(b"leader=%d" % epoch, epoch=epoch)
        led.epoch = 4
        led.elect()
        partition = broker.replica()
        append_epoch(partition.log, 0, *(b"k%d=v%d" % (number, number) for number in range(5)))
        append_epoch(partition.log, 2, b"foreign=2", b"foreign=2")
        append_epoch(partition.log, 4, b"foreign=4")
        partition.high_watermark = 5
        broker.follow(partition)
        await broker.caught_up(partition)
        assert texts(partition.log) == [*(b"k%d=v%d" % (n, n) for n in range(5)), b"leader=1", b"leader=3"]
        assert [entry.epoch for entry in partition.log.epochs.entries] == [0, 1, 3]
        asked = [one.last_fetched_epoch for request in broker.leader.fetches() for t in request.topics for one in t[2]]
        assert asked[:3] == [4, 2, 0]
        assert broker.cleaning.paused == broker.cleaning.resumed == [("t", 0)] * 2

    run(tmp_path, scenario)


def test_r82_what_is_above_the_high_watermark_and_the_leaders_too_is_kept(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(2)
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        ends: list[int] = []
        partition.log.on_truncate = ends.append
        broker.follow(partition)
        await broker.caught_up(partition)
        assert ends == []

    run(tmp_path, scenario)


def test_r84_an_epoch_without_records_does_not_diverge_for_ever(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, led = broker.lead(), broker.led()
        builder.append_batches(2)
        led.epoch = 3
        led.elect()
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        partition.log.epochs.assign(3, 2)
        broker.follow(partition)
        await broker.until(lambda: partition.high_watermark == 2)
        builder.append(b"new=1", epoch=4)
        await broker.caught_up(partition)
        assert [entry.epoch for entry in partition.log.epochs.entries] == [0, 4]

    run(tmp_path, scenario)


def test_r85_no_high_watermark_is_taken_before_the_log_is_cut(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, led = broker.lead(), broker.led()
        builder.append_batches(2)
        led.epoch = 1
        led.elect()
        builder.append_batches(8, epoch=2)
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        append_epoch(partition.log, 1, b"foreign=1", b"foreign=2", b"foreign=3")
        partition.high_watermark = 2
        seen: list[tuple[int, bool]] = []
        partition.log.on_truncate = lambda end: seen.append((partition.high_watermark, end == 2))
        broker.follow(partition)
        await broker.caught_up(partition)
        assert seen
        assert set(seen) == {(2, True)}

    run(tmp_path, scenario)


def test_r21_a_log_without_epochs_is_cut_to_its_high_watermark_first(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(6)
        partition = broker.replica()
        append_epoch(partition.log, -1, b"k0=v0", b"k1=v1", b"foreign=2")
        partition.high_watermark = 2
        broker.follow(partition)
        await broker.caught_up(partition)
        assert texts(partition.log) == texts(broker.led().builder.log)

    run(tmp_path, scenario)


# Out of range


def test_r29_a_follower_below_the_leaders_log_start_begins_anew_there(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append_batches(9)
        builder.log.advance_log_start(6)
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        broker.follow(partition)
        await broker.caught_up(partition)
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (6, 9)
        assert texts(partition.log) == texts(builder.log)
        asked = [request for key, _, request in broker.leader.asked if key == LIST_OFFSETS]
        assert [(one.replica_id, one.topics[0].partitions[0].timestamp) for one in asked] == [(NODE, -1), (NODE, -2)]
        assert asked[0].topics[0].partitions[0].current_leader_epoch == 0

    run(tmp_path, scenario)


def test_r29_a_follower_longer_than_a_leader_that_has_no_epochs_is_cut(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead()
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        broker.follow(partition)
        await broker.until(lambda: not partition.log.epochs.entries)
        assert partition.log.log_end_offset == 0

    run(tmp_path, scenario)


def test_r30_a_leader_whose_log_starts_inside_a_batch_is_followed(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append(b"a=0", b"a=1", b"a=2")
        builder.append(b"b=3", b"b=4", b"b=5", b"b=6")
        builder.log.advance_log_start(5)
        partition = broker.replica()
        broker.follow(partition)
        await broker.caught_up(partition)
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (5, 7)
        assert texts(partition.log) == [b"b=5", b"b=6"]
        assert batches_of(partition.log)[0][0].base_offset == 3

    run(tmp_path, scenario)


def test_r30_a_foreign_tail_that_ends_where_the_leaders_log_starts_inside_a_batch_is_given_up(tmp_path: Path) -> None:
    """The leader has deleted all that could tell that the tail is foreign: its oldest epoch begins where that ends."""

    async def scenario(broker: FollowingBroker) -> None:
        builder, led = broker.lead(), broker.led()
        builder.append(b"a=0", b"a=1", b"a=2")
        builder.append(b"b=3", b"b=4", b"b=5", b"b=6", epoch=4)
        builder.log.advance_log_start(5)
        led.epoch = 4
        partition = broker.replica()
        append_epoch(partition.log, 0, b"a=0", b"a=1", b"a=2")
        append_epoch(partition.log, 3, b"foreign=3", b"foreign=4")
        broker.follow(partition)
        await broker.caught_up(partition)
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (5, 7)
        assert texts(partition.log) == [b"b=5", b"b=6"]

    run(tmp_path, scenario)


def test_r29_out_of_range_for_no_reason_keeps_the_log_and_is_tried_again_after_a_back_off(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(3)
        broker.led().error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        follower = broker.follow(partition)
        await broker.until(lambda: follower.has_waited_for("in line"))
        assert partition.log.log_end_offset == 2
        broker.led().error_code = 0
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_r29_a_log_is_not_cut_for_a_role_that_is_gone_by_then(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead()
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        broker.leader.on_list_offsets = partition.resign
        broker.follow(partition)
        await broker.until(lambda: partition.follower is None)
        await broker.fetchers.stop()
        assert partition.log.log_end_offset == 2

    run(tmp_path, scenario)


def test_r17_deleted_records_are_deleted_here_too(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append_batches(9)
        partition = broker.replica()
        broker.follow(partition)
        await broker.caught_up(partition)
        builder.log.advance_log_start(4)
        await broker.until(lambda: partition.log.log_start_offset == 4)
        await broker.until(
            lambda: any(
                one.log_start_offset == 4
                for request in broker.leader.fetches()
                for topic in request.topics
                for one in topic[2]
            )
        )

    run(tmp_path, scenario)


# What goes wrong


@pytest.mark.parametrize(
    "error_code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR]
)
def test_r32_a_refused_partition_is_fetched_again_after_a_back_off_and_holds_up_no_other(
    tmp_path: Path, error_code: ErrorCode
) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        for index in range(2):
            broker.lead(index=index).append_batches(2)
        refused, other = broker.replica(index=0), broker.replica(index=1)
        broker.led(index=0).error_code = error_code
        follower = broker.follow(refused)
        broker.follow(other)
        await broker.caught_up(other)
        await broker.until(lambda: follower.has_waited_for(error_code.name))
        broker.led(index=0).error_code = 0
        await broker.caught_up(refused)
        assert follower.state is FollowerState.FETCHING

    run(tmp_path, scenario)


def test_r32_a_follower_that_heard_of_the_election_before_its_leader_is_kept_waiting_for_an_instant_only(
    tmp_path: Path,
) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(2)
        partition = broker.replica()
        broker.led().error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
        follower = broker.follow(partition)
        await broker.until(lambda: bool(follower.waited_for))
        broker.led().error_code = 0
        await broker.caught_up(partition)

    run(tmp_path, scenario, replica_fetch_backoff_ms="3600000")


@pytest.mark.parametrize(("backoff_ms", "lines"), [(3_600_000, 0), (40, 1)])
def test_r32_only_what_is_refused_for_long_is_logged_and_that_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, backoff_ms: int, lines: int
) -> None:
    """A topic is created on all brokers at once: its leader may hear of it a moment after its followers."""

    async def scenario(broker: FollowingBroker) -> None:
        broker.lead()
        broker.led().error_code = ErrorCode.UNKNOWN_TOPIC_ID
        follower = broker.follow(broker.replica())
        await broker.until(lambda: len(follower.waited_for) >= 4)
        assert len([one for one in caplog.messages if "fetch failed, retrying" in one]) == lines

    with caplog.at_level("INFO"):
        run(tmp_path, scenario, replica_fetch_backoff_ms=str(backoff_ms))


def test_r32_a_fenced_follower_waits_for_the_next_epoch(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(2)
        broker.led().elect()
        partition = broker.replica()
        fenced = broker.follow(partition, epoch=0)
        await broker.until(lambda: fenced.state is FollowerState.FAILED)
        asked = len(broker.leader.fetches())
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert len(broker.leader.fetches()) == asked
        broker.follow(partition, epoch=1)
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_r31_corrupt_records_are_not_appended_and_are_fetched_again(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append_batches(2)
        broker.leader.spoil = lambda records: records[:-1] + bytes([records[-1] ^ 1])
        partition = broker.replica()
        follower = broker.follow(partition)
        await broker.until(lambda: follower.has_waited_for("CRC"))
        assert partition.log.log_end_offset == 0
        broker.leader.spoil = None
        await broker.caught_up(partition)
        same_files(partition, builder)

    run(tmp_path, scenario)


def test_r31_a_batch_whose_offset_flipped_on_the_leaders_disk_is_not_appended(tmp_path: Path) -> None:
    """No CRC covers a base offset. Behind the leader's end it would be cut, and fetched again at once, for ever."""

    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append_batches(8)

        def flipped(records: bytes) -> bytes:
            spoiled = bytearray(records)
            for position, header in walk(records):
                if header.base_offset == 2:
                    spoiled[position + 7] ^= 0x40
            return bytes(spoiled)

        broker.leader.spoil = flipped
        partition = broker.replica()
        follower = broker.follow(partition)
        await broker.until(lambda: follower.has_waited_for("offset 3 comes after offset 66"))
        assert partition.log.log_end_offset <= 2
        broker.leader.spoil = None
        await broker.caught_up(partition)
        same_files(partition, builder)

    run(tmp_path, scenario)


def test_r31_records_without_a_whole_batch_are_fetched_again_after_a_back_off(tmp_path: Path) -> None:
    """A leader sends its first batch whole: one that does not must not be asked again at once, and for ever."""

    async def scenario(broker: FollowingBroker) -> None:
        broker.leader.spoil = lambda records: records[:-1]
        broker.lead().append(b"k=v")
        partition = broker.replica()
        follower = broker.follow(partition)
        await broker.until(lambda: len(broker.leader.fetches()) > 3)
        assert follower.has_waited_for("no whole batch")
        assert partition.log.log_end_offset == 0
        broker.leader.spoil = None
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_r31_a_batch_of_a_later_epoch_than_the_fetchs_is_left_for_the_next_role(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append_batches(2)
        builder.append(b"later=1", epoch=1)
        partition = broker.replica()
        broker.follow(partition)
        await broker.until(lambda: len(broker.leader.fetches()) > 3)
        assert partition.log.log_end_offset == 2
        broker.led().epoch = 1
        broker.follow(partition)
        await broker.caught_up(partition)
        assert partition.log.log_end_offset == 3

    run(tmp_path, scenario)


def test_r31_an_answer_for_another_offset_than_the_log_end_is_not_taken(tmp_path: Path) -> None:
    """As it is when the partition went to another fetcher and came back while the request was under way."""

    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append(b"k=0")
        partition = broker.replica()

        def grow(records: bytes) -> bytes:
            if not partition.log.log_end_offset:
                append_epoch(partition.log, 0, b"k=0")
            return records

        broker.leader.spoil = grow
        follower = broker.follow(partition)
        builder.append(b"k=1")
        await broker.caught_up(partition)
        assert follower.state is FollowerState.FETCHING
        assert texts(partition.log) == [b"k=0", b"k=1"]

    run(tmp_path, scenario)


def test_r27_a_leader_that_diverges_below_zero_is_not_believed(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(3)
        broker.led().diverging = DivergingEpoch(0, -5)
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        follower = broker.follow(partition)
        await broker.until(lambda: follower.has_waited_for("-5"))
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (0, 2)
        broker.led().diverging = None
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_r29_a_leader_that_does_not_know_its_offsets_is_not_believed(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(3)
        broker.led().error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        broker.led().listed_offset = -1
        partition = broker.replica()
        append_epoch(partition.log, 0, b"k0=v0", b"k1=v1")
        follower = broker.follow(partition)
        await broker.until(lambda: follower.has_waited_for("-1"))
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (0, 2)
        broker.led().error_code = 0
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_r31_a_log_does_not_start_anew_with_a_batch_that_is_corrupt(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append(b"a=0", b"a=1", b"a=2")
        builder.log.advance_log_start(1)
        broker.leader.spoil = lambda records: records[:-1] + bytes([records[-1] ^ 1])
        partition = broker.replica()
        follower = broker.follow(partition)
        await broker.until(lambda: follower.has_waited_for("CRC"))
        assert partition.log.log_start_offset == partition.log.log_end_offset == 1
        broker.leader.spoil = None
        await broker.caught_up(partition)
        assert texts(partition.log) == [b"a=1", b"a=2"]

    run(tmp_path, scenario)


def test_r30_a_batch_below_the_log_end_fails_the_partition(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append(b"a=0", b"a=1", b"a=2")
        partition = broker.replica()
        append_epoch(partition.log, 0, b"a=0", b"a=1")
        follower = broker.follow(partition)
        await broker.until(lambda: follower.state is FollowerState.FAILED)
        assert "a batch for offset 0" in follower.reason
        assert partition.log.log_end_offset == 2

    run(tmp_path, scenario)


def test_r3_a_lost_session_is_begun_anew(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        broker.follow(partition)
        builder.append(b"k=0")
        await broker.caught_up(partition)
        broker.leader.sessions._sessions.clear()
        builder.append(b"k=1")
        await broker.caught_up(partition)
        assert texts(partition.log) == [b"k=0", b"k=1"]

    run(tmp_path, scenario, replica_fetch_backoff_ms="3600000")


def test_a_leader_that_cannot_be_reached_is_tried_again(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        broker.leader.is_reachable = False
        broker.follow(partition)
        builder.append(b"k=0")
        for _ in range(5):
            await asyncio.sleep(0.001)
        broker.leader.is_reachable = True
        await broker.caught_up(partition)
        builder.append(b"k=1")
        for connection in broker.leader.connections:
            connection.break_off()
        await broker.caught_up(partition)
        assert len(broker.leader.connections) == 2

    run(tmp_path, scenario)


def test_a_failed_disk_ends_following_in_this_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(2)
        partition = broker.replica()

        def fail(*_: Any) -> None:
            raise partition.log.fail(OSError(5, "Input/output error"))

        monkeypatch.setattr(partition.log, "append_as_follower", fail)
        follower = broker.follow(partition)
        await broker.until(lambda: follower.state is FollowerState.FAILED)
        assert "Input/output error" in follower.reason

    run(tmp_path, scenario)


def test_our_own_fault_takes_the_partition_offline_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        for index in range(2):
            broker.lead(index=index).append_batches(2)
        broken, other = broker.replica(index=0), broker.replica(index=1)
        monkeypatch.setattr(broken.log, "append_as_follower", lambda *_: 1 // 0)
        follower = broker.follow(broken)
        broker.follow(other)
        await broker.caught_up(other)
        await broker.until(lambda: follower.state is FollowerState.FAILED)
        assert broken.log.failure is not None

    run(tmp_path, scenario)


@pytest.mark.parametrize("free_bytes", [500, 1001], ids=["low", "becomes low"])
def test_r80_a_follower_on_a_disk_that_is_nearly_full_waits_instead_of_filling_it(
    tmp_path: Path, free_bytes: int
) -> None:
    """A full disk would take the directory offline, with all that this broker leads there."""

    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(3)
        partition = broker.replica()
        partition.free_space.measured(free_bytes, 0, min_bytes=1000)
        follower = broker.follow(partition)
        await broker.until(lambda: follower.has_waited_for("nearly full"))
        assert partition.log.log_end_offset == 0
        partition.free_space.measured(10_000, 0, min_bytes=1000)
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_r17_a_follower_on_a_disk_that_is_nearly_full_takes_what_its_leader_deletes(tmp_path: Path) -> None:
    """DeleteRecords is how an operator makes space: it must reach those that have none."""

    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append_batches(9)
        partition = broker.replica()
        follower = broker.follow(partition)
        await broker.caught_up(partition)
        partition.free_space.measured(500, 0, min_bytes=1000)
        builder.append_batches(3)
        await broker.until(lambda: follower.has_waited_for("nearly full"))
        builder.log.advance_log_start(5)
        await broker.until(lambda: partition.log.log_start_offset == 5)
        assert partition.log.log_end_offset == 9
        # The leader is told: whoever asked it to delete waits for that (R17).
        await broker.until(lambda: 5 in [one.log_start_offset for one in broker.leader.asked_of_partitions()])
        partition.free_space.measured(10_000, 0, min_bytes=1000)
        await broker.caught_up(partition)
        assert follower.state is FollowerState.FETCHING

    run(tmp_path, scenario)


def test_r80_what_a_nearly_full_disk_does_not_take_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(3)
        partition = broker.replica()
        partition.free_space.measured(500, 0, min_bytes=1000)
        broker.follow(partition)
        await broker.until(lambda: partition.follower is not None and partition.follower.leader_high_watermark == 3)
        for _ in range(20):
            await asyncio.sleep(0.001)
        (request,) = broker.leader.fetches()
        assert request.topics[0].partitions[0].max_bytes == 0

    run(tmp_path, scenario, replica_fetch_backoff_ms="3600000")


def test_r27_a_truncation_that_a_full_disk_interrupted_is_taken_up_again_when_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder = broker.lead()
        builder.append_batches(3)
        broker.led().elect()
        partition = broker.replica()
        append_epoch(partition.log, 0, *(b"k%d=v%d" % (number, number) for number in range(6)))
        flush(partition.log)
        broker.directory.write_recovery_points()
        with monkeypatch.context() as patch:

            def write(*_: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            patch.setattr(offset_checkpoints, "write_offsets", write)
            follower = broker.follow(partition)
            await broker.until(lambda: follower.has_waited_for("No space left"))
            assert partition.log.is_truncating
        builder.append(b"new=3", epoch=1)
        await broker.caught_up(partition)
        assert follower.state is FollowerState.FETCHING
        assert texts(partition.log) == texts(builder.log)

    run(tmp_path, scenario)


# Roles


@pytest.mark.filterwarnings("always")
def test_a_log_that_is_not_followed_any_more_before_its_alignment_began_leaves_nothing_behind(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Work that was never begun would be told of when it is garbage, and be taken for somebody else's."""

    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(2)
        partition = broker.replica()
        append_epoch(partition.log, -1, b"k0=v0", b"k1=v1")
        broker.follow(partition)
        broker.fetchers.partition_resigned(partition)
        broker.change_image(broker.image)
        await asyncio.sleep(0)

    run(tmp_path, scenario)
    gc.collect()
    assert [one for one in recwarn if "was never awaited" in str(one.message)] == []


def test_nothing_is_followed_after_the_stop_though_the_metadata_says_so(tmp_path: Path) -> None:
    """Leaders move while a broker drains, and its logs are closed next: what came then would not be flushed."""

    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(2)
        partition = broker.replica()
        broker.follow(partition)
        await broker.caught_up(partition)
        await broker.fetchers.stop()
        broker.led().elect()
        broker.led().builder.append(b"k=v", epoch=1)
        asked = len(broker.leader.fetches())
        broker.follow(partition)
        broker.change_image(broker.image)
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert (partition.log.log_end_offset, len(broker.leader.fetches())) == (2, asked)

    run(tmp_path, scenario)


def test_who_leads_again_takes_nothing_more(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        broker.follow(partition)
        builder.append(b"k=0")
        await broker.caught_up(partition)
        partition.resign()
        broker.fetchers.partition_led(partition)
        builder.append(b"k=1")
        broker.leader.grown()
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert partition.log.log_end_offset == 1

    run(tmp_path, scenario)


def test_r21_another_epoch_of_the_same_leader_starts_the_partition_again(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        broker.follow(partition)
        builder.append(b"k=0")
        await broker.caught_up(partition)
        broker.led().elect()
        builder.append(b"k=1", epoch=1)
        broker.follow(partition)
        await broker.caught_up(partition)
        assert [entry.epoch for entry in partition.log.epochs.entries] == [0, 1]

    run(tmp_path, scenario)


def test_r15_what_an_answer_to_an_earlier_role_said_is_told_again(tmp_path: Path) -> None:
    """The leader takes the high watermark for told; nothing else may happen for long."""

    async def scenario(broker: FollowingBroker) -> None:
        broker.lead().append_batches(5)
        broker.led().high_watermark = 3
        partition = broker.replica()
        broker.follow(partition)
        await broker.caught_up(partition)
        broker.leader.gate.clear()
        broker.led().high_watermark = 5
        await broker.until(lambda: broker.leader.is_held)
        broker.led().elect()
        broker.follow(partition)
        broker.leader.gate.set()
        await broker.caught_up(partition)
        assert partition.high_watermark == 5

    run(tmp_path, scenario)


def test_r15_what_came_with_records_that_a_new_role_interrupted_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        broker.follow(partition)
        append = partition.append_as_follower

        def append_and_change_role(batches: memoryview, now_ms: int) -> None:
            append(batches, now_ms)
            if not broker.led().epoch:
                broker.led().elect()
                broker.follow(partition)

        monkeypatch.setattr(Partition, "append_as_follower", lambda _, *given: append_and_change_role(*given))
        builder.append(b"k=0")
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_a_leader_that_is_not_in_the_cluster_is_waited_for(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        builder.append(b"k=0")
        here = broker.image
        broker.image = without_broker(here, LEADER)
        broker.follow(partition)
        await asyncio.sleep(0)
        assert broker.leader.asked == []
        broker.change_image(here)
        await broker.caught_up(partition)

    run(tmp_path, scenario)


def test_a_leader_that_starts_again_elsewhere_is_followed_there(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        broker.follow(partition)
        builder.append(b"k=0")
        await broker.caught_up(partition)
        ((address, leader),) = broker.leaders.items()
        broker.leaders.clear()
        broker.leaders[address._replace(port=9009)] = leader
        broker.change_image(with_broker(broker.image, LEADER, 9009, epoch=6))
        builder.append(b"k=1")
        await broker.caught_up(partition)
        assert len(leader.connections) == 2

    run(tmp_path, scenario)


def test_a_leader_that_comes_back_is_not_waited_for_until_the_back_off_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.broker.backoff.FIRST_SECONDS", 3600)

    async def scenario(broker: FollowingBroker) -> None:
        builder, partition = broker.lead(), broker.replica()
        builder.append(b"k=0")
        broker.leader.is_reachable = False
        broker.follow(partition)
        for _ in range(20):
            await asyncio.sleep(0)
        broker.leader.is_reachable = True
        broker.change_image(with_broker(broker.image, LEADER, 9001, epoch=6))
        await broker.caught_up(partition)

    run(tmp_path, scenario, replica_fetch_backoff_ms="3600000")


def test_the_lag_is_that_of_the_replica_that_is_furthest_behind(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        assert broker.fetchers.max_lag() == 0
        for index in range(2):
            broker.lead(index=index).append_batches(2)
            broker.follow(broker.replica(index=index))
        partition = broker.partitions.get("t", 1)
        await broker.caught_up(partition)
        assert broker.fetchers.max_lag() == 0
        assert partition.follower is not None
        partition.follower.leader_high_watermark = partition.log.log_end_offset + 7
        assert broker.fetchers.max_lag() == 7

    run(tmp_path, scenario)


def test_a_broker_that_stops_asks_no_more(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        _, partition = broker.lead(), broker.replica()
        broker.follow(partition)
        await broker.until(lambda: bool(broker.leader.fetches()))
        await broker.fetchers.stop()
        asked = len(broker.leader.fetches())
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert len(broker.leader.fetches()) == asked

    run(tmp_path, scenario)


def test_partitions_are_divided_among_fetchers_and_again_when_their_number_changes(tmp_path: Path) -> None:
    async def scenario(broker: FollowingBroker) -> None:
        partitions = []
        for index in range(4):
            broker.lead(index=index).append_batches(1)
            partitions.append(broker.replica(index=index))
            broker.follow(partitions[-1])
        for partition in partitions:
            await broker.caught_up(partition)
        lanes = {client for key, client, _ in broker.leader.asked if key == FETCH}
        assert lanes == {f"broker-{NODE}-fetcher-0", f"broker-{NODE}-fetcher-1"}
        broker.fetchers.settings_changed(FollowingBroker(tmp_path, num_replica_fetchers="1").settings)
        for index in range(4):
            broker.led(index=index).builder.append(b"k=v")
        for partition in partitions:
            await broker.caught_up(partition)
        assert broker.leader.asked[-1][1] == f"broker-{NODE}-fetcher-0"

    run(tmp_path, scenario, num_replica_fetchers="2")


def test_r31_a_fetcher_that_has_given_a_partition_away_says_nothing_of_it_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails while it works on an answer: the fetcher that has the partition now must not take that for its own."""

    async def scenario(broker: FollowingBroker) -> None:
        index = next(index for index in range(2) if fetcher_number("t", index, 2) == 1)
        broker.lead(index=index).append(b"k=0")
        partition = broker.replica(index=index)
        append, two = partition.append_as_follower, FollowingBroker(tmp_path, num_replica_fetchers="2").settings

        def move_and_fail(_: Partition, batches: memoryview, now_ms: int) -> None:
            if broker.settings is not two:
                broker.settings = two
                broker.fetchers.settings_changed(two)
                raise StorageError("the first fetcher fails")
            append(batches, now_ms)

        monkeypatch.setattr(Partition, "append_as_follower", move_and_fail)
        broker.follow(partition)
        await broker.caught_up(partition)
        assert broker.leader.asked[-1][1] == f"broker-{NODE}-fetcher-1"

    run(tmp_path, scenario)
