"""The two ZooKeepers that every test of a cluster's store runs on: the one in memory and a real one."""

from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Protocol

from kazoo.client import KazooClient

from lamina.clocks import SYSTEM_CLOCKS, pause
from lamina.settings.zookeeper_options import ZooKeeperOptions
from lamina.store.interface import ClusterStore
from lamina.store.zookeeper import ZooKeeperStore
from tests.store.memory_zookeeper import MemorySession, MemoryZooKeeper

TIMEOUT_MS = 4000
WAIT_SECONDS = 20

_chroots = count()


class Ensemble(Protocol):
    def connect(self) -> ClusterStore: ...

    def expire(self, store: ClusterStore) -> None:
        """End a session behind its owner's back."""
        ...

    def deliver(self) -> None:
        """Have due watchers called, where that does not happen by itself."""
        ...

    def close(self) -> None: ...


class MemoryEnsemble:
    def __init__(self) -> None:
        self.zookeeper = MemoryZooKeeper()

    def connect(self) -> ClusterStore:
        return self.zookeeper.connect(TIMEOUT_MS)

    def expire(self, store: ClusterStore) -> None:
        assert isinstance(store, MemorySession)
        self.zookeeper.expire(store)

    def deliver(self) -> None:
        self.zookeeper.deliver()

    def close(self) -> None: ...


class RealEnsemble:
    """A path of its own on a server that is shared."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.chroot = f"/test-{next(_chroots)}/cluster"
        self._opened: list[ZooKeeperStore] = []

    def connect(self, **options: object) -> ZooKeeperStore:
        store = ZooKeeperStore(
            ZooKeeperOptions((self.address,), self.chroot, TIMEOUT_MS, WAIT_SECONDS * 1000, **options)  # type: ignore[arg-type]
        )
        self._opened.append(store)
        return store

    def expire(self, store: ClusterStore) -> None:
        """Another client takes the session over and closes it; again, if its owner had it back before it was closed."""
        assert isinstance(store, ZooKeeperStore)
        session_id, session = store.session_id, _session_of(store)

        def is_another() -> bool:
            if store.session_id == session_id:
                self._end(session)
            return store.session_id not in (0, session_id)

        wait_until(is_another)

    def end_session(self, store: ZooKeeperStore) -> None:
        """As :meth:`expire`, before the store can have noticed."""
        self._end(_session_of(store))

    def _end(self, session: tuple[int, bytes]) -> None:
        thief = KazooClient(self.address, client_id=session)
        thief.start(WAIT_SECONDS)
        with closing(thief):
            thief.stop()

    def deliver(self) -> None: ...

    def close(self) -> None:
        for store in self._opened:
            store.close()


def _session_of(store: ZooKeeperStore) -> tuple[int, bytes]:
    client = store._client
    return client._session_id, client._session_passwd


def wait_until(is_so: Callable[[], bool]) -> None:
    """For what another thread or process brings about; looks often, and fails after a long time."""
    deadline = SYSTEM_CLOCKS.monotonic_seconds() + WAIT_SECONDS
    while not is_so():
        assert SYSTEM_CLOCKS.monotonic_seconds() < deadline, "it has not come about"
        pause(0.01)
