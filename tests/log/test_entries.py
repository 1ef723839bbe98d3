"""The life of an index file: preallocated, written with pwrite, mapped on first use, trimmed."""

from pathlib import Path
from struct import Struct

import pytest

from lamina.log.entries import IndexFile, OpenMaps
from lamina.log.files import Disk, File, Map

ENTRY = Struct(">q")


class WatchedDisk(Disk):
    """Counts the maps that are made."""

    def __init__(self) -> None:
        self.maps = 0

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        return WatchedFile(self, path, super().open(path, write=write, create=create).fd)


class WatchedFile(File):
    def __init__(self, disk: WatchedDisk, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self.disk = disk

    def map(self, size_bytes: int) -> Map:
        self.disk.maps += 1
        return super().map(size_bytes)


def an_index(path: Path, disk: Disk | None = None, maps: OpenMaps | None = None, name: str = "index") -> IndexFile:
    return IndexFile(disk or Disk(), str(path / name), ENTRY, 0, 100, OpenMaps() if maps is None else maps)


def test_it_is_preallocated_to_whole_entries_and_trimmed_to_its_entries(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    index.open_for_append()
    assert (tmp_path / "index").stat().st_size == 96
    index.append(7)
    assert (tmp_path / "index").stat().st_size == 96
    index.trim()
    assert (tmp_path / "index").read_bytes() == ENTRY.pack(7)


def test_an_entry_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    index.append(7)
    assert (tmp_path / "index").read_bytes()[:8] == ENTRY.pack(7)
    index.close()


def test_no_map_is_made_by_writing_nor_by_reading_the_last_entry(tmp_path: Path) -> None:
    disk = WatchedDisk()
    index = an_index(tmp_path, disk)
    index.append(7)
    assert index.read_last() == (7,)
    assert disk.maps == 0
    assert index.read(0) == (7,)
    assert index.read(0) == (7,)
    assert disk.maps == 1
    index.close()


def test_a_map_cannot_be_written_through(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    index.append(7)
    with pytest.raises(TypeError):
        index.map()[0] = 1
    index.close()


def test_entries_appended_after_the_map_was_made_are_seen(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    index.append(1)
    assert index.read(0) == (1,)
    index.append(2)
    assert index.read(1) == (2,)
    index.close()


def test_only_so_many_maps_are_kept_and_the_one_used_longest_ago_goes_first(tmp_path: Path) -> None:
    disk, maps = WatchedDisk(), OpenMaps(limit=2)
    indexes = [an_index(tmp_path, disk, maps, f"index{number}") for number in range(3)]
    for index in indexes:
        index.append(1)
    indexes[0].map()
    indexes[1].map()
    indexes[0].map()
    indexes[2].map()
    assert (len(maps), disk.maps) == (2, 3)
    indexes[0].map()
    assert disk.maps == 3
    indexes[1].map()
    assert disk.maps == 4
    for index in indexes:
        index.close()
    assert len(maps) == 0


def test_a_file_cut_short_behind_our_back_is_no_entry(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    index.append(7)
    index.trim()
    (tmp_path / "index").write_bytes(b"")
    with pytest.raises(FileNotFoundError):
        index.read_last()
