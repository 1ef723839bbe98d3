"""A ZooKeeper in memory, deterministic, for many sessions in one thread.

It has ZooKeeper's rules: transactions with zxids, ephemeral entries that end with their session, an entry only below
one that is there. Nothing happens by itself: a session expires when it is told to, an answer is lost when it is told
to, and watchers are called by ``deliver()``, each once however much has changed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lamina.store.interface import (
    Check,
    Create,
    Delete,
    Entry,
    Operation,
    OutcomeUnknown,
    SessionLost,
    Set,
    StoreAway,
    StoreConflict,
    StoreError,
    Watcher,
)

TIMEOUT_MS = 6000


class MemoryZooKeeper:
    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        """``on_change`` is called when there is something to deliver, where there was nothing before."""
        self.entries: dict[str, Entry] = {"": Entry(b"", 0)}
        self.zxid = 0
        self._on_change = on_change
        self._sessions = 0
        self._watches: list[tuple[MemorySession, str, Watcher]] = []
        self._due: list[Watcher] = []

    def connect(self, timeout_ms: int = TIMEOUT_MS) -> "MemorySession":
        return MemorySession(self, timeout_ms)

    def expire(self, session: "MemorySession") -> None:
        """End a session as the servers do when they heard nothing of it; its owner learns of it at his next call."""
        self._end(session.session_id)
        session.is_expired = True
        self.connection_changed(session)

    def end_all_sessions(self) -> None:
        """Of processes that are gone, at once."""
        self.entries = {path: entry for path, entry in self.entries.items() if not entry.owner}

    def connection_changed(self, session: "MemorySession") -> None:
        """Its owner hears that he is connected, or is not any more."""
        self._tell(watcher for watching, _, watcher in self._watches if watching is session)

    def deliver(self) -> bool:
        """Call every watcher that is due, and say whether there was one."""
        due, self._due = self._due, []
        for watcher in due:
            watcher()
        return bool(due)

    # For sessions

    def new_session(self) -> int:
        self._sessions += 1
        return self._sessions

    def watch(self, session: "MemorySession", path: str, watcher: Watcher) -> None:
        self._watches.append((session, path, watcher))

    def leave(self, session: "MemorySession") -> None:
        self._watches = [watch for watch in self._watches if watch[0] is not session]
        self._end(session.session_id)

    def transact(self, operations: Sequence[Operation], session_id: int) -> None:
        entries, zxid = dict(self.entries), self.zxid + 1
        for operation in operations:
            _apply(entries, operation, zxid, session_id)
        self.entries, self.zxid = entries, zxid
        self._changed([operation.path for operation in operations if not isinstance(operation, Check)])

    def _end(self, session_id: int) -> None:
        gone = [path for path, entry in self.entries.items() if entry.owner == session_id]
        if gone:
            self.zxid += 1
            self.entries = {path: entry for path, entry in self.entries.items() if entry.owner != session_id}
            self._changed(gone)

    def _changed(self, paths: list[str]) -> None:
        self._tell(
            watcher
            for _, watched, watcher in self._watches
            if any(f"{path}/".startswith(f"{watched}/") for path in paths)
        )

    def _tell(self, watchers: Iterable[Watcher]) -> None:
        was_empty = not self._due
        for watcher in watchers:
            if watcher not in self._due:
                self._due.append(watcher)
        if was_empty and self._due:
            self._on_change()


class MemorySession:
    """A :class:`~lamina.store.interface.ClusterStore`: one client, in one session after the other."""

    def __init__(self, zookeeper: MemoryZooKeeper, timeout_ms: int) -> None:
        self._zookeeper = zookeeper
        self.negotiated_timeout_ms = timeout_ms
        self.session_id = zookeeper.new_session()
        self.is_expired = False
        self.is_connected = True
        """A test or a simulation may say no: then every call fails."""
        self.loses_next_answer = False
        """A test may say yes: the next transaction happens, and its caller does not learn of it."""

    def get(self, path: str) -> Entry | None:
        self._reach()
        return self._zookeeper.entries.get(path)

    def get_many(self, paths: Iterable[str]) -> dict[str, Entry]:
        self._reach()
        entries = self._zookeeper.entries
        return {path: entries[path] for path in paths if path in entries}

    def children(self, path: str) -> list[str]:
        return [found[len(path) + 1 :] for found in self.below(path) if "/" not in found[len(path) + 1 :]]

    def below(self, path: str) -> dict[str, Entry]:
        self._reach()
        entries = self._zookeeper.entries
        return {found: entries[found] for found in sorted(entries) if found.startswith(f"{path}/")}

    def transact(self, operations: Sequence[Operation]) -> None:
        self._reach()
        self._zookeeper.transact(operations, self.session_id)
        if self.loses_next_answer:
            self.loses_next_answer = False
            raise OutcomeUnknown("the answer was lost")

    def watch(self, path: str, watcher: Watcher) -> None:
        self._zookeeper.watch(self, path, watcher)

    def sync(self) -> int:
        self._reach()
        return self.session_id

    def close(self) -> None:
        self._zookeeper.leave(self)
        self.is_connected = False

    def _reach(self) -> None:
        if not self.is_connected:
            raise StoreAway("ZooKeeper cannot be reached")
        if self.is_expired:
            self.is_expired = False
            self.session_id = self._zookeeper.new_session()
            raise SessionLost("the session has expired")


def _apply(entries: dict[str, Entry], operation: Operation, zxid: int, session_id: int) -> None:
    path = operation.path
    found = entries.get(path)
    match operation:
        case Create(_, value, is_ephemeral):
            above = entries.get(path.rpartition("/")[0])
            if found is not None:
                raise StoreConflict(f"{path} is there already", path)
            if above is None:
                raise StoreConflict(f"{path} cannot be created: nothing is above it", path)
            if above.owner:
                raise StoreError(f"{path} cannot be created below an ephemeral entry")
            entries[path] = Entry(value, 0, zxid, session_id if is_ephemeral else 0)
            return
        case Set(_, _, version) | Delete(_, version) | Check(_, version):
            if found is None or found.version != version:
                state = "is not there" if found is None else f"has version {found.version}"
                raise StoreConflict(f"{path} {state}, where version {version} was expected", path)
    if isinstance(operation, Set):
        entries[path] = replace(found, value=operation.value, version=found.version + 1)
    elif isinstance(operation, Delete):
        if any(other.startswith(f"{path}/") for other in entries):
            raise StoreConflict(f"{path} has entries below it", path)
        del entries[path]
