"""Index lookups against brute force; formats.md §2.3."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.entries import IndexFile, OpenMaps
from lamina.log.files import Disk
from lamina.log.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset

BASE = 1000


def offset_index(path: Path, max_bytes: int = 8000) -> OffsetIndex:
    return OffsetIndex(BASE, IndexFile(Disk(), str(path / "index"), OffsetIndex.ENTRY, 0, max_bytes, OpenMaps()))


def time_index(path: Path, max_bytes: int = 12000) -> TimeIndex:
    return TimeIndex(BASE, IndexFile(Disk(), str(path / "timeindex"), TimeIndex.ENTRY, 0, max_bytes, OpenMaps()))


increasing = st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=60).map(sorted)


@given(increasing, st.lists(st.integers(0, 2**31), max_size=20))
def test_an_offset_lookup_finds_the_greatest_entry_at_or_below(relatives: list[int], asked: list[int]) -> None:
    with TemporaryDirectory() as directory:
        index = offset_index(Path(directory))
        entries = [OffsetPosition(BASE + relative, number) for number, relative in enumerate(relatives)]
        for entry in entries:
            index.append(*entry)
        for relative in [*asked, *relatives, *(each - 1 for each in relatives)]:
            at_or_below = [entry for entry in entries if entry.offset <= BASE + relative]
            assert index.lookup(BASE + relative) == (at_or_below[-1] if at_or_below else (BASE, 0))
        index.file.close()


@given(increasing, st.lists(st.integers(0, 2**31), max_size=20))
def test_a_time_lookup_finds_the_last_entry_at_or_below(timestamps: list[int], asked: list[int]) -> None:
    with TemporaryDirectory() as directory:
        index = time_index(Path(directory))
        entries = [TimestampOffset(timestamp, BASE + number) for number, timestamp in enumerate(timestamps)]
        for entry in entries:
            index.append(*entry)
        for timestamp in [*asked, *timestamps]:
            at_or_below = [entry for entry in entries if entry.timestamp <= timestamp]
            assert index.lookup(timestamp) == (at_or_below[-1] if at_or_below else (-1, BASE))
        index.file.close()


@given(increasing, st.integers(0, 2**31))
def test_truncating_forgets_entries_at_or_above_the_offset(relatives: list[int], cut: int) -> None:
    with TemporaryDirectory() as directory:
        index = offset_index(Path(directory))
        for number, relative in enumerate(relatives):
            index.append(BASE + relative, number)
        index.truncate_to(BASE + cut)
        kept = [relative for relative in relatives if relative < cut]
        assert index.file.count == len(kept)
        assert index.last_entry.offset == BASE + (kept[-1] if kept else 0)
        index.file.trim()


def test_entries_are_big_endian_and_relative_to_the_base(tmp_path: Path) -> None:
    offsets, times = offset_index(tmp_path), time_index(tmp_path)
    offsets.append(BASE + 7, 4711)
    times.append(1_700_000_000_000, BASE + 7)
    offsets.file.trim()
    times.file.trim()
    assert (tmp_path / "index").read_bytes() == (7).to_bytes(4, "big") + (4711).to_bytes(4, "big")
    assert (tmp_path / "timeindex").read_bytes() == (1_700_000_000_000).to_bytes(8, "big") + (7).to_bytes(4, "big")


def test_a_time_entry_is_added_only_when_the_timestamp_grows(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    for timestamp, offset in ((10, 1), (10, 2), (9, 3), (11, 4)):
        index.append(timestamp, BASE + offset)
    assert [index.entry(number) for number in range(index.file.count)] == [(10, BASE + 1), (11, BASE + 4)]
    index.file.close()


def test_a_full_index_takes_no_more_and_one_time_slot_is_reserved_for_the_last_entry(tmp_path: Path) -> None:
    offsets, times = offset_index(tmp_path, max_bytes=8 * 3 + 7), time_index(tmp_path, max_bytes=12 * 3 + 11)
    for number in range(1, 6):
        offsets.append(BASE + number, number)
        times.append(number, BASE + number)
    assert (offsets.file.count, offsets.is_full) == (3, True)
    assert (times.file.count, times.is_full) == (2, True)
    times.append(9, BASE + 9, force=True)
    times.append(10, BASE + 10, force=True)
    assert (times.file.count, times.last) == (3, (9, BASE + 9))
    offsets.file.close()
    times.file.close()


@pytest.mark.parametrize("position", [-1, 100, 2**31 - 1])
def test_an_offset_index_that_points_out_of_the_log_is_not_plausible(tmp_path: Path, position: int) -> None:
    index = offset_index(tmp_path)
    index.append(BASE + 1, position)
    assert not index.is_plausible(100)
    index.file.close()


def test_an_empty_time_index_is_plausible_only_for_an_empty_log(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    assert index.is_plausible(0)
    assert not index.is_plausible(1)
