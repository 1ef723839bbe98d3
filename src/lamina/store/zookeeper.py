"""The store of a cluster: ZooKeeper, through kazoo.

Owns the connection and what its failures mean. Every call is synchronous and bounded: reading is repeated until there
is an answer, and a transaction whose answer was lost is read back. kazoo works in threads of its own; what it calls
here only hands over. Must not know what the entries mean, nor run on an event loop.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kazoo.client import KazooState, TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.settings.zookeeper_options import ZooKeeperOptions
from lamina.store.interface import (
    LARGEST_BYTES,
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
    TooLarge,
    Watcher,
    size_bytes,
)
from lamina.store.kazoo_client import acls, negotiated_timeout_ms, new_client
from lamina.store.read_back import Outcome, outcome
from lamina.store.silent_servers import why_silent
from lamina.store.zookeeper_watches import ZooKeeperWatches

T = TypeVar("T")


PIPELINED = 500
"""Requests that are on their way at once; more would stall kazoo's threads, and this process with them."""

_CUT_OFF = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, SessionMovedError)
_CONFLICTS = (BadVersionError, NodeExistsError, NoNodeError, NotEmptyError)
_ROLLED_BACK = (RolledBackError, RuntimeInconsistency)


class ZooKeeperStore:
    """A :class:`~lamina.store.interface.ClusterStore`. When a session expires, it goes on in a new one by itself."""

    def __init__(self, options: ZooKeeperOptions, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        """Connect, and make the chroot where it is missing; raises :class:`StoreError`."""
        self._name = f"ZooKeeper at {','.join(options.hosts)}"
        self._root = options.chroot
        self._acl = list(acls(options))
        self._patience_seconds = max(options.connection_timeout_ms, options.session_timeout_ms) / 1000
        self._clocks = clocks
        self._is_closed = False
        _check_files(options)
        self._client = new_client(options)
        self._connected = threading.Event()
        self._watches = ZooKeeperWatches(self._client, self._full)
        self._client.add_listener(self._state_changed)
        self._client.start_async()
        self._watches.start()
        try:
            if not self._connected.wait(options.connection_timeout_ms / 1000):
                seconds = options.connection_timeout_ms / 1000
                raise StoreAway(f"ZooKeeper does not answer within {seconds:g} s: {why_silent(options.hosts)}")
            self._make_chroot()
        except BaseException:
            self.close()
            raise

    @property
    def session_id(self) -> int:
        # kazoo's own property knows none while the connection is lost, though the session may go on.
        return self._client._session_id or 0

    @property
    def negotiated_timeout_ms(self) -> int:
        return negotiated_timeout_ms(self._client)

    def sync(self) -> int:
        session_id = self.session_id
        if not self._connected.is_set():
            raise StoreAway(f"{self._name} is not connected")
        try:
            self._client.sync_async(self._full("")).get(timeout=self.negotiated_timeout_ms / 1000)
        except (KazooException, KazooTimeoutError) as error:
            raise self._failure(error) from None
        if self.session_id != session_id:
            raise SessionLost(f"the session with {self._name} has ended")
        return session_id

    def close(self) -> None:
        self._is_closed = True
        self._watches.stop()
        self._client.stop()
        self._client.close()

    # Reading

    def get(self, path: str) -> Entry | None:
        return self.get_many([path]).get(path)

    def get_many(self, paths: Iterable[str]) -> dict[str, Entry]:
        return {path: _entry(value, stat) for path, (value, stat) in self._read_many(self._client.get_async, paths)}

    def children(self, path: str) -> list[str]:
        names: list[str] = dict(self._read_many(self._client.get_children_async, [path])).get(path, [])
        return sorted(names)

    def below(self, path: str) -> dict[str, Entry]:
        """Level by level, so that a level of thousands takes a few round trips."""
        found: dict[str, Entry] = {}
        parents = [path]
        while parents:
            names = self._read_many(self._client.get_children_async, parents)
            level = [f"{parent}/{name}" for parent, children in names for name in children]
            parents = []
            for each, (value, stat) in self._read_many(self._client.get_async, level):
                found[each] = _entry(value, stat)
                if stat.numChildren:
                    parents.append(each)
        return dict(sorted(found.items()))

    def _read_many(self, ask: Callable[[str], Any], paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """What ``ask`` answers for each path that is there."""
        for some in _batches(paths):
            yield from self._read(lambda deadline, some=some: self._ask(ask, some, deadline))  # type: ignore[misc]

    def _ask(self, ask: Callable[[str], Any], paths: list[str], deadline: float) -> list[tuple[str, Any]]:
        asked = [(path, ask(self._full(path))) for path in paths]
        answered = []
        for path, pending in asked:
            try:
                answered.append((path, pending.get(timeout=self._left(deadline))))
            except NoNodeError:
                continue
        return answered

    def _read(self, ask: Callable[[float], T]) -> T:
        """Ask until there is an answer, for reading twice does no harm."""
        deadline = self._deadline()
        while True:
            self._await_connection(deadline)
            try:
                return ask(deadline)
            except _CUT_OFF as error:
                if self._left(deadline) <= 0:
                    raise self._failure(error) from None
            except (KazooException, KazooTimeoutError) as error:
                raise self._failure(error) from None

    # Writing

    def transact(self, operations: Sequence[Operation]) -> None:
        size = sum(map(size_bytes, operations))
        if size > LARGEST_BYTES:
            raise TooLarge(f"{operations[0].path}: a transaction of {size} bytes is too large for {self._name}")
        deadline = self._deadline()
        self._await_connection(deadline)
        session_id = self.session_id
        while not self._is_done(operations, session_id, deadline):
            if self._left(deadline) <= 0:
                raise StoreAway(f"{self._name} did not take a transaction within {self._patience_seconds:g} s")

    def _is_done(self, operations: Sequence[Operation], session_id: int, deadline: float) -> bool:
        """Try once; ``False`` when that has certainly not happened and may be tried again in the same session."""
        try:
            results = self._commit(operations).get(timeout=self._left(deadline))
        except (ConnectionLoss, OperationTimeoutError, KazooTimeoutError):
            return self._has_happened(operations, session_id)
        except KazooException as error:
            raise self._failure(error) from None
        self._check_results(operations, results)
        return True

    def _commit(self, operations: Sequence[Operation]) -> Any:
        transaction = TransactionRequest(self._client)
        for operation in operations:
            path = self._full(operation.path)
            match operation:
                case Create(_, value, is_ephemeral):
                    transaction.create(path, value, self._acl, is_ephemeral)
                case Set(_, value, version):
                    transaction.set_data(path, value, version)
                case Delete(_, version):
                    transaction.delete(path, version)
                case Check(_, version):
                    transaction.check(path, version)
        return transaction.commit_async()

    def _check_results(self, operations: Sequence[Operation], results: list[Any]) -> None:
        """kazoo returns errors and does not raise them; one that was rolled back for another's sake says nothing."""
        if len(results) != len(operations):
            raise OutcomeUnknown(f"{self._name} answered {len(results)} of {len(operations)} operations")
        for operation, result in zip(operations, results, strict=True):
            if isinstance(result, _CONFLICTS):
                path = operation.path
                raise StoreConflict(f"{path} in {self._name} is not as expected: {_words(result)}", path)
            if isinstance(result, Exception) and not isinstance(result, _ROLLED_BACK):
                raise self._failure(result, operation.path)
        if any(isinstance(result, Exception) for result in results):
            raise StoreError(f"{self._name} refused a transaction that begins with {operations[0].path}")

    def _has_happened(self, operations: Sequence[Operation], session_id: int) -> bool:
        """After a lost answer. What has not happened by now never will: a session's requests are done in order."""
        try:
            self._read(lambda deadline: self._client.sync_async(self._full("")).get(timeout=self._left(deadline)))
            found = self.get_many({operation.path: None for operation in operations})
        except StoreError as error:
            raise OutcomeUnknown(f"{error}; the last transaction may have happened or not") from None
        if self.session_id != session_id:
            raise SessionLost(f"the session with {self._name} has ended")
        match outcome(operations, found, session_id):
            case Outcome.UNKNOWN:
                raise OutcomeUnknown(f"{self._name}: others wrote where the last transaction may have happened or not")
            case known:
                return known is Outcome.HAPPENED

    def _make_chroot(self) -> None:
        parts = self._root.split("/")[1:]
        root, self._root = self._root, ""
        for depth in range(1, len(parts) + 1):
            path = "/" + "/".join(parts[:depth])
            if self.get(path) is None:
                try:
                    self.transact([Create(path, b"")])
                except StoreConflict:
                    continue  # another broker has just made it
        self._root = root

    # Watching

    def watch(self, path: str, watcher: Watcher) -> None:
        self._watches.add(path, watcher)

    def _state_changed(self, state: str) -> None:
        """On kazoo's connection thread, where a call would wait for itself."""
        if state == KazooState.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()
        self._watches.connection_changed()

    # Time and trouble

    def _deadline(self) -> float:
        return self._clocks.monotonic_seconds() + self._patience_seconds

    def _left(self, deadline: float) -> float:
        return max(0.0, deadline - self._clocks.monotonic_seconds())

    def _await_connection(self, deadline: float) -> None:
        if self._is_closed:
            raise StoreError(f"the connection to {self._name} is closed")
        if not self._connected.wait(self._left(deadline)):
            raise StoreAway(f"{self._name} has not been reached for {self._patience_seconds:g} s")

    def _failure(self, error: Exception, path: str = "") -> StoreError:
        if isinstance(error, SessionExpiredError):
            return SessionLost(f"the session with {self._name} has ended")
        if isinstance(error, (*_CUT_OFF, KazooTimeoutError)):
            return StoreAway(f"{self._name} does not answer")
        return StoreError(f"{self._name}: {_words(error)}" + (f" at {path}" if path else ""))

    def _full(self, path: str) -> str:
        return self._root + path or "/"


def _entry(value: bytes, stat: Any) -> Entry:
    return Entry(value, stat.version, stat.czxid, stat.ephemeralOwner)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _batches(paths: Iterable[str]) -> Iterator[list[str]]:
    every = list(paths)
    for start in range(0, len(every), PIPELINED):
        yield every[start : start + PIPELINED]


def _check_files(options: ZooKeeperOptions) -> None:
    """kazoo would take a file that is not there for a server that does not answer."""
    for file in () if options.tls is None else (options.tls.trusted, options.tls.certificate):
        if file is not None and not os.access(file, os.R_OK):
            raise StoreError(f"{file}, which is to secure the connection to ZooKeeper, cannot be read")
