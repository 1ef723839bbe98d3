"""What the broker needs of a cluster store, whatever serves it: SQLite on one node, ZooKeeper in a cluster.

Owns the contract. A store maps paths to small values, each with a version: 0 when it is created, one more with
each change. All writing is compare-and-set, and several writes are one transaction: all of them happen or none
does, and what has returned survives a crash. Nothing here is a cluster's metadata yet: metadata.py, znodes.py,
membership.py and producer_ids.py give the paths their meaning. Must not know any of them.

Two limits are ZooKeeper's, and kept on one node too: an ephemeral entry has none below it, and a value stays
under ``LARGEST_BYTES``. A third is ZooKeeper's alone: an entry is made only where the one above it is there already.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

TRANSACTION_BYTES = 32_000
"""Whoever writes much divides it into transactions of this size.

ZooKeeper takes thirty times as much, but keeps its last 500 transactions in memory, which is small beside our brokers.
"""
LARGEST_BYTES = 500_000
"""What belongs into one transaction is refused if it takes more.

A ZooKeeper server closes the connection of whoever sends a mebibyte, and says nothing.
"""

_OVERHEAD_BYTES = 64


class StoreError(Exception):
    """A store that cannot be used; the message is one sentence that says why."""


class StoreAway(StoreError):
    """It was not reached in time. It may be back at any moment; whoever probes the session tells people of it."""


class StoreConflict(StoreError):
    """An operation found another version than it expected: nothing of its transaction happened."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path
        """Where it was."""


class TooLarge(StoreError):
    """A change that no transaction takes: nothing of it was sent, and the store is as it was."""


class OutcomeUnknown(StoreError):
    """A transaction was sent and may have happened or not: read again before anything else."""


class SessionLost(OutcomeUnknown):
    """The session has ended, and with it all its ephemeral entries; the store goes on in a new session."""


class WrongCluster(StoreError):
    """It holds another cluster than this broker's, or none, or what that was in the past: it must not be believed."""


class UnsupportedLevel(WrongCluster):
    """It holds a cluster at a level of a feature that this broker does not support."""


@dataclass(frozen=True, slots=True)
class Entry:
    value: bytes
    version: int
    created_zxid: int = 0
    """The number of the transaction that created it, above that of every earlier one; 0 where nobody counts them."""
    owner: int = 0
    """The session with which it ends; 0 for an entry that stays."""


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


@dataclass(frozen=True, slots=True)
class Check:
    """Changes nothing, and lets the transaction happen only while the path has this version."""

    path: str
    version: int


Operation = Create | Set | Delete | Check
Watcher = Callable[[], None]


class Store(Protocol):
    """One caller at a time, in any thread. Every method may raise :class:`StoreError`."""

    def get(self, path: str) -> Entry | None: ...

    def get_many(self, paths: Iterable[str]) -> dict[str, Entry]:
        """Those of the paths that are there, in the order given."""
        ...

    def children(self, path: str) -> list[str]:
        """The names right below a path, sorted; none where nothing is there."""
        ...

    def below(self, path: str) -> dict[str, Entry]:
        """Every entry below a path, by its whole path and in the order of the paths."""
        ...

    def transact(self, operations: Sequence[Operation]) -> None:
        """Do all in this order or nothing, durably; raises :class:`StoreConflict` when a path is not as expected."""
        ...

    def watch(self, path: str, watcher: Watcher) -> None:
        """Call after each change at a path or below it. Changes may be merged: read again, never count.

        ZooKeeper tells of a path and of what comes and goes right below it, and calls after any trouble with the
        session too, for changes may have been missed. The watcher runs on a thread of the store and must not block.
        """
        ...

    def close(self) -> None: ...


class ClusterStore(Store, Protocol):
    """A store that several brokers share, each in a session of its own."""

    @property
    def session_id(self) -> int:
        """The session now; 0 while there is none."""
        ...

    @property
    def negotiated_timeout_ms(self) -> int:
        """After so long without a word from it a session ends, with all its ephemeral entries."""
        ...

    def sync(self) -> int:
        """Return once the store has answered, with the session in which it did: that one was alive at the call.

        Raises :class:`StoreError` when it does not answer before the session could have ended.
        """
        ...


def size_bytes(operation: Operation) -> int:
    """About what an operation takes on the wire."""
    value = operation.value if isinstance(operation, Create | Set) else b""
    return len(operation.path) + len(value) + _OVERHEAD_BYTES
