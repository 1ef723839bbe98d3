"""Offsets by time against brute force."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import StorageError
from lamina.log.lookup import Search, TimestampedOffset, offset_for_timestamp, offset_of_max_timestamp
from lamina.records.batch import Codec, read_header
from lamina.records.record import Record, build_batch
from tests.examples import examples
from tests.log.building import LIMIT_BYTES, NOW_MS, LogBuilder, a_log

batches = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=4), max_size=15)


def filled(path: Path, timestamps: list[list[int]], codec: Codec = Codec.NONE) -> LogBuilder:
    builder = a_log(path, segment_bytes=400, index_interval_bytes=100)
    for each in timestamps:
        records = [Record(number, timestamp, b"k", b"v") for number, timestamp in enumerate(each)]
        batch = build_batch(records, codec=codec)
        builder.log.append(batch, read_header(batch), 7, NOW_MS)
    return builder


def run(search: Search, between_steps: Callable[[], None] = lambda: None) -> TimestampedOffset | None:
    """Take every step of a search at once."""
    try:
        step = next(search)
        while True:
            found = step()
            between_steps()
            step = search.send(found)
    except StopIteration as end:
        result: TimestampedOffset | None = end.value
        return result


@settings(max_examples=examples(150))
@given(batches, st.integers(0, 60), st.integers(0, 60), st.integers(0, 41), st.sampled_from(Codec), st.booleans())
def test_lookups_are_what_a_scan_of_all_records_says(
    timestamps: list[list[int]], start: int, bound: int, timestamp: int, codec: Codec, reopened: bool
) -> None:
    with TemporaryDirectory() as directory:
        builder = filled(Path(directory), timestamps, codec)
        builder.log.advance_log_start(min(start, builder.log.log_end_offset))
        if reopened:
            builder.reopen()
        visible = [record for record in builder.records() if record.offset < bound]
        first = next((record for record in visible if record.timestamp >= timestamp), None)
        found = run(offset_for_timestamp(builder.log, timestamp, bound, LIMIT_BYTES))
        assert found == (None if first is None else (first.timestamp, first.offset, 7))
        largest = max(visible, key=lambda record: (record.timestamp, -record.offset), default=None)
        found = run(offset_of_max_timestamp(builder.log, bound, LIMIT_BYTES))
        assert found == (None if largest is None else (largest.timestamp, largest.offset, 7))
        builder.log.close()


@pytest.mark.parametrize("extension", [".index", ".timeindex"])
def test_an_index_deleted_while_the_log_is_open_is_no_error(tmp_path: Path, extension: str) -> None:
    builder = filled(tmp_path, [[number] for number in range(30)])
    assert run(offset_of_max_timestamp(builder.log, 30, LIMIT_BYTES)) == (29, 29, 7)
    for base_offset in builder.bases():
        builder.file(base_offset, extension).unlink()
    for timestamp in range(30):
        assert run(offset_for_timestamp(builder.log, timestamp, 30, LIMIT_BYTES)) == (timestamp, timestamp, 7)
    assert builder.log.failure is None


def test_a_search_that_is_given_up_lends_nothing_any_more(tmp_path: Path) -> None:
    builder = filled(tmp_path, [[number] for number in range(30)])
    search = offset_for_timestamp(builder.log, 3, 30, LIMIT_BYTES)
    next(search)
    segment = builder.log.segments.first
    assert segment.leases == 2, "the headers and the batch"
    search.close()
    assert segment.leases == 0


def test_a_segment_that_is_removed_between_two_steps_is_passed_over(tmp_path: Path) -> None:
    builder = filled(tmp_path, [[number] for number in range(60)])
    segments = builder.log.segments
    in_the_middle = list(segments)[1:-1]
    steps = []

    def remove() -> None:
        steps.append(len(segments))
        for segment in in_the_middle:
            segments.remove([segment])
            segment.close()
            for path in segment.paths():
                Path(path).unlink()
        in_the_middle.clear()

    assert run(offset_of_max_timestamp(builder.log, 60, LIMIT_BYTES), remove) == (59, 59, 7)
    assert builder.log.failure is None
    assert steps[1:] == [2], "one look into each segment that is left"


def test_a_disk_error_in_a_step_takes_the_log_offline(tmp_path: Path) -> None:
    builder = filled(tmp_path, [[1]])
    search = offset_for_timestamp(builder.log, 1, 1, LIMIT_BYTES)
    next(search)
    with pytest.raises(StorageError):
        search.throw(OSError("a test"))
    assert builder.log.failure is not None
