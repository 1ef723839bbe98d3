"""Replacing segments: what readers see, and the crash-safe order of facts 78-80."""

from pathlib import Path

import pytest

from lamina.log.files import Disk, File
from lamina.log.segment import Segment
from lamina.log.steps import run_steps
from lamina.settings.log_config import LONG_MAX
from tests.log.building import LogBuilder, a_log, expire


class NamingDisk(Disk):
    """Remembers renames and syncs of the directory in order."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def rename(self, old: str, new: str) -> None:
        self.steps.append(f"{old.rpartition('/')[2]} → {new.rpartition('/')[2]}")
        super().rename(old, new)

    def open_dir(self, path: str) -> File:
        return SyncedNames(self, super().open_dir(path))


class SyncedNames(File):
    def __init__(self, disk: NamingDisk, directory: File) -> None:
        super().__init__(directory.path, directory.fd)
        self.disk = disk

    def fsync(self) -> None:
        self.disk.steps.append("sync")
        super().fsync()


def three_segments(tmp_path: Path, disk: Disk | None = None) -> LogBuilder:
    """Segments 0-2, 3-5 and an active one from 6 on."""
    builder = a_log(tmp_path, disk)
    for number in range(7):
        if number in (3, 6):
            builder.log.roll(builder.now_ms)
        builder.append(b"k%d=v" % number)
    return builder


def keeping(builder: LogBuilder, *offsets: int, first: int = 0, last: int = 1) -> tuple[Segment, list[Segment]]:
    """The segment made of the first two that keeps these offsets, and the two."""
    old = list(builder.log.segments)[first : last + 1]
    kept = [bytearray(data) for header, data in builder.batches() if header.base_offset in offsets]
    return builder.rewrite(old, kept), old


def test_readers_see_the_new_segment_and_read_across_its_gaps(tmp_path: Path) -> None:
    builder = three_segments(tmp_path)
    new, old = keeping(builder, 1, 4)
    lease = builder.log.read(3, 10_000)
    assert lease is not None
    before = lease.read()
    run_steps(builder.log.replace([new], old, builder.now_ms))
    assert [record.offset for record in builder.records()] == [1, 4, 6]
    assert builder.bases() == [0, 6]
    assert lease.read() == before
    lease.give_back()
    for stop in (True, False):
        builder.reopen(clean=stop)
        assert [record.offset for record in builder.records()] == [1, 4, 6]


def test_the_steps_are_in_the_order_that_a_crash_can_be_settled_from(tmp_path: Path) -> None:
    """Facts 78 and 79, with the directory synced before any old name goes."""
    disk = NamingDisk()
    builder = three_segments(tmp_path, disk)
    new, old = keeping(builder, 1, 4)
    disk.steps.clear()
    run_steps(builder.log.replace([new], old, builder.now_ms))
    parts = (".log", ".index", ".timeindex")
    assert disk.steps == [
        "sync",
        *(f"{0:020d}{part}.cleaned → {0:020d}{part}.swap" for part in parts),
        "sync",
        *(f"{base:020d}{part} → {base:020d}{part}.deleted" for base in (0, 3) for part in parts),
        "sync",
        *(f"{0:020d}{part}.swap → {0:020d}{part}" for part in parts),
        "sync",
        f"{3:020d}.snapshot → {3:020d}.snapshot.deleted",
    ]


def test_the_new_files_have_the_age_of_the_last_source(tmp_path: Path) -> None:
    """Fact 47."""
    builder = three_segments(tmp_path)
    new, old = keeping(builder, 1, 4)
    old[1].modified_ms = new.modified_ms = 1_600_000_000_000
    run_steps(builder.log.replace([new], old, builder.now_ms))
    for extension in (".log", ".index", ".timeindex"):
        assert builder.file(0, extension).stat().st_mtime == 1_600_000_000


def test_a_source_that_retention_took_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """Fact 80."""
    builder = three_segments(tmp_path)
    new, old = keeping(builder, 1, 4)
    builder.log.advance_log_start(4)
    assert expire(builder.log, builder.now_ms, builder.log.log_end_offset) == old[:1]
    run_steps(builder.log.replace([new], old, builder.now_ms))
    paths = builder.log.take_due_paths(LONG_MAX)
    assert len(paths) == len(set(paths))
    assert [record.offset for record in builder.records()] == [4, 6]


def test_only_a_cleaned_segment_is_swapped_in(tmp_path: Path) -> None:
    builder = three_segments(tmp_path)
    new, old = keeping(builder, 1, 4)
    new.rename(".swap")
    with pytest.raises(ValueError, match=r"was not written under a \.cleaned name"):
        run_steps(builder.log.replace([new], old, builder.now_ms))
    assert builder.bases() == [0, 3, 6]


def test_an_emptied_segment_is_read_across(tmp_path: Path) -> None:
    builder = three_segments(tmp_path)
    new, old = keeping(builder)
    run_steps(builder.log.replace([new], old, builder.now_ms))
    assert [record.offset for record in builder.records()] == [6]
    for offset in range(8):
        data = builder.read(offset)
        assert bool(data) is (offset < 7)
    builder.reopen(clean=False, recovery_point=0)
    assert [record.offset for record in builder.records()] == [6]
