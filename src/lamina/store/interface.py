"""What the broker needs of a cluster store, whatever serves it: SQLite on one node, ZooKeeper in a cluster.

Owns the contract. A store maps paths to small values, each with a version: 0 when it is created, one more with
each change. All writing is compare-and-set, and several writes are one transaction: all of them happen or none
does, and what has returned survives a crash. Nothing here is a cluster's metadata yet: metadata.py and
producer_ids.py give the paths their meaning. Must not know either of them.

Two limits are ZooKeeper's, and kept on one node too: an ephemeral entry has none below it, and a value stays
under a mebibyte.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


class StoreError(Exception):
    """A store that cannot be used; the message is one sentence that says why."""


class StoreConflict(StoreError):
    """An operation found another version than it expected: nothing of its transaction happened."""


@dataclass(frozen=True, slots=True)
class Entry:
    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """Expects that there is no such path. An ephemeral entry goes when the store of its creator closes or dies."""

    path: str
    value: bytes
    is_ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    path: str
    value: bytes
    version: int
    """The version that is expected, and replaced by the next."""


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int


Operation = Create | Set | Delete
Watcher = Callable[[], None]


class Store(Protocol):
    """One caller at a time, in any thread. Every method may raise :class:`StoreError`."""

    def get(self, path: str) -> Entry | None: ...

    def below(self, path: str) -> dict[str, Entry]:
        """Every entry below a path, by its whole path and in the order of the paths."""
        ...

    def transact(self, operations: Sequence[Operation]) -> None:
        """Do all or nothing, durably; raises :class:`StoreConflict` when a path is not as expected."""
        ...

    def watch(self, path: str, watcher: Watcher) -> None:
        """Call after each change at a path or below it. Changes may be merged: read again, never count."""
        ...

    def close(self) -> None: ...
