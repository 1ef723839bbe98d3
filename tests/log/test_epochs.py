"""The leader-epoch cache and its checkpoint; formats.md §2.5."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.checkpoints import CheckpointError
from lamina.log.epochs import EpochStart, LeaderEpochs, format_epochs, parse_epochs
from lamina.log.files import Disk, File
from tests.log.disk import RecordingDisk


def epochs_at(path: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs.load(Disk(), str(path))
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


def saved(path: Path) -> list[EpochStart]:
    return LeaderEpochs.load(Disk(), str(path)).entries


@st.composite
def increasing(draw: st.DrawFn) -> list[EpochStart]:
    epochs = sorted(draw(st.sets(st.integers(0, 2**31 - 1), max_size=8)))
    offsets = sorted(draw(st.sets(st.integers(0, 2**62), min_size=len(epochs), max_size=len(epochs))))
    return [EpochStart(*entry) for entry in zip(epochs, offsets, strict=True)]


def test_the_text_is_kafkas() -> None:
    assert format_epochs([EpochStart(0, 0), EpochStart(3, 120)]) == b"0\n2\n0 0\n3 120\n"


@given(increasing())
def test_what_is_formatted_is_parsed(entries: list[EpochStart]) -> None:
    assert parse_epochs(format_epochs(entries)) == entries


@given(st.text("0123 \n-", max_size=40).map(str.encode) | st.binary(max_size=40))
def test_malformed_input_is_a_checkpoint_error(data: bytes) -> None:
    try:
        entries = parse_epochs(data)
    except CheckpointError:
        return
    assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(entries))


def test_an_epoch_is_news_once_and_never_goes_back(tmp_path: Path) -> None:
    epochs = epochs_at(tmp_path)
    for epoch, start_offset in ((3, 10), (3, 20), (2, 30)):
        epochs.assign(epoch, start_offset)
    assert (epochs.entries, epochs.latest) == ([(3, 10)], 3)


def test_an_epoch_that_wrote_nothing_gives_way_to_the_next(tmp_path: Path) -> None:
    assert epochs_at(tmp_path, (1, 0), (2, 10), (5, 10)).entries == [(1, 0), (5, 10)]


def test_the_epoch_that_wrote_an_offset(tmp_path: Path) -> None:
    epochs = epochs_at(tmp_path, (2, 5), (4, 20))
    assert [epochs.epoch_at(offset) for offset in (4, 5, 19, 20, 1000)] == [-1, 2, 2, 4, 4]


def test_where_an_epoch_ends(tmp_path: Path) -> None:
    epochs = epochs_at(tmp_path, (2, 5), (4, 20))
    assert epochs.end_of(4, log_end_offset=33) == (4, 33)
    assert epochs.end_of(2, log_end_offset=33) == (2, 20)
    assert epochs.end_of(3, log_end_offset=33) == (2, 20)
    assert epochs.end_of(1, log_end_offset=33) == (1, 5)
    assert epochs.end_of(5, log_end_offset=33) == (-1, -1)
    assert epochs.end_of(-1, log_end_offset=33) == (-1, -1)


def test_truncation_at_both_ends(tmp_path: Path) -> None:
    epochs = epochs_at(tmp_path, (1, 0), (2, 10), (4, 20))
    epochs.truncate_from_end(20)
    assert (epochs.entries, epochs.latest) == ([(1, 0), (2, 10)], 2)
    epochs.truncate_from_start(15)
    assert (epochs.entries, epochs.latest) == ([(2, 15)], 2)
    epochs.truncate_from_end(0)
    assert (epochs.entries, epochs.latest) == ([], -1)


def test_only_what_changed_is_written_and_only_when_it_is_saved(tmp_path: Path) -> None:
    disk = RecordingDisk(str(tmp_path))
    epochs = LeaderEpochs.load(disk, str(tmp_path))
    epochs.assign(1, 0)
    epochs.truncate_from_start(5)
    assert disk.ops == []
    epochs.save()
    assert [op.kind for op in disk.ops] == ["create", "truncate", "write", "fsync", "rename"]
    assert saved(tmp_path) == [(1, 5)]
    count = len(disk.ops)
    epochs.assign(2, 7)
    epochs.truncate_from_end(7)
    epochs.save()
    LeaderEpochs.load(disk, str(tmp_path)).save()
    assert len(disk.ops) == count


def test_a_checkpoint_that_is_missing_or_bad_is_written_though_nothing_is_in_it(tmp_path: Path) -> None:
    LeaderEpochs.load(Disk(), str(tmp_path)).save()
    path = tmp_path / "leader-epoch-checkpoint"
    assert path.read_bytes() == b"0\n0\n"
    path.write_bytes(b"torn")
    LeaderEpochs.load(Disk(), str(tmp_path)).save()
    assert path.read_bytes() == b"0\n0\n"


class InterruptedDisk(Disk):
    """Something happens while a file is written."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        file = super().open(path, write=write, create=create)
        if create:
            self.meanwhile()
        return file


def test_what_changes_while_it_is_written_is_written_by_the_next(tmp_path: Path) -> None:
    epochs = LeaderEpochs.load(InterruptedDisk(lambda: epochs.assign(2, 10)), str(tmp_path))
    epochs.assign(1, 0)
    epochs.save()
    assert (saved(tmp_path), epochs.entries) == ([(1, 0)], [(1, 0), (2, 10)])
    epochs.save()
    assert saved(tmp_path) == [(1, 0), (2, 10)]


def test_many_threads_may_write_it_at_once(tmp_path: Path) -> None:
    epochs = epochs_at(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        for number in range(50):
            epochs.assign(number, number)
            pool.submit(epochs.save)
        writing = [pool.submit(epochs.save) for _ in range(4)]
    assert [each.result() for each in writing] == [None] * 4
    assert saved(tmp_path) == epochs.entries


def test_nothing_is_written_once_the_log_is_closed_even_if_that_had_begun(tmp_path: Path) -> None:
    """The directory may go, and another log get its name."""
    epochs = LeaderEpochs.load(InterruptedDisk(lambda: epochs.close()), str(tmp_path))
    epochs.assign(1, 0)
    epochs.save()
    epochs.save()
    assert not (tmp_path / "leader-epoch-checkpoint").exists()


def test_a_checkpoint_that_cannot_be_read_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n2\n3 3\n2 5\n")
    assert saved(tmp_path) == []
    with pytest.raises(CheckpointError, match="does not follow"):
        parse_epochs(b"0\n2\n3 3\n2 5\n")
