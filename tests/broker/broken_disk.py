"""Paths that the disk cannot read or write any more, in a broker of this process."""

import errno
import os
from collections.abc import Callable

import pytest

from lamina.log.files import Disk, File


def break_paths(
    monkeypatch: pytest.MonkeyPatch, is_broken: Callable[[str], bool], error_number: int = errno.EIO
) -> None:
    """Every disk fails to open or make these paths from now on."""

    def broken(path: str) -> None:
        if is_broken(path):
            raise OSError(error_number, os.strerror(error_number), path)

    open_, make_dir = Disk.open, Disk.make_dir

    def open_file(disk: Disk, path: str, *, write: bool = False, create: bool = False) -> File:
        broken(path)
        return open_(disk, path, write=write, create=create)

    def make(disk: Disk, path: str) -> None:
        broken(path)
        make_dir(disk, path)

    monkeypatch.setattr(Disk, "open", open_file)
    monkeypatch.setattr(Disk, "make_dir", make)
