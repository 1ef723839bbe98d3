"""The aborted-transaction index of a segment: which ranges of the log a committed reader must skip.

Owns ``.txnindex`` (formats.md §2.3): 34-byte entries in the segment that holds the abort marker, made at the
first abort. Must not know producers or markers.
"""

from itertools import pairwise
from struct import Struct
from typing import NamedTuple

from lamina.log.files import Disk, File, read_file, write_fully

_ENTRY = Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the abort marker."""
    last_stable_offset: int
    """First offset of the oldest other open transaction at that moment, else marker + 1."""


def pack_aborted(entry: AbortedTransaction) -> bytes:
    return _ENTRY.pack(_VERSION, *entry)


def unpack_aborted(data: bytes) -> list[AbortedTransaction]:
    """Every whole entry; raises ``ValueError`` for a version that is not ours or bytes left over."""
    if len(data) % _ENTRY.size:
        raise ValueError(f"a transaction index of {len(data)} bytes ends inside an entry")
    entries = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise ValueError(f"a transaction index entry has version {version}, not {_VERSION}")
        entries.append(AbortedTransaction(*fields))
    return entries


class TransactionIndex:
    """The entries of one segment, in memory once asked for: aborts are few."""

    __slots__ = ("_disk", "_entries", "_file", "path")

    def __init__(self, disk: Disk, path: str, *, exists: bool) -> None:
        self.path = path
        self._disk = disk
        self._entries: list[AbortedTransaction] | None = None if exists else []
        self._file: File | None = None

    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            try:
                self._entries = unpack_aborted(read_file(self._disk, self.path))
            except FileNotFoundError:
                self._entries = []
        return self._entries

    @property
    def exists(self) -> bool:
        return self._entries is None or bool(self._entries)

    def is_sound(self, base_offset: int) -> bool:
        """Whether the file can be read, holds something, and its markers follow each other from ``base_offset`` on."""
        try:
            markers = [base_offset - 1, *(entry.last_offset for entry in self.entries())]
        except ValueError:
            return False
        return len(markers) > 1 and all(marker < later for marker, later in pairwise(markers))

    def open_for_append(self) -> None:
        """Open the file ahead of an entry that is certain to follow."""
        if self._file is None:
            self._file = self._disk.open(self.path, create=True)

    def append(self, entry: AbortedTransaction) -> None:
        entries = self.entries()
        self.open_for_append()
        assert self._file is not None
        write_fully(self._file, pack_aborted(entry), len(entries) * _ENTRY.size)
        entries.append(entry)

    def truncate_to(self, offset: int) -> None:
        """Forget transactions whose marker is at or above ``offset``."""
        entries = self.entries()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) == len(entries):
            return
        if not kept:
            self.clear()  # an empty file would not be part of the segment, nor of its flush
            return
        file = self._file or self._disk.open(self.path, create=True)
        try:
            file.truncate(len(kept) * _ENTRY.size)
        finally:
            if file is not self._file:
                file.close()
        self._entries = kept

    def clear(self) -> None:
        """Forget every entry, unread: a crash or an operator may have torn them; the file goes with them."""
        self.close()
        self._disk.unlink(self.path)
        self._entries = []

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
