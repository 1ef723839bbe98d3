"""A disk on which one chosen operation fails, or writes less than it was asked to."""

import os

from lamina.log.files import Bytes, Disk, File


class FaultyFile(File):
    __slots__ = ("disk",)

    def __init__(self, disk: "FaultyDisk", file: File) -> None:
        super().__init__(file.path, file.fd)
        self.disk = disk

    def pwrite(self, data: Bytes, position: int) -> int:
        if self.disk.reaches("write", self.path):
            if self.disk.is_short:
                return super().pwrite(data[: len(data) // 2], position)
            self.disk.raise_error(self.path)
        return super().pwrite(data, position)

    def truncate(self, size_bytes: int) -> None:
        self.disk.attempt("truncate", self.path)
        super().truncate(size_bytes)

    def fsync(self) -> None:
        """Counted, and not waited for: these tests are not about what survives."""
        self.disk.attempt("fsync", self.path)


class FaultyDisk(Disk):
    """Does as it is told until armed; then the ``nth`` operation from there on fails, and only that one."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.is_short = False
        self._nth = -1
        self._error = 0

    def arm(self, nth: int, error: int, *, is_short: bool = False) -> None:
        """Count from here: ``ops`` begins anew."""
        self.ops, self._nth, self._error, self.is_short = [], nth, error, is_short

    def reaches(self, kind: str, path: str) -> bool:
        self.ops.append(f"{kind} {path.rpartition('/')[2]}")
        return len(self.ops) - 1 == self._nth

    def raise_error(self, path: str) -> None:
        raise OSError(self._error, os.strerror(self._error), path)

    def attempt(self, kind: str, path: str) -> None:
        if self.reaches(kind, path):
            self.raise_error(path)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        self.attempt("open", path)
        return FaultyFile(self, super().open(path, write=write, create=create))

    def rename(self, old: str, new: str) -> None:
        self.attempt("rename", old)
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        self.attempt("unlink", path)
        super().unlink(path)

    def make_dir(self, path: str) -> None:
        self.attempt("make_dir", path)
        super().make_dir(path)

    def open_dir(self, path: str) -> File:
        self.attempt("open_dir", path)
        return FaultyFile(self, super().open_dir(path))

    def sync_dir(self, path: str) -> None:
        self.attempt("sync_dir", path)
