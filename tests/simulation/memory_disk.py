"""A disk in memory, which remembers what a power cut may take.

Owns the names and contents. ``after_power_cut`` is another disk, with one possible rest of this one; what the kill of a
process leaves is this one, without its locks. Must not know what is inside a file.
"""

import errno
import mmap
from collections.abc import Callable
from random import Random

from lamina.log.files import Bytes, Disk, Entry, File, Map, parent
from tests.log.disk import Op, Remembered, Replay, Tree

_FREE_BYTES = 1 << 40
_ROOT = "/"


class _Inode:
    __slots__ = ("data", "is_dir", "links", "maps", "modified_ms", "number")

    def __init__(self, number: int, modified_ms: int, *, is_dir: bool, data: bytes = b"") -> None:
        self.number = number
        self.modified_ms = modified_ms
        self.is_dir = is_dir
        self.links = 1
        self.data = bytearray(data)
        self.maps: list[Map] = []


class MemoryFile(File):
    __slots__ = ("_disk", "_inode")

    def __init__(self, disk: "MemoryDisk", path: str, inode: _Inode) -> None:
        super().__init__(path, 0)
        self._disk = disk
        self._inode = inode

    def pwrite(self, data: Bytes, position: int) -> int:
        self._disk.require_sound(self.path)
        inode, end = self._inode, position + len(data)
        if end > len(inode.data):
            inode.data += bytes(end - len(inode.data))
        inode.data[position:end] = data
        for mapped in inode.maps:
            if not mapped.closed and position < len(mapped):
                mapped[position : min(end, len(mapped))] = bytes(data[: len(mapped) - position])
        self._disk.changed(inode, Op("write", inode.number, self.path, data=bytes(data), position=position))
        return len(data)

    def pread(self, size_bytes: int, position: int) -> bytes:
        self._disk.require_sound(self.path)
        return bytes(self._inode.data[position : position + size_bytes])

    def pread_into(self, buffer: memoryview, position: int) -> int:
        self._disk.require_sound(self.path)
        data = self._inode.data[position : position + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def is_cached(self, position: int, size_bytes: int) -> bool:
        return True

    def read_cached(self, position: int, size_bytes: int) -> bytearray | None:
        self._disk.require_sound(self.path)
        data = self._inode.data[position : position + size_bytes]
        return data if len(data) == size_bytes else None

    def size(self) -> int:
        return len(self._inode.data)

    def truncate(self, size_bytes: int) -> None:
        self._disk.require_sound(self.path)
        data = self._inode.data
        if size_bytes < len(data):
            del data[size_bytes:]
        else:
            data += bytes(size_bytes - len(data))
        self._disk.changed(self._inode, Op("truncate", self._inode.number, self.path, position=size_bytes))

    def fsync(self) -> None:
        self._disk.require_sound(self.path)
        self._disk.ops.append(Op("sync_dir" if self._inode.is_dir else "fsync", self._inode.number, self.path))

    def map(self, size_bytes: int) -> Map:
        """A copy that later writes reach too."""
        mapped = mmap.mmap(-1, size_bytes)
        mapped[:] = bytes(self._inode.data[:size_bytes])
        self._inode.maps = [*(one for one in self._inode.maps if not one.closed), mapped]
        return mapped

    def close(self) -> None:
        self.fd = -1


class _Lock(MemoryFile):
    __slots__ = ()

    def close(self) -> None:
        self._disk.locked.discard(self.path)
        super().close()


class MemoryDisk(Disk):
    def __init__(self, now_ms: Callable[[], int], tree: Tree | None = None) -> None:
        """What is in ``tree`` counts as safe."""
        self._now_ms = now_ms
        self._start = Remembered()
        self._inodes: dict[str, _Inode] = {}
        self._last_number = 0
        self.ops: list[Op] = []
        """Whatever was done since it was made."""
        self.locked: set[str] = set()
        self.is_broken = False
        """Whether it fails whatever is asked of it, and keeps what is on it."""
        self._adopt(_ROOT, tree or {})

    def _adopt(self, path: str, found: "bytes | Tree") -> int:
        if isinstance(found, bytes):
            inode = self._new(path, is_dir=False, data=found)
            self._start.files[inode.number] = found
            return inode.number
        inode = self._new(path, is_dir=True)
        self._start.nodes[path] = inode.number
        children = {name: self._adopt(f"{path.rstrip('/')}/{name}", child) for name, child in found.items()}
        self._start.directories[inode.number] = children
        return inode.number

    def after_power_cut(self, rng: Random) -> "MemoryDisk":
        left = Replay(self._start).run(self.ops).left(rng, self._inodes[_ROOT].number)
        return MemoryDisk(self._now_ms, left)

    def unlock(self) -> None:
        """The process that held the locks is gone."""
        self.locked.clear()

    def require_sound(self, path: str) -> None:
        if self.is_broken:
            raise OSError(errno.EIO, "Input/output error", path)

    def names(self, path: str) -> list[str]:
        """What is in a directory, also where the disk is broken."""
        prefix = f"{path}/"
        return [
            name
            for found in self._inodes
            if found.startswith(prefix) and "/" not in (name := found.removeprefix(prefix))
        ]

    def changed(self, inode: _Inode, op: Op) -> None:
        inode.modified_ms = self._now_ms()
        self.ops.append(op)

    def _new(self, path: str, *, is_dir: bool, data: bytes = b"") -> _Inode:
        self._last_number += 1
        inode = self._inodes[path] = _Inode(self._last_number, self._now_ms(), is_dir=is_dir, data=data)
        return inode

    def _find(self, path: str) -> _Inode:
        self.require_sound(path)
        inode = self._inodes.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return inode

    # What logs ask for

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        return MemoryFile(self, path, self._create(path) if create else self._find(path))

    def _create(self, path: str) -> _Inode:
        self.require_sound(path)
        inode = self._inodes.get(path)
        if inode is None:
            self._find(parent(path))
            inode = self._new(path, is_dir=False)
            self.ops.append(Op("create", inode.number, path))
        return inode

    def open_dir(self, path: str) -> File:
        return MemoryFile(self, path, self._find(path))

    def scan(self, path: str) -> list[Entry]:
        self._find(path)
        prefix = f"{path}/"
        return sorted(
            Entry(name, inode.is_dir, len(inode.data), inode.modified_ms, inode.number)
            for found, inode in self._inodes.items()
            if found.startswith(prefix) and "/" not in (name := found[len(prefix) :])
        )

    def exists(self, path: str) -> bool:
        self.require_sound(path)
        return path in self._inodes

    def modified_ms(self, path: str) -> int:
        return self._find(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._find(path).modified_ms = modified_ms

    def rename(self, old: str, new: str) -> None:
        inode = self._find(old)
        self._inodes[new] = self._inodes.pop(old)
        for path in [path for path in self._inodes if path.startswith(f"{old}/")]:
            self._inodes[new + path.removeprefix(old)] = self._inodes.pop(path)
        self.ops.append(Op("rename", inode.number, old, new))

    def link(self, old: str, new: str) -> None:
        inode = self._inodes[new] = self._find(old)
        inode.links += 1
        self.ops.append(Op("link", inode.number, new))

    def is_shared(self, path: str) -> bool:
        return self._find(path).links > 1

    def unlink(self, path: str) -> None:
        self.require_sound(path)
        inode = self._inodes.pop(path, None)
        if inode is not None:
            inode.links -= 1
            self.ops.append(Op("unlink", inode.number, path))

    def make_dir(self, path: str) -> None:
        self.require_sound(path)
        if path not in self._inodes:
            self.make_dir(parent(path))
            self.ops.append(Op("mkdir", self._new(path, is_dir=True).number, path))

    def remove_tree(self, path: str) -> None:
        self.require_sound(path)
        for inside in [inside for inside in self._inodes if inside.startswith(f"{path}/")]:
            del self._inodes[inside]
        self.unlink(path)

    def sync_dir(self, path: str) -> None:
        self.open_dir(path).fsync()

    def lock(self, path: str) -> File | None:
        if path in self.locked:
            return None
        self.locked.add(path)
        return _Lock(self, path, self._create(path))

    def free_bytes(self, path: str) -> int:
        self.require_sound(path)
        return _FREE_BYTES

    def device(self, path: str) -> int:
        return 0

    def absolute(self, path: str) -> str:
        return path
