"""How far a partition is read, and which offsets had no record."""

import pytest

from lamina.client.errors import ClientError
from lamina.client.partition_range import GAPS_KEPT, PartitionRange


def test_records_in_a_row_leave_no_gap() -> None:
    each = PartitionRange(0, 5, 8)
    assert [each.take(offset, 10) for offset in (5, 6, 7)] == [True, True, True]
    assert each.is_done
    assert (each.records, each.size_bytes, each.missing, each.gaps) == (3, 30, 0, [])


def test_an_offset_that_is_passed_over_is_missing() -> None:
    each = PartitionRange(0, 0, None)
    for offset in (0, 3, 4, 6):
        each.take(offset, 1)
    assert (each.missing, each.gap_count, each.gaps) == (3, 2, [(1, 3), (5, 6)])
    assert not each.is_done


def test_the_end_is_reached_without_a_last_record() -> None:
    each = PartitionRange(0, 0, 4)
    each.take(0, 1)
    each.reach(9)
    assert each.is_done
    assert (each.position, each.missing, each.gaps) == (4, 3, [(1, 4)])


def test_a_record_behind_the_end_ends_the_range_and_is_not_taken() -> None:
    each = PartitionRange(0, 0, 4)
    assert each.take(2, 1)
    assert not each.take(6, 1)
    assert each.is_done
    assert (each.records, each.position, each.gaps) == (1, 4, [(0, 2), (3, 4)])


def test_what_comes_before_the_wanted_offset_is_passed_over_and_not_missed() -> None:
    each = PartitionRange(0, 3, None, wanted=6)
    assert [each.take(offset, 1) for offset in (3, 5, 6, 7)] == [False, False, True, True]
    assert (each.start, each.position, each.records, each.missing) == (6, 8, 2, 0)


def test_a_log_that_goes_back_is_an_error() -> None:
    each = PartitionRange(2, 0, None)
    each.take(7, 1)
    with pytest.raises(ClientError, match="partition 2 went back from offset 8 to 0"):
        each.take(0, 1)
    with pytest.raises(ClientError, match="went back"):
        each.reach(3)


def test_only_the_first_gaps_are_remembered_and_all_are_counted() -> None:
    each = PartitionRange(0, 0, None)
    for offset in range(1, 1001, 2):
        each.take(offset, 1)
    assert (each.missing, each.gap_count, len(each.gaps)) == (500, 500, GAPS_KEPT)
