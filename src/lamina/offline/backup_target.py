"""Where a backup goes: a directory that has its name only when it is whole, and is ``TARGET.partial`` until then.

Owns who may write there. Must not know what is in a backup.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lamina.log.backup.copier import BackupError
from lamina.log.files import Disk, File

PARTIAL = ".partial"
_LOCK = ".backup.lock"


class BackupRefused(BackupError):
    """What was asked for cannot be done; nothing was begun."""


@dataclass(frozen=True, slots=True)
class Claim:
    disk: Disk
    target: str

    def complete(self) -> None:
        """Give the directory its name: all in it is durable."""
        self.disk.unlink(f"{self.target}{PARTIAL}/{_LOCK}")
        self.disk.sync_dir(self.target + PARTIAL)
        self.disk.rename(self.target + PARTIAL, self.target)
        self.disk.sync_dir(os.path.dirname(self.target))


def check_target(disk: Disk, target: str, sources: Iterable[str] = ()) -> None:
    if os.path.lexists(target):
        raise BackupRefused(f"{target} is there already: name a directory that is not")
    if not os.path.isdir(os.path.dirname(target)):
        raise BackupRefused(f"{os.path.dirname(target)} is not a directory: make it first")
    for source in map(disk.absolute, sources):
        if target.startswith(f"{source}/"):
            raise BackupRefused(f"{target} is inside {source}, which is to be backed up: choose another place")


@contextmanager
def claimed(disk: Disk, target: str) -> Iterator[Claim]:
    """A partial directory that is this backup's, and goes if it is not completed."""
    lock = _claim(disk, target)
    try:
        yield Claim(disk, target)
    finally:
        disk.remove_tree(target + PARTIAL)
        lock.close()


def _claim(disk: Disk, target: str) -> File:
    """Begin the partial directory, in place of one that a killed backup left."""
    partial = target + PARTIAL
    lock_path = f"{partial}/{_LOCK}"
    if os.path.lexists(partial):
        if not os.path.exists(lock_path):
            raise BackupRefused(f"{partial} is in the way and was not made by a backup: move it away")
        left = disk.lock(lock_path)
        if left is None:
            raise BackupRefused(f"another backup to {target} is under way")
        disk.remove_tree(partial)
        left.close()
    disk.make_dir(partial)
    lock = disk.lock(lock_path)
    if lock is None:
        raise BackupRefused(f"another backup to {target} is under way")
    return lock
