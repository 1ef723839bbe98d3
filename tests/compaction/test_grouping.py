"""Which segments become one (facts 41-43)."""

from typing import NamedTuple

import pytest

from lamina.compaction.grouping import GroupLimits, group_segments


class Piece(NamedTuple):
    base_offset: int
    next_base_offset: int
    size_bytes: int = 10
    index_bytes: int = 8
    time_index_bytes: int = 12


LIMITS = GroupLimits(segment_bytes=30, index_bytes=100)


def group(*pieces: Piece, limits: GroupLimits = LIMITS) -> list[list[int]]:
    return [[piece.base_offset for piece in each] for each in group_segments(pieces, limits)]


def test_no_segments_make_no_groups() -> None:
    assert group() == []


def test_fact_41_every_source_is_in_exactly_one_group_in_order() -> None:
    found = group(*(Piece(at, at + 1) for at in range(7)))
    assert [base for each in found for base in each] == list(range(7))


def test_fact_42_segments_are_grouped_up_to_the_segment_size_and_no_further() -> None:
    assert group(*(Piece(at, at + 1) for at in range(7))) == [[0, 1, 2], [3, 4, 5], [6]]


def test_fact_42_a_segment_larger_than_the_limit_stands_alone() -> None:
    assert group(Piece(0, 1, 5), Piece(1, 2, 99), Piece(2, 3, 5)) == [[0], [1], [2]]


@pytest.mark.parametrize("which", ["index_bytes", "time_index_bytes"])
def test_fact_42_each_index_has_its_own_limit(which: str) -> None:
    pieces = [Piece(at, at + 1)._replace(**{which: 50}) for at in range(3)]
    assert group(*pieces) == [[0, 1], [2]]


def test_fact_42_the_offsets_of_a_group_fit_32_bits() -> None:
    most = 2**31 - 1
    assert group(Piece(5, 6), Piece(6, 5 + most + 1)) == [[5, 6]]
    assert group(Piece(5, 6), Piece(6, 5 + most + 2)) == [[5], [6]]


def test_fact_42_an_empty_segment_skips_the_check_of_the_span() -> None:
    assert group(Piece(0, 1), Piece(1, 2**40, size_bytes=0)) == [[0, 1]]


def test_fact_43_the_groups_first_base_offset_counts_for_the_span_even_if_it_is_empty() -> None:
    assert group(Piece(0, 2**31, size_bytes=0), Piece(2**31, 2**31 + 1)) == [[0], [2**31]]
