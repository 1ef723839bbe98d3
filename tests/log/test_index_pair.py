"""When index entries are due, and when the two files are believed; formats.md §2.3."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.entries import OpenMaps
from lamina.log.files import Disk
from lamina.log.index_pair import IndexPair, IndexRebuilds, IndexShape

SHAPE = IndexShape(1200, 100, OpenMaps(), IndexRebuilds())

batches = st.lists(st.tuples(st.integers(61, 150), st.integers(1, 3), st.integers(-1, 20)), max_size=30)


def new_pair(path: str) -> IndexPair:
    return IndexPair.new(Disk(), f"{path}/0", "", 0, SHAPE)


def loaded(path: Path, log_bytes: int) -> IndexPair | None:
    return IndexPair.load(Disk(), f"{path}/0", "", 0, SHAPE, log_bytes)


@given(batches)
def test_entries_are_what_the_rule_says(sizes: list[tuple[int, int, int]]) -> None:
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    with TemporaryDirectory() as directory:
        pair = new_pair(directory)
        position = since = 0
        offset, largest = -1, (-1, 0)
        for size_bytes, count, timestamp in sizes:
            offset += count
            if timestamp > largest[0]:
                largest = (timestamp, offset)
            if since > 100:
                offsets.append((offset, position))
                if largest[0] > (times[-1][0] if times else -1):
                    times.append(largest)
                since = 0
            pair.count_batch(position, size_bytes, offset, timestamp)
            position += size_bytes
            since += size_bytes
        assert pair.largest == largest
        pair.seal()
        if largest[0] > (times[-1][0] if times else -1):
            times.append(largest)
        assert [pair.offsets.entry(number) for number in range(pair.offsets.file.count)] == offsets
        assert [pair.times.entry(number) for number in range(pair.times.file.count)] == times
        pair.close()


def a_sealed_pair(path: Path) -> IndexPair:
    pair = new_pair(str(path))
    for number in range(10):
        pair.count_batch(number * 70, 70, number, 1000 + number)
    pair.seal()
    return pair


def test_a_sealed_pair_is_believed(tmp_path: Path) -> None:
    sealed = a_sealed_pair(tmp_path)
    pair = loaded(tmp_path, 700)
    assert pair is not None
    assert (pair.offsets.last_entry, pair.largest) == (sealed.offsets.last_entry, (1009, 9))


@pytest.mark.parametrize("name", ["0.index", "0.timeindex"])
@pytest.mark.parametrize("damage", [None, b"", b"\0" * 5, b"\xff" * 24])
def test_a_pair_that_cannot_be_true_is_not_believed(tmp_path: Path, name: str, damage: bytes | None) -> None:
    a_sealed_pair(tmp_path)
    if damage is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(damage)
    # Without entries every batch is read, which is slow and right; a time index must have its last entry.
    believed = name == "0.index" and damage == b""
    assert (loaded(tmp_path, 700) is not None) is believed


def test_an_index_that_points_past_the_log_is_not_believed(tmp_path: Path) -> None:
    a_sealed_pair(tmp_path)
    assert loaded(tmp_path, 100) is None


def test_a_truncated_pair_is_full_no_more(tmp_path: Path) -> None:
    pair = IndexPair.new(Disk(), f"{tmp_path}/0", "", 0, IndexShape(24, 0, OpenMaps(), IndexRebuilds()))
    for number in range(4):
        pair.count_batch(number * 70, 70, number, 1000 + number)
    assert pair.is_full
    pair.truncate_to(1)
    assert not pair.is_full
    pair.close()
