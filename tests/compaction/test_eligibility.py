"""Which logs are cleaned, and what of them (facts 10-22)."""

from dataclasses import replace

import pytest

from lamina.compaction.eligibility import Cleanable, Lags, LogSummary, SegmentSummary, find_cleanable, find_first_dirty

NOW = 1_000_000
NO_LAGS = Lags(0, 2**63 - 1)


def segment(base: int, size: int = 100, largest: int = 10, modified: int = 10, first: int = 5) -> SegmentSummary:
    return SegmentSummary(base, size, largest, modified, first)


def log(
    *segments: SegmentSummary, checkpoint: int | None = None, start: int = 0, stable: int | None = None
) -> LogSummary:
    end = segments[-1].base_offset + 10
    return LogSummary(checkpoint, start, end, end if stable is None else stable, segments)


THREE = (segment(0), segment(10), segment(20))


def test_fact_11_without_a_checkpoint_the_first_dirty_offset_is_the_log_start() -> None:
    found = find_first_dirty(log(*THREE, start=3))
    assert (found.offset, found.is_reset) == (3, False)


def test_fact_12_a_checkpoint_below_the_log_start_is_reset_to_it() -> None:
    found = find_first_dirty(log(*THREE, start=7, checkpoint=6))
    assert (found.offset, found.is_reset) == (7, True)
    assert "6 lies below the log start offset 7" in found.reason


def test_fact_13_a_checkpoint_above_the_log_end_makes_the_whole_log_dirty() -> None:
    found = find_first_dirty(log(*THREE, start=2, checkpoint=31))
    assert (found.offset, found.is_reset) == (2, True)
    assert "31 lies above the log end offset 30" in found.reason


@pytest.mark.parametrize("checkpoint", [0, 15, 20, 25, 30])
def test_fact_14_a_checkpoint_inside_the_log_is_used_as_it_is(checkpoint: int) -> None:
    found = find_first_dirty(log(*THREE, checkpoint=checkpoint))
    assert (found.offset, found.is_reset) == (checkpoint, False)


@pytest.mark.parametrize("checkpoint", [20, 25, 30])
def test_fact_14_a_checkpoint_in_the_active_segment_leaves_nothing_cleanable(checkpoint: int) -> None:
    found = find_cleanable(log(*THREE, checkpoint=checkpoint), NO_LAGS, NOW)
    assert found.cleanable_bytes == 0
    assert not found.is_eligible(0.0)


def test_fact_1_and_15_the_active_segment_is_never_cleanable() -> None:
    assert find_cleanable(log(*THREE), NO_LAGS, NOW).first_uncleanable_offset == 20


def test_fact_15_nothing_at_or_above_the_last_stable_offset_is_cleanable() -> None:
    assert find_cleanable(log(*THREE, stable=10), NO_LAGS, NOW).first_uncleanable_offset == 10


def test_fact_15_a_lag_keeps_out_the_first_segment_that_is_too_young_and_all_after_it() -> None:
    segments = (segment(0, largest=500), segment(10, largest=901), segment(20, largest=1), segment(30))
    assert find_cleanable(log(*segments), Lags(100, 2**63 - 1), 1000).first_uncleanable_offset == 10


def test_fact_15_a_segment_exactly_as_old_as_the_lag_is_cleanable() -> None:
    segments = (segment(0, largest=900), segment(10))
    assert find_cleanable(log(*segments), Lags(100, 2**63 - 1), 1000).first_uncleanable_offset == 10


def test_fact_15_without_a_lag_a_timestamp_in_the_future_does_not_matter() -> None:
    assert find_cleanable(log(segment(0, largest=2**60), segment(10)), NO_LAGS, NOW).first_uncleanable_offset == 10


def test_fact_15_the_lag_looks_at_dirty_segments_only() -> None:
    segments = (segment(0, largest=999), segment(10, largest=1), segment(20))
    assert find_cleanable(log(*segments, checkpoint=10), Lags(100, 2**63 - 1), 1000).first_uncleanable_offset == 20


def test_fact_16_a_segment_without_timestamps_is_as_old_as_its_file() -> None:
    young, old = segment(0, largest=-1, modified=950), segment(0, largest=-1, modified=900)
    assert find_cleanable(log(young, segment(10)), Lags(100, 2**63 - 1), 1000).first_uncleanable_offset == 0
    assert find_cleanable(log(old, segment(10)), Lags(100, 2**63 - 1), 1000).first_uncleanable_offset == 10


@pytest.mark.parametrize("stable", [11, 15, 19])
def test_fact_17_the_segment_that_holds_the_last_stable_offset_is_left_alone(stable: int) -> None:
    assert find_cleanable(log(*THREE, stable=stable), NO_LAGS, NOW).first_uncleanable_offset == 10


def test_fact_18_clean_bytes_lie_below_the_first_dirty_offset_and_cleanable_ones_from_there_on() -> None:
    four = log(segment(0, 1), segment(10, 2), segment(20, 4), segment(30, 8), checkpoint=10)
    found = find_cleanable(four, NO_LAGS, NOW)
    assert (found.clean_bytes, found.cleanable_bytes) == (1, 2 + 4)


def test_fact_18_a_segment_around_the_first_dirty_offset_counts_in_both_sums() -> None:
    found = find_cleanable(log(segment(0, 1), segment(10, 2), segment(20, 4), checkpoint=15), NO_LAGS, NOW)
    assert (found.clean_bytes, found.cleanable_bytes) == (1 + 2, 2)


def test_fact_19_the_ratio_leaves_uncleanable_bytes_out() -> None:
    found = find_cleanable(log(segment(0, 1), segment(10, 3), segment(20, 1000), checkpoint=10), NO_LAGS, NOW)
    assert found.dirty_ratio == 0.75


def test_fact_19_a_log_without_bytes_is_never_eligible() -> None:
    found = find_cleanable(log(segment(0, 0), segment(10, 0)), Lags(0, 1), NOW)
    assert found.dirty_ratio == 0
    assert not found.is_eligible(0.0)


def test_fact_20_the_ratio_must_be_exceeded() -> None:
    half = Cleanable(0, 10, 50, 50, 0)
    assert not half.is_eligible(0.5)
    assert half.is_eligible(0.499)


def test_fact_20_a_ratio_of_one_leaves_only_the_overdue() -> None:
    all_dirty = Cleanable(0, 10, 0, 50, 0)
    assert not all_dirty.is_eligible(1.0)
    assert replace(all_dirty, overdue_ms=1).is_eligible(1.0)


def test_fact_20_with_a_ratio_of_zero_one_dirty_byte_is_enough() -> None:
    assert Cleanable(0, 10, 2**40, 1, 0).is_eligible(0.0)


def test_fact_20_an_overdue_log_needs_cleanable_bytes() -> None:
    assert not Cleanable(0, 0, 100, 0, 5).is_eligible(0.0)


def test_fact_21_overdue_is_counted_from_the_first_batch_of_the_oldest_dirty_segment() -> None:
    segments = (segment(0, first=1), segment(10, first=700), segment(20, first=600), segment(30, first=2))
    assert find_cleanable(log(*segments, checkpoint=10), Lags(0, 300), 1000).overdue_ms == 100
    assert find_cleanable(log(*segments, checkpoint=10), Lags(0, 399), 1000).overdue_ms == 1
    assert find_cleanable(log(*segments, checkpoint=10), Lags(0, 400), 1000).overdue_ms == 0


@pytest.mark.parametrize("first", [-1, 0])
def test_fact_21_a_first_batch_without_a_timestamp_does_not_make_a_log_overdue(first: int) -> None:
    assert find_cleanable(log(segment(0, first=first), segment(10)), Lags(0, 1), NOW).overdue_ms == 0


def test_fact_22_a_log_never_cleaned_is_wholly_dirty_once_a_segment_is_closed() -> None:
    assert find_cleanable(log(segment(0), segment(10)), NO_LAGS, NOW).dirty_ratio == 1.0
    assert find_cleanable(log(segment(0)), NO_LAGS, NOW).dirty_ratio == 0.0


def test_fact_25_a_log_without_new_dirty_bytes_is_not_eligible() -> None:
    found = find_cleanable(log(*THREE, checkpoint=20), Lags(0, 1), NOW)
    assert found.first_dirty_offset == found.first_uncleanable_offset == 20
    assert not found.is_eligible(0.0)
