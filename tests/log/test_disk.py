"""The test disk itself: it loses what was not synced, tears what was not fsynced, and keeps the rest."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from lamina.log.files import File, write_new_file
from tests.log.disk import RecordingDisk
from tests.log.faulty import FaultyDisk


@pytest.fixture
def disk(tmp_path: Path) -> RecordingDisk:
    (tmp_path / "live").mkdir()
    return RecordingDisk(f"{tmp_path}/live")


@pytest.fixture
def states(disk: RecordingDisk, tmp_path: Path) -> Callable[[], Iterator[Path]]:
    """A few hundred power cuts after everything that was done."""

    def crash() -> Iterator[Path]:
        for seed in range(300):
            target = tmp_path / f"crash-{seed}"
            disk.crash(len(disk.ops), Random(seed), str(target))
            yield target

    return crash


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def write(disk: RecordingDisk, name: str, data: bytes, position: int = 0) -> File:
    file = disk.open(f"{disk.root}/{name}", create=True)
    file.pwrite(data, position)
    return file


def test_what_was_synced_is_always_there(disk: RecordingDisk, states: Callable[[], Iterator[Path]]) -> None:
    write(disk, "a", b"data").fsync()
    disk.sync_dir(disk.root)
    assert all(contents(state) == {"a": b"data"} for state in states())


def test_a_name_needs_its_directory_synced(disk: RecordingDisk, states: Callable[[], Iterator[Path]]) -> None:
    write(disk, "a", b"data").fsync()
    found = [contents(state) for state in states()]
    assert {} in found
    assert {"a": b"data"} in found


def test_data_that_was_not_fsynced_is_kept_lost_torn_or_zeros(
    disk: RecordingDisk, states: Callable[[], Iterator[Path]]
) -> None:
    file = write(disk, "a", b"safe")
    file.fsync()
    disk.sync_dir(disk.root)
    file.pwrite(b"1111", 4)
    file.pwrite(b"2222", 8)
    found = {contents(state)["a"] for state in states()}
    assert {b"safe", b"safe1111", b"safe11112222", b"safe1111" + bytes(4)} <= found
    assert b"safe" + bytes(4) + b"2222" in found, "a later write without an earlier one"
    assert {b"safe1", b"safe11", b"safe111"} & found
    assert all(data.startswith(b"safe") for data in found)


def test_a_rename_is_whole_or_not_there(disk: RecordingDisk, states: Callable[[], Iterator[Path]]) -> None:
    write_new_file(disk, f"{disk.root}/a", b"old")
    write_new_file(disk, f"{disk.root}/a", b"new", sync=False)
    found = [contents(state) for state in states()]
    assert {"a": b"old"} in found
    assert {"a": b"new"} in found
    assert all(state["a"] != b"old" or set(state) <= {"a", "a.tmp"} for state in found)
    assert {"a": b""} in found, "the name before the data"


def test_names_may_reach_the_disk_out_of_order(disk: RecordingDisk, states: Callable[[], Iterator[Path]]) -> None:
    for name in ("a", "b"):
        write(disk, name, b"").fsync()
    disk.sync_dir(disk.root)
    disk.unlink(f"{disk.root}/a")
    disk.rename(f"{disk.root}/b", f"{disk.root}/c")
    found = [set(contents(state)) for state in states()]
    assert {frozenset(names) for names in found} == {
        frozenset(names) for names in ({"a", "b"}, {"b"}, {"c"}, {"a", "c"})
    }


def test_a_new_directory_may_be_lost_with_all_in_it(disk: RecordingDisk, states: Callable[[], Iterator[Path]]) -> None:
    disk.make_dir(f"{disk.root}/d")
    write(disk, "d/a", b"data").fsync()
    disk.sync_dir(f"{disk.root}/d")
    found = [contents(state) for state in states()]
    assert {} in found
    assert {"a": b"data"} in found


def test_a_prefix_knows_nothing_of_what_came_after(disk: RecordingDisk, tmp_path: Path) -> None:
    write(disk, "a", b"data").fsync()
    disk.sync_dir(disk.root)
    operations = len(disk.ops)
    disk.unlink(f"{disk.root}/a")
    disk.sync_dir(disk.root)
    disk.crash(operations, Random(0), f"{tmp_path}/crash")
    assert contents(tmp_path / "crash") == {"a": b"data"}


def test_the_chosen_operation_fails_and_only_that_one(tmp_path: Path) -> None:
    disk = FaultyDisk()
    file = disk.open(f"{tmp_path}/a", create=True)
    disk.arm(1, 5)
    assert file.pwrite(b"1234", 0) == 4
    with pytest.raises(OSError, match="Input/output error"):
        file.fsync()
    file.fsync()
    disk.arm(0, 0, is_short=True)
    assert file.pwrite(b"1234", 4) == 2
    assert disk.ops == ["write a"]
