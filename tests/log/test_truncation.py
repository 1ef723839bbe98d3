"""Truncating, and moving the start."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.errors import OffsetOutOfRange, StorageError
from lamina.log.epochs import EpochStart
from lamina.log.flushing import flush
from lamina.log.snapshots import snapshot_offsets
from lamina.log.steps import Step, run_steps
from tests.log.building import LogBuilder, a_log, truncate_log


def sequenced(builder: LogBuilder, batches: int, first: int = 0) -> None:
    for number in range(first, first + batches):
        builder.append(b"k=%d" % number, producer_id=1, producer_epoch=0, base_sequence=number)


@pytest.mark.parametrize("offset", range(26))
def test_truncating_to_any_offset_leaves_what_was_below_it(tmp_path: Path, offset: int) -> None:
    builder = a_log(tmp_path, segment_bytes=500)
    sequenced(builder, 25)
    flush(builder.log)
    truncate_log(builder.log, offset, builder.now_ms)
    assert builder.texts() == [b"k=%d" % number for number in range(min(offset, 25))]
    assert builder.log.log_end_offset == builder.log.recovery_point == min(offset, 25)
    assert max(snapshot_offsets(builder.disk, str(builder.path)), default=0) <= offset
    sequenced(builder, 3, first=min(offset, 25))
    assert builder.log.log_end_offset == min(offset, 25) + 3
    assert not builder.reopen(clean=False, recovery_point=0).truncated_bytes
    assert builder.texts() == [b"k=%d" % number for number in range(min(offset, 25) + 3)]


def test_a_cut_never_reaches_another_name_of_the_file(tmp_path: Path) -> None:
    """A backup may have linked the segment while it was closed."""
    builder = a_log(tmp_path, segment_bytes=500)
    builder.append_batches(25)
    base = builder.bases()[1]
    linked = tmp_path / "linked.log"
    linked.hardlink_to(builder.file(base, ".log"))
    before = linked.read_bytes()
    lease = builder.log.read(base, 1 << 20)
    assert lease is not None
    truncate_log(builder.log, base + 2, builder.now_ms)
    builder.append_batches(3)
    assert linked.read_bytes() == before
    assert not builder.disk.is_shared(str(linked))
    with lease:
        assert lease.read() == before
    assert builder.log.log_end_offset == base + 5
    assert not builder.reopen(clean=False, recovery_point=0).truncated_bytes
    assert [record.offset for record in builder.records()] == list(range(base + 5))


def test_a_truncation_leaves_the_indexes_to_the_segment_that_is_written(tmp_path: Path) -> None:
    """Producers are read again from a snapshot inside of it, while its preallocated indexes look untrue."""
    builder = a_log(tmp_path, segment_index_bytes=64, index_interval_bytes=1)
    sequenced(builder, 3)
    builder.reopen()
    sequenced(builder, 2, first=3)
    assert snapshot_offsets(builder.disk, str(builder.path)) == [3]
    truncate_log(builder.log, 4, builder.now_ms)
    sequenced(builder, 20, first=4)
    assert len(builder.bases()) > 1, "it was closed, and is read by its names from now on"
    assert builder.file(0, ".index").stat().st_size > 0
    for offset in range(24):
        builder.read(offset, 1)


def test_a_batch_that_reaches_the_offset_goes_as_a_whole(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append(b"a=1", b"b=2")
    builder.append(b"c=3", b"d=4", b"e=5")
    truncate_log(builder.log, 4, builder.now_ms)
    assert (builder.log.log_end_offset, builder.texts()) == (2, [b"a=1", b"b=2"])


def test_truncation_takes_back_epochs_transactions_and_producers(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    transaction = {"producer_id": 1, "producer_epoch": 0, "is_transactional": True}
    builder.append(b"a=1", base_sequence=0, **transaction)
    builder.append(b"b=2", epoch=3)
    builder.abort(1)
    assert builder.log.producers.first_unstable_offset() == 0
    builder.log.producers.high_watermark_moved(3)
    assert builder.log.producers.first_unstable_offset() is None
    truncate_log(builder.log, 1, builder.now_ms)
    assert builder.log.epochs.entries == [EpochStart(0, 0)]
    assert builder.log.producers.first_unstable_offset() == 0
    assert builder.log.segments.aborted_between(0, 10) == []
    assert builder.append(b"c=3", base_sequence=1, **transaction).first_offset == 1


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_truncation_forgets_no_producer_whose_records_are_deleted_and_still_there(
    tmp_path: Path, *, has_snapshot: bool
) -> None:
    """It goes on where it was: what was cut away is not what it wrote."""
    builder = a_log(tmp_path)
    sequenced(builder, 2)
    if has_snapshot:
        builder.reopen()
    sequenced(builder, 3, first=2)
    for _ in range(3):
        builder.append(b"k=v")
    builder.log.advance_log_start(6)
    truncate_log(builder.log, 7, builder.now_ms)
    assert builder.log.producers.producers[1].last_sequence == 4
    assert builder.append(b"k=5", producer_id=1, producer_epoch=0, base_sequence=5).first_offset == 7


def test_truncated_segments_are_removed_from_the_end_and_later(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    builder.append_batches(12)
    last = builder.bases()[-1]
    truncate_log(builder.log, 1, builder.now_ms)
    assert builder.file(last, ".log.deleted").exists()
    assert builder.log.take_due_paths(builder.now_ms + 59_999) == []
    due = builder.log.take_due_paths(builder.now_ms + 60_000)
    assert str(builder.file(last, ".log.deleted")) in due
    assert builder.log.take_due_paths(builder.now_ms + 60_000) == []


def test_emptying_a_log_forgets_its_producers_for_good(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    sequenced(builder, 3)
    builder.reopen()
    sequenced(builder, 3, first=3)
    assert snapshot_offsets(builder.disk, str(builder.path)) == [3]
    truncate_log(builder.log, 100, builder.now_ms, fully=True)
    assert (builder.log.log_start_offset, builder.log.log_end_offset, builder.bases()) == (100, 100, [100])
    assert (builder.log.producers.producers, builder.log.epochs.entries) == ({}, [])
    builder.append(b"k=v", producer_id=1, producer_epoch=0, base_sequence=77)
    builder.reopen(clean=False)
    assert builder.log.producers.producers[1].last_sequence == 77
    assert builder.texts() == [b"k=v"]


def test_a_log_can_begin_anew_below_where_it_began(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    truncate_log(builder.log, 100, builder.now_ms, fully=True)
    builder.append_batches(3)
    truncate_log(builder.log, 50, builder.now_ms, fully=True)
    assert (builder.log.log_start_offset, builder.log.log_end_offset) == (50, 50)


def test_the_log_start_moves_forwards_only_and_never_past_the_end(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append(b"a=1")
    builder.append(b"b=2", epoch=2)
    builder.append(b"c=3")
    builder.log.advance_log_start(2)
    builder.log.advance_log_start(1)
    assert (builder.log.log_start_offset, builder.texts()) == (2, [b"c=3"])
    assert builder.log.epochs.entries == [EpochStart(2, 2)]
    with pytest.raises(OffsetOutOfRange):
        builder.read(1)
    with pytest.raises(OffsetOutOfRange):
        builder.log.advance_log_start(4)


def stepwise(builder: LogBuilder, offset: int, *, fully: bool = False) -> Iterator[Step]:
    builder.log.begin_truncation(offset, fully=fully)
    return builder.log.finish_truncation(builder.now_ms)


@pytest.mark.parametrize("offset", [0, 1, 7, 13, 24])
def test_between_two_steps_readers_see_what_will_be_left_and_nothing_can_be_appended(
    tmp_path: Path, offset: int
) -> None:
    builder = a_log(tmp_path, segment_bytes=500)
    sequenced(builder, 25)
    left = [b"k=%d" % number for number in range(offset)]
    steps = 0
    for step in stepwise(builder, offset):
        assert builder.texts() == left
        with pytest.raises(StorageError, match=f"topic-0 is being truncated to {offset}"):
            builder.append(b"k=v")
        step()
        assert builder.texts() == left
        steps += 1
    assert steps == 4
    sequenced(builder, 2, first=offset)
    assert builder.texts() == [b"k=%d" % number for number in range(offset + 2)]


def test_a_step_touches_neither_the_segments_nor_the_producers_of_the_log(tmp_path: Path) -> None:
    """Steps run on threads; the log belongs to its own."""
    builder = a_log(tmp_path, segment_bytes=500)
    sequenced(builder, 25)
    log = builder.log
    for step in stepwise(builder, 7):
        segments = [(id(segment), segment.extent()) for segment in log.segments]
        producers = log.producers.producers[1].last_sequence
        step()
        assert [(id(segment), segment.extent()) for segment in log.segments] == segments
        assert log.producers.producers[1].last_sequence == producers
    assert log.producers.producers[1].last_sequence == 6


@pytest.mark.parametrize("fully", [False, True])
def test_a_truncation_that_stopped_anywhere_can_be_done_again(tmp_path: Path, fully: bool) -> None:
    for stop in range(5):
        builder = a_log(tmp_path / str(stop), segment_bytes=500)
        sequenced(builder, 25)
        steps = stepwise(builder, 9, fully=fully)
        for _ in range(stop):
            next(steps, lambda: None)()
        del steps
        run_steps(stepwise(builder, 9, fully=fully))
        assert builder.texts() == ([] if fully else [b"k=%d" % number for number in range(9)])
        builder.append(b"end=1")
        assert not builder.reopen(clean=False, recovery_point=0).truncated_bytes
        assert builder.log.log_end_offset == 10


def test_a_log_is_not_cut_while_segments_are_replaced_in_it(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    builder.append_batches(9)
    old = list(builder.log.segments)[:1]
    swap = builder.log.replace([builder.rewrite(old, [])], old, builder.now_ms)
    next(swap)()
    with pytest.raises(StorageError, match="cannot be truncated while segments are replaced"):
        builder.log.begin_truncation(1)
    run_steps(swap)
    truncate_log(builder.log, 4, builder.now_ms)
    assert builder.log.log_end_offset == 4
