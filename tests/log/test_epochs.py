"""The leader-epoch cache and its checkpoint; formats.md §2.5."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.checkpoints import CheckpointError
from lamina.log.epochs import EpochStart, LeaderEpochs, format_epochs, parse_epochs
from lamina.log.files import Disk


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
    assert epochs.assign(3, 10)
    assert not epochs.assign(3, 20)
    assert not epochs.assign(2, 30)
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


def test_truncation_at_both_ends_is_saved(tmp_path: Path) -> None:
    epochs = epochs_at(tmp_path, (1, 0), (2, 10), (4, 20))
    epochs.truncate_from_end(20)
    assert saved(tmp_path) == [(1, 0), (2, 10)]
    epochs.truncate_from_start(15)
    assert (saved(tmp_path), epochs.latest) == ([(2, 15)], 2)
    epochs.clear()
    assert (saved(tmp_path), epochs.latest) == ([], -1)


def test_a_checkpoint_that_cannot_be_read_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n2\n3 3\n2 5\n")
    assert saved(tmp_path) == []
    with pytest.raises(CheckpointError, match="does not follow"):
        parse_epochs(b"0\n2\n3 3\n2 5\n")
