"""A copy of a store's file, made beside the broker that has it open.

The broker holds the file exclusively, so SQLite's own backup cannot read it, and no lock is asked for here: files
are read. What makes that sound is the write-ahead log. As long as one log goes on (the same header, whose salts
change whenever it is begun again), every page that a checkpoint writes into the database is still in that log. So
the database is copied first and its log afterwards, and if the log's header is then still the one from before, the
log covers every page that was caught half way; a commit that is not whole fails its checksum and is not there. If
not, both are copied again. The source is never written to, not even after a crash.

Must not know what the entries mean.
"""

import os
import shutil
from collections.abc import Callable

from lamina.store.interface import StoreError
from lamina.store.sqlite import MODE, SqliteStore

WAL = "-wal"
TRIES = 50
_WAL_HEADER_BYTES = 32


def copy_store(source: str, target: str, between: Callable[[], None] = lambda: None) -> None:
    """Make ``target`` a sound store file of its own, as ``source`` was at some instant of the call.

    ``between`` is called after each file that was copied. Raises :class:`StoreError`.
    """
    try:
        for _ in range(TRIES):
            before = _state(source)
            _copy(source, target)
            between()
            has_log = _copy(source + WAL, target + WAL)
            between()
            if _state(source) == before and has_log == (before[1] is not None):
                break
        else:
            raise StoreError(f"{source} changed too often to be copied: try again when fewer topics come and go")
    except OSError as error:
        raise StoreError(f"{error.filename} cannot be copied: {error.strerror}") from error
    # Opening it takes the log in, checks the file, and drops what belonged to the broker's session.
    SqliteStore(target).close()


def _state(source: str) -> tuple[object, ...]:
    """What stays the same as long as one log goes on; without a log, as long as nothing is written."""
    status = os.stat(source)
    try:
        with open(source + WAL, "rb") as log:
            header = log.read(_WAL_HEADER_BYTES)
            inode = os.fstat(log.fileno()).st_ino
    except FileNotFoundError:
        return status.st_ino, None, status.st_size, status.st_mtime_ns
    if len(header) < _WAL_HEADER_BYTES:
        return status.st_ino, inode, header, status.st_size, status.st_mtime_ns
    return status.st_ino, inode, header


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, MODE)


def _copy(source: str, target: str) -> bool:
    """Copy a file, synced; ``False``, and nothing is left there, when it is not."""
    try:
        with open(source, "rb") as reader, open(target, "wb", opener=_private) as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fsync(writer.fileno())
    except FileNotFoundError as error:
        if not source.endswith(WAL) or error.filename != source:
            raise
        if os.path.exists(target):
            os.unlink(target)
        return False
    return True
