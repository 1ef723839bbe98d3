"""Watches on ZooKeeper that stay, made of its own, which fire once and do not survive a lost connection.

Owns a thread that sets them again and then calls the watchers: what changes before a watch is set is seen by whoever
reads after the call, what changes later fires it. kazoo's threads only say which path is due. Must not know what the
watchers do, nor what is at a path.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from lamina.store.interface import Watcher

RETRY_SECONDS = 1
_ANSWER_SECONDS = 5

log = logging.getLogger(__name__)


class ZooKeeperWatches:
    def __init__(self, client: KazooClient, full: Callable[[str], str]) -> None:
        """``full`` puts the chroot before a path."""
        self._client = client
        self._full = full
        self._watchers: defaultdict[str, list[Watcher]] = defaultdict(list)
        self._fired: dict[str, Callable[[Any], None]] = {}
        """One callback for each path, always the same, so that kazoo keeps it once however often it is set."""
        self._due: set[str] = set()
        self._unset: set[str] = set()
        self._is_stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="zookeeper-watches", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def add(self, path: str, watcher: Watcher) -> None:
        with self._changed:
            self._watchers[path].append(watcher)
            self._fired.setdefault(path, lambda event: self._mark(path))
            self._unset.add(path)
        self._mark(path)

    def connection_changed(self) -> None:
        """Watches are gone with a connection, and changes may have been missed."""
        with self._changed:
            self._unset.update(self._watchers)
            self._due.update(self._watchers)
            self._changed.notify()

    def _mark(self, path: str) -> None:
        with self._changed:
            self._unset.add(path)
            self._due.add(path)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._due and not self._is_stopping:
                    self._changed.wait(RETRY_SECONDS if self._unset else None)
                if self._is_stopping:
                    return
                due = self._due | self._unset
                unset, self._due, self._unset = self._unset, set(), set()
                watchers = [watcher for path in sorted(due) for watcher in self._watchers[path]]
            failed = {path for path in unset if not self._set(path)}
            with self._changed:
                self._unset |= failed
            for watcher in watchers:
                self._call(watcher)

    def _set(self, path: str) -> bool:
        """Watch a path for coming, going and changing, and for what comes and goes below it."""
        if not self._client.connected:
            return False
        fired = self._fired[path]
        try:
            self._client.exists_async(self._full(path), watch=fired).get(timeout=_ANSWER_SECONDS)
            self._client.get_children_async(self._full(path), watch=fired).get(timeout=_ANSWER_SECONDS)
        except NoNodeError:
            return True  # the first of the two tells when it comes
        except (KazooException, KazooTimeoutError):
            return False
        return True

    def _call(self, watcher: Watcher) -> None:
        try:
            watcher()
        except Exception:
            log.exception("a watcher failed")
