"""Reading a file of equal entries from end to end, in a fixed amount of memory.

Tells apart the entries and what an active segment's index was preallocated with. Must not know what an entry
means.
"""

from collections.abc import Iterator
from struct import Struct

from lamina.log.files import File

_CHUNK_ENTRIES = 4096


class EntryReader:
    """The entries of an index. Once they are all taken, ``padding_bytes`` and ``ragged_bytes`` say what follows."""

    def __init__(self, file: File, entry: Struct) -> None:
        self._file = file
        self._entry = entry
        self.padding_bytes = 0
        """Zeros behind the last entry: room that was preallocated."""
        self.ragged_bytes = 0
        """Bytes at the end that are no whole entry."""

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        entry, size_bytes = self._entry, self._file.size()
        nothing = entry.unpack(bytes(entry.size))
        whole_bytes = size_bytes - size_bytes % entry.size
        zeros = position = 0
        while position < whole_bytes:
            chunk = self._file.pread(min(_CHUNK_ENTRIES * entry.size, whole_bytes - position), position)
            usable_bytes = len(chunk) - len(chunk) % entry.size
            if not usable_bytes:
                break
            position += usable_bytes
            if chunk.count(0) == len(chunk):
                zeros += usable_bytes // entry.size
                continue
            for fields in entry.iter_unpack(chunk[:usable_bytes]):
                if fields == nothing:
                    zeros += 1
                    continue
                for _ in range(zeros):
                    yield nothing
                zeros = 0
                yield fields
        self.padding_bytes = zeros * entry.size
        self.ragged_bytes = size_bytes - whole_bytes
