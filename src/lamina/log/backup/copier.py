"""The files of a backup: linked where that is safe, else copied; durable, and remembered for the manifest.

Must not know what is inside a file, nor which files belong together.
"""

import errno
from dataclasses import dataclass
from typing import NamedTuple

from lamina.log.files import Disk, copy_file, make_durable_dir, read_file, sync_file, write_new_file
from lamina.records.checksum import crc32c

_CANNOT_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP}
"""Another file system, one without links, somebody else's file, too many names: a copy does as well."""


class BackupError(Exception):
    """Why there is no backup, or nothing was restored, in one sentence."""


class Step(NamedTuple):
    """What was just done; a backup yields one after each thing that a change could meet."""

    what: str
    path: str
    done_bytes: int = 0
    """Bytes of the source that are behind it."""


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A file of a backup, by its path below the backup."""

    path: str
    size_bytes: int
    modified_ms: int
    crc: int | None
    """CRC-32C of what was copied; nothing for a link, whose bytes were never read."""

    @property
    def is_linked(self) -> bool:
        return self.crc is None


class Copier:
    """Brings files to below ``root``; paths below it are given without it."""

    def __init__(self, disk: Disk, root: str, *, may_link: bool) -> None:
        self.disk = disk
        self.root = root
        self.may_link = may_link
        self.files: dict[str, BackupFile] = {}

    def link(self, source: str, path: str, modified_ms: int, size_bytes: int) -> BackupFile:
        """Give a file that never changes again a second name here, or copy it where that cannot be done."""
        if not self.may_link:
            return self.copy(source, path, modified_ms, size_bytes)
        target = f"{self.root}/{path}"
        try:
            self.disk.link(source, target)
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
            return self.copy(source, path, modified_ms, size_bytes)
        sync_file(self.disk, target)
        return self._remember(BackupFile(path, size_bytes, modified_ms, None))

    def copy(self, source: str, path: str, modified_ms: int, size_bytes: int) -> BackupFile:
        """Copy the first ``size_bytes``, with the time of the last change: retention may go by it."""
        crc = 0

        def see(piece: memoryview) -> None:
            nonlocal crc
            crc = crc32c(piece, crc)

        target = f"{self.root}/{path}"
        copy_file(self.disk, source, target, size_bytes, see)
        self.disk.set_modified_ms(target, modified_ms)
        return self._remember(BackupFile(path, size_bytes, modified_ms, crc))

    def write(self, path: str, data: bytes) -> BackupFile:
        """A file of the backup's own."""
        target = f"{self.root}/{path}"
        write_new_file(self.disk, target, data)
        return self._remember(BackupFile(path, len(data), self.disk.modified_ms(target), crc32c(data)))

    def note(self, path: str, size_bytes: int, crc: int) -> BackupFile:
        """Take a file into account that somebody else wrote and synced below the root."""
        modified_ms = self.disk.modified_ms(f"{self.root}/{path}")
        return self._remember(BackupFile(path, size_bytes, modified_ms, crc))

    def count(self, path: str) -> BackupFile:
        """Take a file into account that somebody else made below the root."""
        data = read_file(self.disk, f"{self.root}/{path}")
        sync_file(self.disk, f"{self.root}/{path}")
        modified_ms = self.disk.modified_ms(f"{self.root}/{path}")
        return self._remember(BackupFile(path, len(data), modified_ms, crc32c(data)))

    def make_dir(self, path: str) -> None:
        make_durable_dir(self.disk, f"{self.root}/{path}")

    def sync_dir(self, path: str) -> None:
        self.disk.sync_dir(f"{self.root}/{path}")

    def remove(self, path: str) -> None:
        """Take a file out again."""
        self.disk.unlink(f"{self.root}/{path}")
        self.files.pop(path, None)

    def remove_tree(self, path: str) -> None:
        """Take a directory out again, with all that is in it."""
        self.disk.remove_tree(f"{self.root}/{path}")
        for name in [name for name in self.files if name.startswith(f"{path}/")]:
            del self.files[name]

    def _remember(self, file: BackupFile) -> BackupFile:
        self.files[file.path] = file
        return file
