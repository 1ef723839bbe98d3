"""What a crash in the middle of a replacement means; facts 82-85."""

import shutil
from pathlib import Path

import pytest

from lamina.log.files import Disk
from lamina.log.leftovers import complete_swap_operations
from tests.log.building import LogBuilder, a_log

PARTS = (".log", ".index", ".timeindex")


def before_and_after(tmp_path: Path) -> tuple[LogBuilder, list[int], list[int]]:
    """A log whose first two segments were rewritten under ``.cleaned`` names, and both truths."""
    builder = a_log(tmp_path)
    for number in range(7):
        if number in (3, 6):
            builder.log.roll(builder.now_ms)
        builder.append(b"k%d=v" % number)
    kept = [bytearray(data) for header, data in builder.batches() if header.base_offset in (1, 4)]
    builder.rewrite(list(builder.log.segments)[:2], kept)
    builder.log.close()
    return builder, [0, 1, 2, 3, 4, 5, 6], [1, 4, 6]


def rename(builder: LogBuilder, base_offset: int, old: str, new: str, parts: tuple[str, ...] = PARTS) -> None:
    for part in parts:
        builder.file(base_offset, part + old).rename(builder.file(base_offset, part + new))


def offsets_after_a_crash(builder: LogBuilder) -> list[int]:
    complete_swap_operations(builder.disk, str(builder.path))
    once = builder.names()
    complete_swap_operations(builder.disk, str(builder.path))
    assert builder.names() == once
    assert not any(name.endswith((".cleaned", ".swap", ".deleted", ".tmp")) for name in once)
    builder.reopen(clean=False, recovery_point=0)
    return [record.offset for record in builder.records()]


def test_only_cleaned_files_mean_the_old_data(tmp_path: Path) -> None:
    """Fact 85, as the next three."""
    builder, old, _ = before_and_after(tmp_path)
    assert offsets_after_a_crash(builder) == old


@pytest.mark.parametrize("renamed", [PARTS[:1], PARTS[:2]])
def test_while_one_cleaned_file_remains_it_is_the_old_data(tmp_path: Path, renamed: tuple[str, ...]) -> None:
    builder, old, _ = before_and_after(tmp_path)
    rename(builder, 0, ".cleaned", ".swap", renamed)
    assert offsets_after_a_crash(builder) == old


@pytest.mark.parametrize("doomed", [0, 1, 2])
def test_once_all_is_swap_it_is_the_new_data(tmp_path: Path, doomed: int) -> None:
    builder, _, new = before_and_after(tmp_path)
    rename(builder, 0, ".cleaned", ".swap")
    for base_offset in (0, 3)[:doomed]:
        rename(builder, base_offset, "", ".deleted")
    assert offsets_after_a_crash(builder) == new


@pytest.mark.parametrize("final", [PARTS[:1], PARTS[:2], PARTS])
def test_some_final_names_are_the_new_data(tmp_path: Path, final: tuple[str, ...]) -> None:
    builder, _, new = before_and_after(tmp_path)
    rename(builder, 0, ".cleaned", ".swap")
    for base_offset in (0, 3):
        rename(builder, base_offset, "", ".deleted")
    rename(builder, 0, ".swap", "", final)
    assert offsets_after_a_crash(builder) == new


def test_a_lower_segment_that_is_complete_survives_a_higher_one_that_is_not(tmp_path: Path) -> None:
    """Fact 82: only what lies at or above the first unfinished segment is undone."""
    builder, _, new = before_and_after(tmp_path)
    rename(builder, 0, ".cleaned", ".swap")
    builder.file(6, ".log.cleaned").touch()
    shutil.copy(builder.file(6, ".log"), builder.file(6, ".log.swap"))
    assert offsets_after_a_crash(builder) == new


def test_snapshots_in_the_replaced_range_go_too(tmp_path: Path) -> None:
    """Fact 83."""
    builder, _, _ = before_and_after(tmp_path)
    rename(builder, 0, ".cleaned", ".swap")
    assert builder.file(3, ".snapshot").exists()
    complete_swap_operations(builder.disk, str(builder.path))
    assert not builder.file(3, ".snapshot").exists()
    assert builder.file(6, ".snapshot").exists()


def test_an_index_without_its_log_is_nobodys(tmp_path: Path) -> None:
    """Fact 84."""
    for extension in (".index", ".timeindex", ".txnindex", ".snapshot"):
        (tmp_path / f"{5:020d}{extension}").touch()
    (tmp_path / "partition.metadata").touch()
    complete_swap_operations(Disk(), str(tmp_path))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [f"{5:020d}.snapshot", "partition.metadata"]


def test_directories_are_none_of_its_business(tmp_path: Path) -> None:
    (tmp_path / f"{5:020d}.log.cleaned").mkdir()
    complete_swap_operations(Disk(), str(tmp_path))
    assert (tmp_path / f"{5:020d}.log.cleaned").is_dir()
