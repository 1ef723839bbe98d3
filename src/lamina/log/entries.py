"""A file of equal entries, as both sparse indexes are: growing, cutting and reading it.

Owns the file's life: preallocated while its segment is active, trimmed when that closes. Entries are written
with ``pwrite`` and read through a read-only map made on first use. Must not know what an entry means.
"""

import errno
from collections import OrderedDict
from struct import Struct

from lamina.log.descriptors import is_temporary
from lamina.log.files import Disk, File, Map


class OpenMaps:
    """Bounds how many index maps a log keeps: each costs a descriptor. The one used longest ago goes first."""

    def __init__(self, limit: int = 4) -> None:
        self.limit = limit
        self._used: OrderedDict[IndexFile, None] = OrderedDict()

    def touch(self, index: "IndexFile") -> None:
        self._used[index] = None
        self._used.move_to_end(index)
        while len(self._used) > self.limit:
            self._used.popitem(last=False)[0].unmap()

    def close_oldest(self) -> bool:
        """Close the map that was used longest ago; ``False`` when there is none."""
        if not self._used:
            return False
        next(iter(self._used)).unmap()
        return True

    def forget(self, index: "IndexFile") -> None:
        self._used.pop(index, None)

    def __len__(self) -> int:
        return len(self._used)


class IndexFile:
    """A file of equal entries: how many there are, appending, cutting, and a map to read them."""

    __slots__ = ("_disk", "_entry", "_file", "_map", "_maps", "count", "max_entries", "path")

    def __init__(self, disk: Disk, path: str, entry: Struct, count: int, max_bytes: int, maps: OpenMaps) -> None:
        self.path = path
        self.count = count
        self.max_entries = max_bytes // entry.size
        self._disk = disk
        self._entry = entry
        self._maps = maps
        self._file: File | None = None
        self._map: Map | None = None

    def open_for_append(self) -> None:
        """Open, and preallocate to the largest size the index may have."""
        if self._file is None:
            self._file = self._disk.open(self.path, create=True)
            self._file.truncate(max(self.max_entries, self.count) * self._entry.size)
            self.unmap()

    def append(self, *fields: int) -> None:
        self.open_for_append()
        assert self._file is not None
        data = self._entry.pack(*fields)
        if self._file.pwrite(data, self.count * self._entry.size) != len(data):
            raise OSError(errno.ENOSPC, "a short write to an index", self.path)
        self.count += 1

    def map(self) -> Map:
        """All entries, read-only; made on first use."""
        if self._map is None:
            file = self._file or self._disk.open(self.path)
            try:
                self._map = self._map_of(file)
            finally:
                if file is not self._file:
                    file.close()
        self._maps.touch(self)
        return self._map

    def _map_of(self, file: File) -> Map:
        while True:
            try:
                return file.map(file.size())
            except OSError as error:
                # Each map holds a descriptor: those of this log that were not used for long are given up first.
                if not is_temporary(error) or not self._maps.close_oldest():
                    raise

    def read(self, number: int) -> tuple[int, ...]:
        return self._entry.unpack_from(self.map(), number * self._entry.size)

    def read_last(self) -> tuple[int, ...]:
        """The last entry, read without making a map."""
        file = self._file or self._disk.open(self.path)
        try:
            data = file.pread(self._entry.size, (self.count - 1) * self._entry.size)
        finally:
            if file is not self._file:
                file.close()
        if len(data) < self._entry.size:
            raise FileNotFoundError(errno.ENOENT, "an index shorter than it was", self.path)
        return self._entry.unpack(data)

    def unmap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
            self._maps.forget(self)

    def share_maps(self, maps: OpenMaps) -> None:
        """Keep its map among these from now on."""
        self.unmap()
        self._maps = maps

    def cut(self, count: int) -> None:
        self.count = min(count, self.count)

    def trim(self) -> None:
        """Give back what was preallocated and close: the file holds its entries and nothing else."""
        self.unmap()
        file = self._file or self._disk.open(self.path, create=True)
        self._file = None
        try:
            file.truncate(self.count * self._entry.size)
        finally:
            file.close()

    def close(self) -> None:
        """Let go without touching the file."""
        self.unmap()
        if self._file is not None:
            self._file.close()
            self._file = None
