"""The disk: every operation on a file that the log performs, and nothing else.

The rest of the room asks a :class:`Disk` for files by path, so that a test disk can stand in, record what is
done and fail it at will. Errors are ordinary ``OSError``; what they mean is decided by the caller. Must not
know what is inside a file.
"""

import errno
import fcntl
import mmap
import os
import shutil
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from lamina.log.descriptors import RESERVE

Bytes = bytes | bytearray | memoryview
Map = mmap.mmap

_RWF_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_NO_FULL_SYNC = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL)
_PROBE_BYTES = 128 * 1024
_LOAD_BYTES = 1024 * 1024
_COPY_BYTES = 4 * 1024 * 1024

_BOOT_ID = "/proc/sys/kernel/random/boot_id"

TEMPORARY = ".tmp"
"""The suffix of a file that is not finished; one that a crash left means nothing."""


class Entry(NamedTuple):
    """A name in a directory."""

    name: str
    is_dir: bool
    size_bytes: int
    modified_ms: int
    inode: int
    """Which file it is: another one may have the same name later."""


class File:
    """An open file. Positions are always given: no operation depends on an earlier one."""

    __slots__ = ("fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd

    def fileno(self) -> int:
        return self.fd

    def pwrite(self, data: Bytes, position: int) -> int:
        """Write at ``position``; may write less than asked, as the system call may."""
        return os.pwrite(self.fd, data, position)

    def pread(self, size_bytes: int, position: int) -> bytes:
        return os.pread(self.fd, size_bytes, position)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Fill ``buffer`` from ``position`` on; less only at the end of the file."""
        filled = 0
        while filled < len(buffer):
            count = os.preadv(self.fd, [buffer[filled:]], position + filled)
            if count == 0:
                break
            filled += count
        return filled

    def is_cached(self, position: int, size_bytes: int) -> bool:
        """Whether a range seems to be in memory: a few bytes of it can be had without waiting for the disk."""
        if not _RWF_NOWAIT:
            return True
        probe = bytearray(1)
        try:
            for at in (*range(position, position + size_bytes, _PROBE_BYTES), position + size_bytes - 1):
                os.preadv(self.fd, [probe], at, _RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def read_cached(self, position: int, size_bytes: int) -> bytearray | None:
        """A short range, if it is in memory; where nobody can tell whether it is, it is read all the same."""
        data = bytearray(size_bytes)
        try:
            count = os.preadv(self.fd, [data], position, _RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            count = os.preadv(self.fd, [data], position)
        return data if count == size_bytes else None

    def load(self, position: int, size_bytes: int) -> None:
        """Bring a range into memory."""
        buffer = bytearray(min(size_bytes, _LOAD_BYTES))
        end = position + size_bytes
        while position < end:
            count = os.preadv(self.fd, [buffer], position)
            if count == 0:
                return
            position += count

    def send(self, socket_fd: int, position: int, size_bytes: int) -> int:
        """Send a range to a socket without reading it here; as much as the socket takes, 0 at the end of the file."""
        return os.sendfile(socket_fd, self.fd, position, size_bytes)

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self.fd, size_bytes)

    def fsync(self) -> None:
        sync(self.fd)

    def map(self, size_bytes: int) -> Map:
        """A read-only map. Nothing is written through maps: a full disk would kill the process (SIGBUS)."""
        return RESERVE.spend(lambda: mmap.mmap(self.fd, size_bytes, mmap.MAP_SHARED, mmap.PROT_READ))

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class LockFile(File):
    """A locked file. The system forgets a process's lock when it closes *any* descriptor of the file: open one once."""

    __slots__ = ()
    _held: ClassVar[set[str]] = set()
    """What this process holds, which the system would let it lock a second time."""

    @classmethod
    def take(cls, file: File) -> "LockFile":
        fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        cls._held.add(file.path)
        return cls(file.path, file.fd)

    @classmethod
    def is_held(cls, path: str) -> bool:
        return path in cls._held

    def close(self) -> None:
        if self.fd >= 0:
            self._held.discard(self.path)
        super().close()


class Disk:
    """The operating system's disk."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        flags = os.O_CLOEXEC | (os.O_RDWR if write or create else os.O_RDONLY) | (os.O_CREAT if create else 0)
        return File(path, RESERVE.spend(lambda: os.open(path, flags, 0o644)))

    def open_dir(self, path: str) -> File:
        """A directory whose ``fsync`` makes the names in it survive a power cut."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        return File(path, RESERVE.spend(lambda: os.open(path, flags)))

    def scan(self, path: str) -> list[Entry]:
        """The names in a directory, in order. One that vanishes meanwhile is left out."""
        entries = []
        with RESERVE.spend(lambda: os.scandir(path)) as names:
            for name in names:
                try:
                    status = name.stat()
                except FileNotFoundError:
                    continue
                modified_ms = status.st_mtime_ns // 1_000_000
                entries.append(Entry(name.name, name.is_dir(), status.st_size, modified_ms, status.st_ino))
        entries.sort()
        return entries

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def link(self, old: str, new: str) -> None:
        os.link(old, new)

    def is_shared(self, path: str) -> bool:
        """Whether a file has more names than this one: a change in place would be seen through all of them."""
        return os.stat(path).st_nlink > 1

    def unlink(self, path: str) -> None:
        """Remove a name; one that is gone already is no error."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all in it; one that is gone already is no error."""
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory survive a power cut."""
        directory = self.open_dir(path)
        try:
            directory.fsync()
        finally:
            directory.close()

    def lock(self, path: str) -> File | None:
        """Hold a POSIX record lock, the kind that Kafka takes too; ``None`` when somebody else holds it."""
        path = self.absolute(path)
        if LockFile.is_held(path):
            return None
        file = self.open(path, create=True)
        try:
            return LockFile.take(file)
        except (BlockingIOError, PermissionError):
            file.close()
            return None

    def free_bytes(self, path: str) -> int:
        """The room that is left for this user on the file system that holds ``path``."""
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    def device(self, path: str) -> int:
        """The file system of ``path``: only within one can a file have several names."""
        return os.stat(path).st_dev

    def absolute(self, path: str) -> str:
        return os.path.realpath(path)

    def boot_id(self) -> str:
        """The same for all who see files through this page cache; empty where the system does not tell."""
        try:
            with open(_BOOT_ID, encoding="ascii") as file:
                return file.read().strip()
        except (OSError, ValueError):
            return ""


def sync(fd: int) -> None:
    """Bring a file, or the names in a directory, to the disk itself.

    On macOS ``fsync`` leaves them in the drive's own cache, which a power cut empties; ``F_FULLFSYNC`` does not. File
    systems that do not know it, such as network ones, get the ordinary one.
    """
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(fd, _FULL_SYNC)
        except OSError as error:
            if error.errno not in _NO_FULL_SYNC:
                raise
        else:
            return
    os.fsync(fd)


def read_file(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def forget_pages(mapped: Map, start: int, end: int) -> None:
    """Let a process go of pages of a read-only map: they count as its memory no more, and come back when touched."""
    start = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    if end > start and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED, start, end - start)


def write_fully(file: File, data: Bytes, position: int) -> None:
    """Write all of ``data`` in as many system calls as it takes."""
    view = memoryview(data)
    written = 0
    while written < len(view):
        count = file.pwrite(view[written:], position + written)
        if count == 0:
            raise OSError(errno.ENOSPC, f"only {written} of {len(view)} bytes were written", file.path)
        written += count


def write_new_file(disk: Disk, path: str, data: bytes, *, sync: bool = True) -> None:
    """Make the file at ``path`` hold ``data``, by way of a ``.tmp`` beside it: a reader sees old or new, never half."""
    disk.rename(write_temporary(disk, path, data, sync=sync), path)
    if sync:
        disk.sync_dir(parent(path))


def write_temporary(disk: Disk, path: str, data: bytes, *, sync: bool = True) -> str:
    """Write what the file at ``path`` is to hold into the ``.tmp`` beside it. Returns that path."""
    temporary = path + TEMPORARY
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        write_fully(file, data, 0)
        if sync:
            file.fsync()
    finally:
        file.close()
    return temporary


def copy_file(
    disk: Disk, source: str, target: str, size_bytes: int, seen: Callable[[memoryview], None] | None = None
) -> None:
    """Copy the first ``size_bytes`` of a file into a new one, synced; ``seen`` is shown each piece.

    A source that is shorter than that is an error.
    """
    reader = disk.open(source)
    try:
        writer = disk.open(target, create=True)
        try:
            writer.truncate(0)
            _copy_pieces(reader, writer, size_bytes, seen)
            writer.fsync()
        finally:
            writer.close()
    finally:
        reader.close()


def _copy_pieces(reader: File, writer: File, size_bytes: int, seen: Callable[[memoryview], None] | None) -> None:
    buffer = memoryview(bytearray(min(size_bytes, _COPY_BYTES)))
    position = 0
    while position < size_bytes:
        piece = buffer[: min(len(buffer), size_bytes - position)]
        if reader.pread_into(piece, position) < len(piece):
            raise OSError(errno.ESTALE, "it became shorter while it was copied", reader.path)
        write_fully(writer, piece, position)
        if seen is not None:
            seen(piece)
        position += len(piece)


def make_durable_dir(disk: Disk, path: str) -> None:
    """Make a directory, and those above it that are missing, so that their names survive a power cut."""
    if not disk.exists(path):
        make_durable_dir(disk, parent(path))
        disk.make_dir(path)
        disk.sync_dir(parent(path))


def sync_file(disk: Disk, path: str) -> bool:
    """Flush one file to the disk; ``False`` when it is gone."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return False
    try:
        file.fsync()
    finally:
        file.close()
    return True


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"
