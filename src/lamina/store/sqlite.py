"""The store of a single node: one SQLite file.

Owns the file: its schema and the versions of it, its lock, and that what returned is on the disk (write-ahead
log, ``synchronous=FULL``). The file belongs to one open store at a time, which any number of threads may use.
Must not know what the entries mean.
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from lamina.store.interface import Check, Create, Delete, Entry, Operation, Set, StoreConflict, StoreError, Watcher

APPLICATION_ID = int.from_bytes(b"Lmna", "big")
"""Tells our files from any other program's."""

MODE = 0o600
"""Of a new file: it holds what is kept of passwords."""

SCHEMA_STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE entries (
            path TEXT PRIMARY KEY NOT NULL,
            value BLOB NOT NULL,
            version INTEGER NOT NULL,
            is_ephemeral INTEGER NOT NULL
        )""",
    ),
)
"""The statements that lead from each schema version to the next; the file's version counts the steps taken."""


class SqliteStore:
    def __init__(self, path: str) -> None:
        """Open the file, or make it; an older one is upgraded.

        Raises :class:`StoreError` when it is newer, damaged, not ours, in use, or cannot be reached.
        """
        self.path = path
        self._watchers: list[tuple[str, Watcher]] = []
        self._turns = threading.Lock()
        with self._turn(), suppress(OSError):
            # What is wrong with the path, SQLite says in its own words. Its log beside the file gets the same mode.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, MODE))
        with self._turn():
            # Threads take turns; autocommit, because transactions are begun and ended here.
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with self._turn():
                self._prepare()
        except BaseException:
            self._database.close()
            raise

    def get(self, path: str) -> Entry | None:
        with self._turn():
            found = self._database.execute("SELECT value, version FROM entries WHERE path = ?", (path,)).fetchone()
        return None if found is None else Entry(*found)

    def get_many(self, paths: Iterable[str]) -> dict[str, Entry]:
        found = ((path, self.get(path)) for path in paths)
        return {path: entry for path, entry in found if entry is not None}

    def children(self, path: str) -> list[str]:
        return sorted({found[len(path) + 1 :].partition("/")[0] for found in self.below(path)})

    def below(self, path: str) -> dict[str, Entry]:
        # "0" is the character after "/", so the range holds just the paths that begin with "path/".
        query = "SELECT path, value, version FROM entries WHERE path > ? AND path < ? ORDER BY path"
        with self._turn(), closing(self._database.execute(query, (f"{path}/", f"{path}0"))) as found:
            return {path: Entry(value, version) for path, value, version in found}

    def transact(self, operations: Sequence[Operation]) -> None:
        with self._turn(), self._transaction():
            for operation in operations:
                self._apply(operation)
        changed_paths = [operation.path for operation in operations if not isinstance(operation, Check)]
        for watched, watcher in tuple(self._watchers):
            if any(f"{changed}/".startswith(f"{watched}/") for changed in changed_paths):
                watcher()

    def watch(self, path: str, watcher: Watcher) -> None:
        """The file has one writer, so it is the writer who hears of it, once per transaction."""
        self._watchers.append((path, watcher))

    def close(self) -> None:
        with self._turn(), closing(self._database):
            self._forget_ephemeral_entries()

    def _apply(self, operation: Operation) -> None:
        match operation:
            case Create(path, value, is_ephemeral):
                statement = "INSERT INTO entries VALUES (?, ?, 0, ?) ON CONFLICT DO NOTHING"
                done = self._database.execute(statement, (path, value, is_ephemeral))
                expected = "no such entry"
            case Set(path, value, version):
                statement = "UPDATE entries SET value = ?, version = version + 1 WHERE path = ? AND version = ?"
                done = self._database.execute(statement, (value, path, version))
                expected = f"version {version}"
            case Delete(path, version):
                done = self._database.execute("DELETE FROM entries WHERE path = ? AND version = ?", (path, version))
                expected = f"version {version}"
            case Check(path, version):
                # Touches the entry without a change, so that it is counted as the others are.
                statement = "UPDATE entries SET version = version WHERE path = ? AND version = ?"
                done = self._database.execute(statement, (path, version))
                expected = f"version {version}"
        if done.rowcount == 0:
            path = operation.path
            found = self._database.execute("SELECT version FROM entries WHERE path = ?", (path,)).fetchone()
            state = "is not there" if found is None else f"has version {found[0]}"
            raise StoreConflict(f"{path} in {self.path} {state}, where {expected} was expected", path)

    # Opening

    def _prepare(self) -> None:
        # Exclusive from the first read on: two brokers never share a file, and no shared-memory file is needed.
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        version = self._check_ours()
        mode = self._pragma("journal_mode = WAL")
        if mode != "wal":
            raise StoreError(f"{self.path} cannot be used: its file system keeps no write-ahead log")
        self._database.execute("PRAGMA synchronous = FULL")
        # macOS: fsync alone does not reach the disk.
        self._database.execute("PRAGMA fullfsync = ON")
        self._upgrade(version)
        # A session that did not close is dead: the lock is ours now.
        self._forget_ephemeral_entries()

    def _check_ours(self) -> int:
        """The schema version of a sound file, before anything is written to it; 0 for a new one."""
        version, application_id = int(self._pragma("user_version")), int(self._pragma("application_id"))
        is_empty = not self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application_id != APPLICATION_ID and not (is_empty and application_id == 0):
            raise StoreError(f"{self.path} is another program's database, not Lamina's metadata")
        if version > len(SCHEMA_STEPS):
            raise StoreError(
                f"{self.path} was written by a newer Lamina: it has schema version {version}, "
                f"and this one knows versions up to {len(SCHEMA_STEPS)}"
            )
        damage = self._pragma("quick_check(1)")
        if damage != "ok":
            raise StoreError(f"{self.path} is damaged: {damage}")
        return version

    def _upgrade(self, version: int) -> None:
        if version == len(SCHEMA_STEPS):
            return
        with self._transaction():
            for step in SCHEMA_STEPS[version:]:
                for statement in step:
                    self._database.execute(statement)
            self._database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._database.execute(f"PRAGMA user_version = {len(SCHEMA_STEPS)}")

    def _forget_ephemeral_entries(self) -> None:
        self._database.execute("DELETE FROM entries WHERE is_ephemeral")

    def _pragma(self, text: str) -> str:
        return str(self._database.execute(f"PRAGMA {text}").fetchone()[0])

    # Every statement runs inside these

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            # Some failures, a full disk among them, have rolled back already.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The connection for one thread at a time, and SQLite's errors as one sentence.

        A connection has one transaction: a statement of another thread would end up in it.
        """
        try:
            with self._turns:
                yield
        except UnicodeDecodeError:
            # Python found no text where SQLite quotes the file in its own complaint.
            raise StoreError(f"{self.path} is damaged: its schema is not text") from None
        except MemoryError:
            # What SQLite says of a file whose numbers are absurd.
            raise StoreError(f"{self.path} is damaged, or larger than this machine's memory") from None
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith("SQLITE_BUSY"):
                raise StoreError(f"{self.path} is in use by another process: stop that one first") from None
            if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                raise StoreError(f"{self.path} is damaged: {error}") from None
            raise StoreError(f"{self.path} cannot be used: {error}") from error
