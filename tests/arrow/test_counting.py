"""How far an allowance of records or bytes reaches over headers of batches."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.arrow.counting import Allowance, advance
from lamina.records.batch import CONTROL_BIT, BatchHeader


def header(base: int, last_delta: int, records: int, size: int = 100, attributes: int = 0) -> BatchHeader:
    return BatchHeader(base, size - 12, 0, 2, 0, attributes, last_delta, 0, 0, -1, -1, -1, records)


@st.composite
def headers(draw: st.DrawFn) -> list[BatchHeader]:
    found, at = [], 0
    for _ in range(draw(st.integers(0, 12))):
        base = at + draw(st.integers(0, 9))
        delta = draw(st.integers(0, 9))
        size = draw(st.integers(70, 300))
        found.append(
            header(base, delta, draw(st.integers(0, delta + 1)), size, draw(st.sampled_from([0, CONTROL_BIT])))
        )
        at = base + delta + 1
    return found


@given(headers(), st.integers(0, 60), st.integers(1, 30))
def test_no_more_records_than_allowed_and_progress(log: list[BatchHeader], start: int, most: int) -> None:
    end = log[-1].next_offset if log else 0
    reached = advance(log, start, end, Allowance(records=most), must_move=True)
    assert start <= reached.offset
    # As many as there can be: every offset of a batch up to its count of records.
    held = [
        min(one.record_count, min(one.next_offset, reached.offset) - max(one.base_offset, start))
        for one in log
        if not one.is_control and one.base_offset < reached.offset and one.next_offset > start
    ]
    assert sum(held) <= most
    assert sum(held) == most - reached.left.records
    if start < end:
        assert reached.offset > start
        assert reached.offset == end or reached.left.records == 0


@given(headers(), st.integers(70, 1000))
def test_bytes_end_between_batches_and_one_batch_always_fits(log: list[BatchHeader], most: int) -> None:
    end = log[-1].next_offset if log else 0
    reached = advance(log, 0, end, Allowance(size_bytes=most), must_move=True)
    taken = [one for one in log if one.next_offset <= reached.offset]
    assert sum(one.size_bytes for one in taken) <= most or len(taken) == 1
    assert reached.offset in (0, *(one.next_offset for one in log))
    if log:
        assert taken


def test_without_need_a_batch_that_is_too_large_waits() -> None:
    reached = advance([header(0, 9, 10, 500)], 0, 10, Allowance(size_bytes=499), must_move=False)
    assert (reached.offset, reached.is_full) == (0, True)


def test_a_batch_of_many_records_is_divided() -> None:
    reached = advance([header(0, 999, 1000)], 100, 1000, Allowance(records=10), must_move=True)
    assert (reached.offset, reached.is_full) == (110, True)


def test_offsets_without_records_cost_nothing() -> None:
    log = [header(0, 999, 1), header(5000, 0, 1), header(9000, 9, 10)]
    reached = advance(log, 0, 9010, Allowance(records=2), must_move=True)
    assert (reached.offset, reached.is_full) == (9000, True)
