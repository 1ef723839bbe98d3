"""What is lent of a log is what a reader may see, and stays as it was whatever becomes of the log."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.errors import OffsetOutOfRange
from lamina.log.lending import (
    LentFile,
    are_unchanged,
    find_ranges,
    held_bytes,
    link_files,
    remove_lent,
)
from lamina.log.names import READING_FOLDER
from lamina.log.steps import run_steps
from lamina.records.batch import walk
from tests.log.building import LogBuilder, a_log, expire, truncate_log

MOST = 16


def lend(builder: LogBuilder, start: int, end: int, bound: int | None = None) -> tuple[Path, list[LentFile]]:
    ranges = find_ranges(builder.log, start, end, builder.log.log_end_offset if bound is None else bound, MOST)
    folder = builder.path.parent / READING_FOLDER / "a-lease"
    return folder, link_files(builder.disk, str(folder), ranges)


def offsets(folder: Path, files: list[LentFile]) -> list[int]:
    """Where the batches begin that are lent."""
    found = []
    for file in files:
        data = (folder / f"{file.base_offset:020d}.log").read_bytes()[file.start_position : file.end_position]
        ends = [(header.base_offset, position + header.size_bytes) for position, header in walk(data)]
        assert ends[-1][1] == len(data), "only whole batches"
        found += [base for base, _ in ends]
    return found


def test_whole_batches_are_lent_from_the_one_that_is_asked_for_to_the_bound(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    for number in range(20):
        builder.append(b"a=%d" % number, b"b=%d" % number)
    assert len(builder.bases()) > 3
    for start in range(40):
        folder, files = lend(builder, start, 40, bound=36)
        assert offsets(folder, files) == list(range(start - start % 2, 36, 2)) if start < 36 else not files
        remove_lent(builder.disk, str(tmp_path))


def test_a_range_is_lent_with_the_rest_of_its_last_segment(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    builder.append_batches(20)
    base, following = builder.bases()[1:3]
    ranges = find_ranges(builder.log, base, base + 1, 20, MOST)
    assert [one.segment.base_offset for one in ranges.found] == [base]
    assert ranges.end_offset == following


def test_only_so_many_segments_are_lent_and_the_rest_is_told(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    builder.append_batches(20)
    ranges = find_ranges(builder.log, 1, 20, 20, 2)
    assert len(ranges.found) == 2
    assert ranges.end_offset == builder.bases()[2]


def test_outside_of_the_log_nothing_is_lent(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append_batches(5)
    builder.log.advance_log_start(2)
    for offset in (1, 6):
        with pytest.raises(OffsetOutOfRange):
            find_ranges(builder.log, offset, 9, 5, MOST)
    for start, end in ((5, 9), (4, 3), (2, 2)):
        assert find_ranges(builder.log, start, end, 5, MOST) == ([], start, [])


def test_where_cleaning_left_nothing_nothing_is_lent_up_to_the_next_batch(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    builder.append_batches(20)
    old = list(builder.log.segments)[:2]
    run_steps(builder.log.replace([builder.rewrite(old, [])], old, builder.now_ms))
    ranges = find_ranges(builder.log, 0, old[1].next_offset - 1, 20, MOST)
    assert ranges == ([], builder.bases()[1], [])


def delete_first(builder: LogBuilder) -> None:
    run_steps(builder.log.delete_oldest(builder.log.segments.first, builder.now_ms))


def replace_first(builder: LogBuilder) -> None:
    old = [builder.log.segments.first]
    run_steps(builder.log.replace([builder.rewrite(old, [])], old, builder.now_ms))


def truncate(builder: LogBuilder) -> None:
    truncate_log(builder.log, 1, builder.now_ms)


def empty(builder: LogBuilder) -> None:
    truncate_log(builder.log, 0, builder.now_ms, fully=True)


CHANGES: dict[str, Callable[[LogBuilder], None]] = {
    "retention": delete_first,
    "cleaning": replace_first,
    "truncation": truncate,
    "starting anew": empty,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_lent_stays_as_it_was(tmp_path: Path, change: str) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    builder.append_batches(20)
    folder, files = lend(builder, 0, 20)
    before = offsets(folder, files)
    assert held_bytes(builder.disk, str(folder)) == 0
    CHANGES[change](builder)
    builder.append_batches(5)
    for path in builder.log.take_due_paths(builder.now_ms + builder.config.file_delete_delay_ms):
        builder.disk.unlink(path)
    assert offsets(folder, files) == before
    assert held_bytes(builder.disk, str(folder)) > 0


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_before_the_links_are_there_is_noticed(tmp_path: Path, change: str) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    builder.append_batches(20)
    ranges = find_ranges(builder.log, 0, 20, 20, MOST)
    assert are_unchanged(builder.log, ranges)
    builder.append_batches(20)
    assert are_unchanged(builder.log, ranges), "what is appended behind them changes nothing"
    CHANGES[change](builder)
    assert not are_unchanged(builder.log, ranges)


def test_a_truncation_that_has_begun_is_noticed(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append_batches(5)
    ranges = find_ranges(builder.log, 0, 5, 5, MOST)
    builder.log.begin_truncation(3)
    assert not are_unchanged(builder.log, ranges)


def test_a_link_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=300)
    builder.append_batches(20)
    ranges = find_ranges(builder.log, 0, 20, 20, MOST)
    expire_at = builder.now_ms + builder.log.config.retention_ms + 1
    assert expire(builder.log, expire_at, 20)
    with pytest.raises(FileNotFoundError):
        link_files(builder.disk, str(tmp_path / READING_FOLDER / "x"), ranges)
    assert not list((tmp_path / READING_FOLDER).iterdir())


def test_what_a_broker_that_was_killed_had_lent_is_removed(tmp_path: Path) -> None:
    builder = a_log(tmp_path)
    builder.append_batches(5)
    folder, _ = lend(builder, 0, 5)
    assert folder.exists()
    remove_lent(builder.disk, str(tmp_path))
    remove_lent(builder.disk, str(tmp_path))
    assert not (tmp_path / READING_FOLDER).exists()
