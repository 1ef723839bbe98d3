"""Raw batches of a range from the files of a lease.

Owns how it is found out that this machine sees the very files that are lent, and that nothing else is read of them.
Bytes are read, not mapped: a file that the disk cannot give, or that somebody cuts, is a sentence then; through a map
it would be the end of the process. Must not know how a lease is asked for and kept.
"""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from lamina.arrow.prefetching import Chunk, RangeToFetch
from lamina.errors import CorruptMessage
from lamina.log.names import READING_FOLDER
from lamina.peer.lending import Lent, LentAborted, LentSegment
from lamina.records.batch import HEADER_BYTES, read_header
from lamina.records.columns.reading import end_of_batches
from lamina.records.faults import damage, describe_batch, is_cut_off

WINDOW_BYTES = 8 * 1024 * 1024
_INODE_BITS = 2**63 - 1
_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class NotSeen(Exception):
    """Why the files that were lent are not to be had on this machine."""


def lent_chunks(
    lent: Lent, asked: RangeToFetch, at: int, *, is_committed_only: bool, window_bytes: int = WINDOW_BYTES
) -> Generator[Chunk, None, int]:
    """The chunks from ``at`` on, each good until the next. Returns how far they reach.

    Raises `NotSeen` before the first, where there is none to be had. Where a later file is gone, because the lease has
    ended, it ends there.
    """
    window = _Window(window_bytes)
    has_begun = False
    for segment in lent.segments:
        if at >= asked.end:
            break
        try:
            with _open(lent, segment) as file:
                has_begun = True
                for chunk, next_offset in window.chunks(file, segment, _name(lent, asked, segment), at):
                    aborted = _aborted_in(lent.aborted, at, next_offset) if is_committed_only else None
                    yield chunk._replace(aborted=aborted)
                    at = next_offset
                    if at >= asked.end:
                        break
        except NotSeen:
            if has_begun:
                return at
            raise
    return max(at, min(lent.end_offset, asked.end))


def _aborted_in(aborted: list[LentAborted], start: int, end: int) -> list[tuple[int, int]]:
    """One that ended before must not be named: the producer's next transaction would be taken for it."""
    return [
        (one.producer_id, one.first_offset) for one in aborted if one.first_offset < end and one.last_offset >= start
    ]


@contextmanager
def _open(lent: Lent, segment: LentSegment) -> Iterator[int]:
    """A name with a random number in it that only the broker and we know, and the file's own number: it is the one."""
    folder, lease = os.path.split(lent.folder)
    if lent.lease_id is None or lease != lent.lease_id.hex or os.path.basename(folder) != READING_FOLDER:
        raise NotSeen(f"{lent.folder} is not a folder of a lease")
    path = os.path.join(lent.folder, f"{segment.base_offset:020d}.log")
    try:
        file = os.open(path, _READ_ONLY)
    except OSError as error:
        raise NotSeen(f"{path} cannot be opened here: {error.strerror}") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_ino & _INODE_BITS != segment.inode:
            raise NotSeen(f"{path} is another file here than on the broker's machine")
        if status.st_size < segment.end_position:
            raise NotSeen(f"{path} has {status.st_size} bytes here, and {segment.end_position} were lent")
        yield file
    finally:
        os.close(file)


def _name(lent: Lent, asked: RangeToFetch, segment: LentSegment) -> str:
    """Where people find the segment."""
    log_directory = os.path.dirname(os.path.dirname(lent.folder))
    return f"{log_directory}/{asked.name}/{segment.base_offset:020d}.log"


class _Window:
    """A part of a file in memory, and the next one in the same place."""

    def __init__(self, size_bytes: int) -> None:
        self._buffer = bytearray(size_bytes)

    def chunks(self, file: int, segment: LentSegment, name: str, at: int) -> Iterator[tuple[Chunk, int]]:
        """Whole batches, and the offset behind them. Raises `CorruptMessage` with one sentence."""
        position, end, due = segment.start_position, segment.end_position, 0
        while position < end:
            view = self._read(file, name, position, end, max(due, at))
            whole_bytes, due = end_of_batches(view, due)
            if whole_bytes:
                reached = max(due, at)
                yield Chunk(at, view[:whole_bytes], None, name, position), reached
                at, position = reached, position + whole_bytes
            elif is_cut_off(view, 0, due) and (size_bytes := _size_bytes(view)) <= end - position:
                # A batch that is larger has a window to itself.
                self._buffer = bytearray(max(2 * len(self._buffer), size_bytes))
            else:
                raise CorruptMessage(damage(name, position, max(due, at), describe_batch(view, 0, due)))

    def _read(self, file: int, name: str, position: int, end: int, offset: int) -> memoryview:
        view = memoryview(self._buffer)[: end - position]
        filled = 0
        while filled < len(view):
            try:
                count = os.preadv(file, [view[filled:]], position + filled)
            except OSError as error:
                raise CorruptMessage(damage(name, position + filled, offset, str(error.strerror))) from None
            if not count:
                raise CorruptMessage(damage(name, position + filled, offset, f"it ends before {end}, which was lent"))
            filled += count
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file, position + filled, len(self._buffer), os.POSIX_FADV_WILLNEED)
        return view


def _size_bytes(view: memoryview) -> int:
    """Of the batch that the view begins with, as far as it says."""
    return read_header(view).size_bytes if len(view) >= HEADER_BYTES else HEADER_BYTES
