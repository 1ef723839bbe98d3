"""The disk: whole writes, whole replacements, and what is gone is no error."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from lamina.log import files
from lamina.log.files import Disk, File, forget_pages, read_file, sync_file, write_fully, write_new_file
from lamina.log.lease import Lease


class StingyFile(File):
    """Writes three bytes at a time, as a system call may."""

    def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> int:
        return super().pwrite(memoryview(data)[:3], position)


def test_a_short_write_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = StingyFile("stingy", os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT))
    write_fully(file, b"0123456789", 2)
    file.close()
    assert (tmp_path / "file").read_bytes() == b"\0\0" + b"0123456789"


def test_positions_are_given_and_reads_end_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    file = Disk().open(str(tmp_path / "file"))
    buffer = memoryview(bytearray(6))
    assert (file.pread(3, 4), file.pread(9, 8), file.pread(1, 10)) == (b"456", b"89", b"")
    assert (file.pread_into(buffer, 7), bytes(buffer[:3])) == (3, b"789")
    assert file.size() == 10
    file.close()
    file.close()


def test_pages_of_a_map_that_were_forgotten_come_back_when_they_are_touched(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * 1024)
    file = Disk().open(str(tmp_path / "file"))
    mapped = file.map(file.size())
    before = mapped[:]
    forget_pages(mapped, 1, file.size())
    forget_pages(mapped, 5, 9)
    assert mapped[:] == before
    mapped.close()
    file.close()


def test_a_new_file_replaces_the_old_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    (tmp_path / "file.tmp").write_bytes(b"left by a crash, and longer than what comes")
    for data in (b"first", b"2nd"):
        write_new_file(Disk(), path, data)
        assert read_file(Disk(), path) == data
    assert os.listdir(tmp_path) == ["file"]


def test_what_is_gone_is_no_error(tmp_path: Path) -> None:
    disk = Disk()
    disk.unlink(str(tmp_path / "gone"))
    disk.remove_tree(str(tmp_path / "gone"))
    assert not sync_file(disk, str(tmp_path / "gone"))
    assert not disk.exists(str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError):
        disk.open(str(tmp_path / "gone"), write=True)


def test_a_directory_is_scanned_in_order_with_sizes_and_times(tmp_path: Path) -> None:
    disk = Disk()
    (tmp_path / "b").write_bytes(b"12345")
    (tmp_path / "a").mkdir()
    disk.set_modified_ms(str(tmp_path / "b"), 1_600_000_000_123)
    assert disk.modified_ms(str(tmp_path / "b")) == 1_600_000_000_123
    first, second = disk.scan(str(tmp_path))
    assert (first.name, first.is_dir) == ("a", True)
    assert second[:4] == ("b", False, 5, 1_600_000_000_123)
    assert second.inode == (tmp_path / "b").stat().st_ino


def test_a_lock_is_given_once_until_it_is_closed(tmp_path: Path) -> None:
    disk, path = Disk(), str(tmp_path / ".lock")
    lock = disk.lock(path)
    assert lock is not None
    assert disk.lock(path) is None
    lock.close()
    lock.close()
    again = disk.lock(path)
    assert again is not None
    again.close()


def test_a_short_range_that_is_in_memory_is_had_at_once_and_nothing_behind_the_end(tmp_path: Path) -> None:
    write_new_file(Disk(), str(tmp_path / "file"), b"0123456789")
    file = Disk().open(str(tmp_path / "file"))
    assert bytes(file.read_cached(2, 5) or b"") == b"23456"
    assert file.read_cached(8, 5) is None
    file.close()


def test_a_file_system_that_does_not_know_what_is_in_memory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preadv = os.preadv

    def plain(fd: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        if flags:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return preadv(fd, buffers, position)

    write_new_file(Disk(), str(tmp_path / "file"), b"0123456789")
    file = Disk().open(str(tmp_path / "file"))
    monkeypatch.setattr(os, "preadv", plain)
    assert bytes(file.read_cached(2, 5) or b"") == b"23456"
    file.close()


def test_what_is_not_in_memory_is_left_to_who_waits_for_the_disk_and_an_error_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [errno.EAGAIN, errno.EIO]

    def fail(*_: object) -> int:
        number = errors.pop(0)
        raise OSError(number, os.strerror(number))

    write_new_file(Disk(), str(tmp_path / "file"), b"0123456789")
    file = Disk().open(str(tmp_path / "file"))
    monkeypatch.setattr(os, "preadv", fail)
    assert file.read_cached(0, 5) is None
    with pytest.raises(OSError, match="Input/output error"):
        file.read_cached(0, 5)
    file.close()


def test_a_lease_is_given_back_exactly_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    file = Disk().open(str(tmp_path / "file"))
    given_back: list[bool] = []
    with Lease(file, 2, 3, lambda: given_back.append(True)) as lease:
        assert lease.read() == b"234"
        lease.give_back()
    assert given_back == [True]
    file.close()


class Drive:
    """A macOS in which ``F_FULLFSYNC`` ends with an error, or with none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: int = 0) -> None:
        self.calls: list[str] = []
        self._error = error
        monkeypatch.setattr(files, "_FULL_SYNC", 51)
        monkeypatch.setattr(fcntl, "fcntl", self._fcntl)
        monkeypatch.setattr(os, "fsync", lambda _: self.calls.append("fsync"))

    def _fcntl(self, _: int, command: int) -> None:
        assert command == 51
        self.calls.append("full")
        if self._error:
            raise OSError(self._error, os.strerror(self._error))


def test_on_macos_the_drives_cache_is_emptied_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = Drive(monkeypatch)
    write_new_file(Disk(), str(tmp_path / "file"), b"data")
    assert drive.calls == ["full", "full"], "the file and its name"


def test_a_file_system_that_cannot_do_so_gets_an_ordinary_fsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive(monkeypatch, errno.ENOTSUP)
    Disk().sync_dir(str(tmp_path))
    assert drive.calls == ["full", "fsync"]


def test_a_drive_that_fails_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = Drive(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        Disk().sync_dir(str(tmp_path))
    assert drive.calls == ["full"]


@pytest.mark.skipif(hasattr(fcntl, "F_FULLFSYNC"), reason="macOS has another way")
def test_elsewhere_fsync_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    Disk().sync_dir(str(tmp_path))
    assert len(synced) == 1
