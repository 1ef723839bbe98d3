"""Appending, rolling and reading; the whole log against a list of batches is in test_partition_log_model.py."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import CorruptMessage, OffsetOutOfRange, OutOfOrderSequence, TransactionCoordinatorFenced
from lamina.log.epochs import EpochStart
from lamina.log.lease import Lease
from lamina.records.batch import HEADER_BYTES, MAX_RELATIVE_OFFSET, NO_TIMESTAMP, read_header
from lamina.settings.log_config import DAY_MS
from tests.log.building import NOW_MS, LogBuilder, a_batch, a_log


def test_a_batch_gets_the_next_offsets_and_the_leaders_epoch(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    assert builder.append(b"a=1", b"b=2", epoch=3) == (0, 1, False, NOW_MS)
    assert builder.append(b"c=3", epoch=3) == (2, 2, False, NOW_MS)
    headers = [header for header, _ in builder.batches()]
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(0, 3), (2, 3)]
    assert builder.log.epochs.entries == [EpochStart(3, 0)]


def batch_bytes() -> int:
    return len(a_batch(b"k=v"))


@pytest.mark.parametrize(("spare", "bases"), [(0, [0]), (-1, [0, 1])])
def test_a_segment_rolls_when_a_batch_would_make_it_too_large(tmp_path: Path, spare: int, bases: list[int]) -> None:
    builder = a_log(tmp_path, segment_bytes=2 * batch_bytes() + spare)
    builder.append(b"k=v")
    builder.append(b"k=v")
    assert builder.bases() == bases


def test_a_batch_larger_than_a_segment_is_a_segment_of_its_own(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=100)
    for _ in range(3):
        builder.append(b"k=" + b"v" * 500)
    assert builder.bases() == [0, 1, 2]


@pytest.mark.parametrize(
    ("settings", "limit_ms"),
    [
        ({"segment_ms": 1000}, 1000),
        ({"segment_ms": 1000, "max_compaction_lag_ms": 10}, 1000),
        ({"segment_ms": 1000, "max_compaction_lag_ms": 10, "compact": True}, 10),
    ],
)
def test_a_segment_rolls_by_the_time_between_its_first_batch_and_the_new_one(
    tmp_path: Path, settings: dict[str, Any], limit_ms: int
) -> None:
    """Fact 7."""
    builder = a_log(tmp_path, **settings)
    builder.append(b"k=v", timestamp=NOW_MS)
    builder.append(b"k=v", timestamp=NOW_MS + limit_ms)
    builder.append(b"k=v", timestamp=NOW_MS - 10 * limit_ms)
    assert builder.bases() == [0]
    builder.now_ms += DAY_MS
    builder.append(b"k=v", timestamp=NOW_MS)
    assert builder.bases() == [0]
    builder.append(b"k=v", timestamp=NOW_MS + limit_ms + 1)
    assert builder.bases() == [0, 4]


def test_the_time_of_the_first_batch_is_known_again_after_a_start(tmp_path: Path) -> None:
    for clean in (True, False):
        builder = a_log(tmp_path / str(clean), segment_ms=1000, segment_bytes=100_000)
        builder.append_batches(20, timestamp=NOW_MS)
        builder.reopen(clean=clean)
        builder.append(b"k=v", timestamp=NOW_MS + 1001)
        assert builder.bases() == [0, 20]


def test_without_timestamps_a_segment_rolls_by_its_own_age(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_ms=1000)
    builder.append(b"k=v", timestamp=-1)
    builder.now_ms += 1000
    builder.append(b"k=v", timestamp=-1)
    assert builder.bases() == [0]
    builder.now_ms += 1
    builder.append(b"k=v", timestamp=-1)
    assert builder.bases() == [0, 2]


@pytest.mark.parametrize("timestamp", [NOW_MS, NO_TIMESTAMP])
def test_an_append_does_not_read_when_the_segment_began(
    tmp_path: Path, timestamp: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its first batch says nothing of that: an append must not wait for the disk."""
    builder = a_log(tmp_path)
    builder.append(b"k=v", timestamp=timestamp)

    def never(_: Lease) -> bytes:
        raise AssertionError("an append reads the log")

    monkeypatch.setattr(Lease, "read", never)
    builder.append(b"k=v", timestamp=timestamp)


def roll_age_ms(builder: LogBuilder) -> int:
    """How old the active segment may be."""
    low, high = 0, 10_000
    while low < high:
        middle = (low + high) // 2
        segment = builder.log.segments.active
        if builder.log._must_roll(segment, 1, builder.log.log_end_offset, NOW_MS + middle, NOW_MS):
            high = middle
        else:
            low = middle + 1
    return low - 1


def test_the_jitter_is_stable_and_differs_between_segments(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_ms=1000, segment_jitter_ms=500, segment_bytes=100)
    ages = []
    for _ in range(8):
        builder.append(b"k=v", timestamp=NOW_MS)
        builder.log.configure(replace(builder.config, segment_bytes=100_000))
        ages.append(roll_age_ms(builder))
        assert roll_age_ms(builder) == ages[-1]
        builder.log.configure(builder.config)
    assert all(500 < age <= 1000 for age in ages)
    assert len(set(ages)) > 4
    builder.log.configure(replace(builder.config, segment_bytes=100_000))
    builder.config = builder.log.config
    builder.reopen()
    assert roll_age_ms(builder) == ages[-1]


def test_a_segment_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=100_000, segment_index_bytes=8 * 4, index_interval_bytes=0)
    builder.append_batches(20)
    for segment in list(builder.log.segments)[:-1]:
        assert segment.indexes.offsets.file.count <= 4
        assert segment.indexes.times.file.count <= 2
    assert len(builder.bases()) > 3
    assert len(builder.records()) == 20


def test_a_segment_rolls_when_an_offset_does_not_fit_its_index(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    for offset in (0, MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET + 1, 10 * MAX_RELATIVE_OFFSET):
        builder.log.append_as_follower(bytes(a_batch(b"k=v", base_offset=offset)), NOW_MS)
    assert builder.bases() == [0, MAX_RELATIVE_OFFSET + 1, 10 * MAX_RELATIVE_OFFSET]
    for clean in (True, False):
        builder.reopen(clean=clean, recovery_point=0)
        offsets = [record.offset for record in builder.records()]
        assert offsets == [0, MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET + 1, 10 * MAX_RELATIVE_OFFSET]


def test_a_follower_takes_batches_where_their_leader_put_them(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    batches = a_batch(b"a=1", base_offset=5, leader_epoch=2) + a_batch(b"b=2", base_offset=9, leader_epoch=4)
    builder.log.append_as_follower(bytes(batches) + bytes(batches[:30]), NOW_MS)
    assert (builder.log.log_end_offset, builder.log.epochs.entries) == (10, [(2, 5), (4, 9)])
    assert b"".join(data for _, data in builder.batches()) == bytes(batches)
    with pytest.raises(CorruptMessage, match="ends at 10, a batch for offset 9 came"):
        builder.log.append_as_follower(bytes(a_batch(b"c=3", base_offset=9)), NOW_MS)


def test_a_duplicate_is_answered_with_the_original_and_not_written(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    producer = {"producer_id": 7, "producer_epoch": 0}
    builder.append(b"x=0")
    first = builder.append(b"a=1", b"b=2", base_sequence=0, timestamp=NOW_MS - 5, **producer)
    again = builder.append(b"a=1", b"b=2", base_sequence=0, timestamp=NOW_MS, **producer)
    assert again == first._replace(is_duplicate=True)
    assert builder.log.log_end_offset == 3
    with pytest.raises(OutOfOrderSequence):
        builder.append(b"c=3", base_sequence=5, **producer)
    assert builder.log.log_end_offset == 3


def test_a_marker_ends_a_transaction_and_an_old_coordinator_is_fenced(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append(b"a=1", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(b"x=1")
    builder.abort(7, coordinator_epoch=3)
    assert builder.log.segments.aborted_between(0, 3) == [(7, 0, 2, 3)]
    with pytest.raises(TransactionCoordinatorFenced):
        builder.commit(7, coordinator_epoch=2)


def test_aborted_transactions_of_a_range_are_found_across_segments(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    for producer_id in (1, 2, 3):
        builder.append(b"k=v", producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
    for producer_id in (2, 1, 3):
        builder.log.roll(builder.now_ms)
        builder.abort(producer_id)
    log = builder.log
    assert log.segments.aborted_between(0, 6) == [(2, 1, 3, 0), (1, 0, 4, 2), (3, 2, 5, 6)]
    assert log.segments.aborted_between(0, 1) == [(1, 0, 4, 2)]
    assert log.segments.aborted_between(5, 6) == [(3, 2, 5, 6)]
    assert log.segments.aborted_between(6, 9) == []


def test_a_read_is_bounded_by_bytes_but_never_less_than_one_batch(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append_batches(4)
    size_bytes = batch_bytes() + 2
    assert len(builder.read(0, 1)) == size_bytes
    assert len(builder.read(1, size_bytes + 1)) == size_bytes + 1
    assert len(builder.read(0, 10 * size_bytes)) == 4 * size_bytes
    assert read_header(builder.read(2, 1)).base_offset == 2


def test_a_read_never_gives_a_byte_of_a_batch_that_reaches_the_bound(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append(b"a=1", b"b=2")
    builder.append(b"c=3", b"d=4")
    whole = builder.read(0)
    assert builder.read(0, bound=2) == builder.read(0, bound=3) == whole[: len(whole) // 2]
    assert builder.read(0, bound=1) == b""
    assert builder.read(2, bound=2) == b""
    assert builder.read(0, bound=99) == whole


def test_a_read_outside_of_the_log_is_out_of_range_and_at_its_end_empty(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append_batches(3)
    assert builder.read(3) == b""
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange, match=f"holds offsets 0 to 3, {offset} was asked for"):
            builder.read(offset)


def test_a_full_header_is_the_least_that_a_segment_holds(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append(b"k=v")
    assert builder.log.size_bytes() == batch_bytes() > HEADER_BYTES


def test_closing_without_more_changes_no_file(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append_batches(9)
    before = {name: (builder.path / name).read_bytes() for name in builder.names()}
    builder.log.close()
    assert {name: (builder.path / name).read_bytes() for name in builder.names()} == before
