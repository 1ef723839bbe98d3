"""The disk in memory: what a kill and what a power cut leave."""

from random import Random

import pytest

from lamina.log.files import read_file, write_new_file
from tests.simulation.memory_disk import MemoryDisk


def new_disk() -> MemoryDisk:
    disk = MemoryDisk(lambda: 7)
    disk.make_dir("/logs")
    disk.sync_dir("/")
    return disk


def test_what_was_synced_survives_every_power_cut() -> None:
    disk = new_disk()
    write_new_file(disk, "/logs/a", b"synced")
    assert {read_file(disk.after_power_cut(Random(seed)), "/logs/a") for seed in range(50)} == {b"synced"}


def test_what_was_not_synced_survives_some_power_cuts_whole_torn_or_not_at_all() -> None:
    disk = new_disk()
    write_new_file(disk, "/logs/a", b"synced")
    disk.open("/logs/a", write=True).pwrite(b" and more", 6)
    left = {read_file(disk.after_power_cut(Random(seed)), "/logs/a") for seed in range(200)}
    assert {b"synced", b"synced and more"} < left
    assert all(one.startswith(b"synced") for one in left)


def test_a_name_that_was_not_synced_may_be_lost() -> None:
    disk = new_disk()
    disk.open("/logs/a", create=True).fsync()
    found = {disk.after_power_cut(Random(seed)).exists("/logs/a") for seed in range(50)}
    assert found == {True, False}


def test_a_power_cut_leaves_the_disk_before_it_as_it_was_for_the_next() -> None:
    disk = new_disk()
    write_new_file(disk, "/logs/a", b"synced")
    second = disk.after_power_cut(Random(1))
    write_new_file(second, "/logs/b", b"too")
    third = second.after_power_cut(Random(2))
    assert [entry.name for entry in third.scan("/logs")] == ["a", "b"]


def test_a_map_shows_what_is_written_later() -> None:
    disk = new_disk()
    file = disk.open("/logs/a", create=True)
    file.truncate(8)
    mapped = file.map(8)
    file.pwrite(b"late", 2)
    assert mapped[:] == b"\0\0late\0\0"


def test_a_directory_is_renamed_with_all_in_it() -> None:
    disk = new_disk()
    disk.make_dir("/logs/a-0")
    write_new_file(disk, "/logs/a-0/x", b"1")
    disk.rename("/logs/a-0", "/logs/a-0.deleted")
    assert read_file(disk, "/logs/a-0.deleted/x") == b"1"
    with pytest.raises(FileNotFoundError):
        disk.open("/logs/a-0/x")
    disk.remove_tree("/logs/a-0.deleted")
    assert disk.scan("/logs") == []


def test_a_lock_is_held_once_until_its_process_is_gone() -> None:
    disk = new_disk()
    held = disk.lock("/logs/.lock")
    assert held is not None
    assert disk.lock("/logs/.lock") is None
    disk.unlock()
    assert disk.lock("/logs/.lock") is not None
