"""Real file systems that are quickly full, or fail while somebody writes to them, for tests of what happens then."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

_BLOCK = bytes(4096)


class MountedDisk:
    """Its space can be used up from outside while it is in use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = count()

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, but_bytes: int = 0) -> Path:
        """Write a file that leaves so many bytes. Returns it: without it there is room again."""
        filler = self._unused_path("filler")
        with filler.open("wb", buffering=0) as file:
            while self.free_bytes > but_bytes:
                try:
                    file.write(_BLOCK)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    # Somebody else took the last of it.
                    break
        return filler

    def _unused_path(self, name: str) -> Path:
        return self.path / f"{name}-{next(self._numbers)}"


class SmallDisk(MountedDisk):
    """In memory, of so many bytes and names; both can be used up from outside, and changed while it is in use."""

    def resize(self, size_bytes: int) -> None:
        _run("mount", "-o", f"remount,size={size_bytes}", str(self.path))

    def use_up_names(self) -> list[Path]:
        """Make empty files until there can be no more."""
        made: list[Path] = []
        while os.statvfs(self.path).f_ffree:
            made.append(self._unused_path("name"))
            made[-1].touch()
        return made


class FailingDisk(MountedDisk):
    """An ext4 in a file. It fails as Linux makes one fail whose device reports errors."""

    def __init__(self, path: Path, image: Path) -> None:
        super().__init__(path)
        self._image = image
        self.mount()

    def fail(self) -> None:
        """Read-only from now on, for files that are open too; what was not synced is gone with the next mount."""
        _run("mount", "-o", "remount,abort", str(self.path))

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))

    def mount_again(self) -> None:
        """When nobody has it open any more; its journal is replayed."""
        _run("umount", str(self.path))
        self.mount()


@contextmanager
def a_small_disk(path: Path, size_bytes: int, names: int = 100_000) -> Iterator[SmallDisk]:
    """Skips the test where nobody may mount one."""
    path.mkdir(parents=True)
    with _mounting(path):
        _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes},nr_inodes={names}", "tmpfs", str(path))
    try:
        yield SmallDisk(path)
    finally:
        _unmount(path)


@contextmanager
def a_failing_disk(path: Path, size_bytes: int) -> Iterator[FailingDisk]:
    """Skips the test where nobody may mount one. The file is beside ``path``."""
    path.mkdir(parents=True)
    image = path.with_suffix(".ext4")
    with image.open("wb") as file:
        file.truncate(size_bytes)
    with _mounting(path):
        _run("mkfs.ext4", "-q", "-m", "0", str(image))
        disk = FailingDisk(path, image)
    try:
        yield disk
    finally:
        _unmount(path)


@contextmanager
def _mounting(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk can only be hurt by who may mount one, and at {path} nobody may: {error}")


def _unmount(path: Path) -> None:
    _run("umount", "--lazy", str(path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
