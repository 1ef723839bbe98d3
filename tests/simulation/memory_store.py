"""The store of one node, in memory: it outlives the node's processes, as a file would."""

from collections.abc import Iterable, Sequence

from lamina.store.interface import Create, Delete, Entry, Operation, Set, StoreConflict, Watcher


class MemoryStore:
    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._ephemeral: set[str] = set()

    def open(self) -> "MemoryStore":
        """For the next process: the session of the last one is over."""
        self.close()
        return self

    def get(self, path: str) -> Entry | None:
        return self._entries.get(path)

    def get_many(self, paths: Iterable[str]) -> dict[str, Entry]:
        return {path: self._entries[path] for path in paths if path in self._entries}

    def children(self, path: str) -> list[str]:
        return sorted({found[len(path) + 1 :].partition("/")[0] for found in self.below(path)})

    def below(self, path: str) -> dict[str, Entry]:
        return {found: self._entries[found] for found in sorted(self._entries) if found.startswith(f"{path}/")}

    def transact(self, operations: Sequence[Operation]) -> None:
        """Done in one moment: no crash finds half of it."""
        entries = dict(self._entries)
        for operation in operations:
            _apply(entries, operation)
        self._entries = entries
        self._ephemeral |= {one.path for one in operations if isinstance(one, Create) and one.is_ephemeral}

    def watch(self, path: str, watcher: Watcher) -> None:
        """Its one writer knows what it writes."""

    def close(self) -> None:
        self._entries = {path: entry for path, entry in self._entries.items() if path not in self._ephemeral}
        self._ephemeral.clear()


def _apply(entries: dict[str, Entry], operation: Operation) -> None:
    found = entries.get(operation.path)
    expected = None if isinstance(operation, Create) else operation.version
    if (None if found is None else found.version) != expected:
        raise StoreConflict(f"{operation.path} is not as expected", operation.path)
    match operation:
        case Create(path, value):
            entries[path] = Entry(value, 0)
        case Set(path, value, version):
            entries[path] = Entry(value, version + 1)
        case Delete(path):
            del entries[path]
