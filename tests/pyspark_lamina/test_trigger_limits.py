"""Records and bytes of a micro-batch, shared among partitions whose batches are only played."""

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lamina.arrow.counting import Allowance, Reached, advance
from lamina.arrow.cutting import OffsetRange
from lamina.records.batch import BatchHeader
from lamina.topic_partition import TopicPartition
from pyspark_lamina.trigger_limits import limit_content

Log = Sequence[BatchHeader]


def batch(base: int, records: int, size: int, last_delta: int | None = None) -> BatchHeader:
    delta = records - 1 if last_delta is None else last_delta
    return BatchHeader(base, size - 12, 0, 2, 0, 0, delta, 0, 0, -1, -1, -1, records)


def log(*batches: tuple[int, int, int]) -> list[BatchHeader]:
    """(records, bytes, offsets without a record behind them)"""
    found, at = [], 0
    for records, size, gap in batches:
        found.append(batch(at, records, size))
        at += records + gap
    return found


def limited(logs: Sequence[Log], allowance: Allowance, turn: int = 0, starts: Sequence[int] = ()) -> list[int]:
    async def reach(where: TopicPartition, one: OffsetRange, share: Allowance, must_move: bool) -> Reached:
        found = advance(logs[where[1]], one.start, one.end, share, must_move=must_move)
        return found if found.is_full else Reached(one.end, found.left, False)

    ends = {("t", number): headers[-1].next_offset if headers else 0 for number, headers in enumerate(logs)}
    begins = {where: starts[where[1]] if starts else 0 for where in ends}
    found = asyncio.run(limit_content(begins, ends, allowance, turn, reach))
    assert found.keys() == ends.keys()
    return list(found.values())


def held(headers: Log, start: int, end: int) -> tuple[int, int]:
    """Records that may be, and bytes that are."""
    inside = [one for one in headers if one.base_offset < end and one.next_offset > start]
    return (
        sum(min(one.record_count, min(one.next_offset, end) - max(one.base_offset, start)) for one in inside),
        sum(one.size_bytes for one in inside),
    )


BATCHES = st.lists(st.tuples(st.integers(1, 9), st.integers(70, 400), st.integers(0, 20)), max_size=8)
LOGS = st.lists(BATCHES.map(lambda batches: log(*batches)), min_size=1, max_size=4)


@given(LOGS, st.integers(1, 60), st.integers(0, 5))
def test_records_are_never_more_than_allowed_and_a_stream_always_moves(
    logs: list[list[BatchHeader]], most: int, turn: int
) -> None:
    reached = limited(logs, Allowance(records=most), turn)
    taken = sum(held(headers, 0, end)[0] for headers, end in zip(logs, reached, strict=True))
    there = sum(one.record_count for headers in logs for one in headers)
    assert taken == min(most, there)
    if taken < most:
        assert reached == [headers[-1].next_offset if headers else 0 for headers in logs]


@given(LOGS, st.integers(1, 1000), st.integers(0, 5))
def test_bytes_are_never_more_than_allowed_but_for_one_large_batch(
    logs: list[list[BatchHeader]], most: int, turn: int
) -> None:
    reached = limited(logs, Allowance(size_bytes=most), turn)
    sizes = [held(headers, 0, end)[1] for headers, end in zip(logs, reached, strict=True)]
    batches = sum(1 for headers, end in zip(logs, reached, strict=True) for one in headers if one.base_offset < end)
    assert sum(sizes) <= most or batches == 1
    assert any(sizes) == any(logs)


def test_what_one_partition_does_not_need_goes_to_the_others() -> None:
    logs = [log((2, 100, 0)), log(*[(10, 100, 0)] * 10), log()]
    assert limited(logs, Allowance(records=50)) == [2, 48, 0]


def test_offsets_without_records_do_not_count() -> None:
    logs = [log((1, 100, 999), (1, 100, 999), (1, 100, 999))]
    assert limited(logs, Allowance(records=2)) == [2000]


def test_another_partition_is_first_in_the_next_batch() -> None:
    logs = [log((5, 100, 0)), log((5, 100, 0))]
    assert limited(logs, Allowance(records=1), turn=0) == [1, 0]
    assert limited(logs, Allowance(records=1), turn=1) == [0, 1]
    assert limited(logs, Allowance(size_bytes=10), turn=1) == [0, 5]


def test_what_lies_before_the_start_does_not_count() -> None:
    assert limited([log((10, 100, 0), (10, 100, 0))], Allowance(records=4), starts=[8]) == [12]
