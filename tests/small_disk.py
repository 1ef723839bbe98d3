"""A real file system that is quickly full, for tests of what happens then."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

_BLOCK = bytes(4096)


class SmallDisk:
    """In memory, of so many bytes and names; both can be used up from outside, and changed while it is in use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = count()

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def resize(self, size_bytes: int) -> None:
        _mount("-o", f"remount,size={size_bytes}", str(self.path))

    def fill(self, but_bytes: int = 0) -> Path:
        """Write a file that leaves so many bytes. Returns it: without it there is room again."""
        filler = self.path / f"filler-{next(self._numbers)}"
        with filler.open("wb", buffering=0) as file:
            while self.free_bytes > but_bytes:
                file.write(_BLOCK)
        return filler

    def use_up_names(self) -> list[Path]:
        """Make empty files until there can be no more."""
        made: list[Path] = []
        while os.statvfs(self.path).f_ffree:
            made.append(self.path / f"name-{next(self._numbers)}")
            made[-1].touch()
        return made


@contextmanager
def a_small_disk(path: Path, size_bytes: int, names: int = 100_000) -> Iterator[SmallDisk]:
    """Skips the test where nobody may mount one."""
    path.mkdir(parents=True)
    try:
        _mount("-t", "tmpfs", "-o", f"size={size_bytes},nr_inodes={names}", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk can only be filled by who may mount one, and here nobody may: {error}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
