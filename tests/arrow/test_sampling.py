"""What a few samples tell about a partition, and the ranges that are cut by it."""

from bisect import bisect_right
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.arrow.cutting import Bounds, OffsetRange, cut, cut_all
from lamina.arrow.sampling import Piece, Sample, Survey


class Batch(NamedTuple):
    base_offset: int
    next_offset: int
    size_bytes: int
    record_count: int


class PlayedLog:
    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches
        self.end = batches[-1].next_offset if batches else 0

    def sample(self, offset: int, end: int) -> Sample:
        """As a fetch gives it: whole batches, a few kilobytes, of which what is outside does not count."""
        at = bisect_right(self._batches, offset, key=lambda batch: batch.next_offset)
        next_offset, size_bytes, records, fetched = end, 0.0, 0.0, 0
        for batch in self._batches[at:]:
            if (fetched + batch.size_bytes > 4000 and fetched) or batch.base_offset >= end:
                break
            fetched += batch.size_bytes
            next_offset = min(batch.next_offset, end)
            share = (next_offset - max(batch.base_offset, offset)) / (batch.next_offset - batch.base_offset)
            size_bytes += batch.size_bytes * share
            records += batch.record_count * share
        return Sample(offset, next_offset, round(size_bytes), round(records))

    def survey(self, start: int, end: int, max_samples: int) -> list[Piece]:
        survey = Survey(start, end, max_samples)
        asked = 0
        while (offset := survey.wanted()) is not None:
            assert start <= offset < end
            asked += 1
            survey.learn(self.sample(offset, end))
        assert asked <= max_samples
        return list(survey.pieces())

    def bytes_in(self, one: OffsetRange) -> int:
        return sum(batch.size_bytes for batch in self._batches if one.start <= batch.base_offset < one.end)


def dense(count: int, first: int = 0, records: int = 10, size: int = 1000) -> list[Batch]:
    return [Batch(first + n * records, first + (n + 1) * records, size, records) for n in range(count)]


def sparse(count: int, gap: int, first: int = 0) -> list[Batch]:
    return [Batch(first + n * gap, first + n * gap + 1, 100, 1) for n in range(count)]


@st.composite
def logs(draw: st.DrawFn) -> PlayedLog:
    batches, at = [], 0
    for _ in range(draw(st.integers(0, 30))):
        base = at + draw(st.integers(0, 50))
        at = base + draw(st.integers(1, 20))
        batches.append(Batch(base, at, draw(st.integers(70, 5000)), draw(st.integers(0, at - base))))
    return PlayedLog(batches)


@given(logs(), st.integers(1, 60), st.integers(1, 20), st.integers(1, 10_000), st.integers(1, 50))
def test_pieces_and_ranges_are_the_whole_in_order(
    log: PlayedLog, max_samples: int, parts: int, max_bytes: int, max_records: int
) -> None:
    start, end = log.end // 5, log.end
    pieces = log.survey(start, end, max_samples)
    if start == end:
        return
    assert [pieces[0].start, *(piece.end for piece in pieces)] == [*(piece.start for piece in pieces), end]
    for bounds in (Bounds(parts), Bounds(None, max_records), Bounds(None, None, max_bytes), Bounds(parts, 7, 900)):
        ranges = cut_all({("t", 0): pieces}, bounds)["t", 0]
        assert [start, *(one.end for one in ranges)] == [*(one.start for one in ranges), end]
        assert all(one.start < one.end for one in ranges)


def test_a_log_of_evenly_dense_offsets_is_cut_evenly() -> None:
    pieces = PlayedLog(dense(1000)).survey(0, 10_000, 16)
    assert cut_all({("t", 0): pieces}, Bounds(4))["t", 0] == [(0, 2500), (2500, 5000), (5000, 7500), (7500, 10_000)]
    assert cut_all({("t", 0): pieces}, Bounds(None, 4000))["t", 0] == [(0, 4000), (4000, 8000), (8000, 10_000)]
    assert cut_all({("t", 0): pieces}, Bounds(None, None, 600_000))["t", 0] == [(0, 6000), (6000, 10_000)]


@pytest.mark.parametrize("gap", [100, 10_000, 1_000_000])
def test_a_compacted_head_before_a_dense_tail_is_cut_by_bytes(gap: int) -> None:
    head = sparse(1000, gap)
    log = PlayedLog(head + dense(1000, first=1000 * gap))
    ranges = cut_all({("t", 0): log.survey(0, log.end, 47)}, Bounds(8))["t", 0]
    sizes = [log.bytes_in(one) for one in ranges]
    assert len(sizes) >= 8
    # By offsets, one range of eight would hold nearly all of it.
    assert max(sizes) < 0.3 * sum(sizes), sizes


def test_ground_that_is_known_to_be_empty_is_not_looked_at_again() -> None:
    log = PlayedLog([*dense(10), Batch(1_000_000, 1_000_010, 1000, 10)])
    survey = Survey(0, log.end, 100)
    asked = 0
    while (offset := survey.wanted()) is not None:
        survey.learn(log.sample(offset, log.end))
        asked += 1
    assert asked < 40


def test_shares_of_partitions_go_by_their_bytes() -> None:
    pieces = {("t", 0): [Piece(0, 100, 9000, 100)], ("t", 1): [Piece(0, 100, 1000, 100)], ("t", 2): [Piece(5, 9, 0, 0)]}
    cuts = cut_all(pieces, Bounds(10))
    assert [len(ranges) for ranges in cuts.values()] == [9, 1, 1]


def test_no_bound_leaves_a_partition_whole() -> None:
    assert cut([Piece(3, 9, 100, 6), Piece(9, 20, 1, 1)], float("inf"), float("inf")) == [(3, 20)]
