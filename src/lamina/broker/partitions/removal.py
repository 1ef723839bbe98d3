"""Removing the directories of deleted partitions, on a thread that does nothing else.

Owns which of them are still to be removed: thousands must not keep fsyncs and reads waiting. What is left when the
broker stops is removed at the next start, which knows it by its name. Must not know why a directory goes.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from functools import partial

from lamina.broker.threads import Threads
from lamina.log.descriptors import is_temporary
from lamina.log.directory import LogDirectory

logger = logging.getLogger(__name__)

_RETRY_MS = 10_000


class Removal:
    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Threads) -> None:
        self._loop = loop
        self._thread = threads.separate("removal")
        self._is_stopped = False
        self._is_removing = False
        self._due: deque[tuple[LogDirectory, str, bool]] = deque()

    def remove_later(
        self, directory: LogDirectory, paths: Iterable[str], delay_ms: int, *, is_synced: bool = True
    ) -> None:
        """Remove directories that are out of service; readers that still hold their files finish first.

        ``is_synced`` says whether their names are durable. One that finds no descriptors is tried again.
        """
        self._loop.call_later(delay_ms / 1000, self._remove, directory, list(paths), is_synced)

    def _remove(self, directory: LogDirectory, paths: list[str], is_synced: bool) -> None:
        self._due.extend((directory, path, is_synced) for path in paths)
        if not self._is_removing:
            self._begin_next()

    def _begin_next(self) -> None:
        """One at a time: to hand thousands to the thread would hold up the loop."""
        self._is_removing = bool(self._due) and not self._is_stopped
        if self._is_removing:
            directory, path, is_synced = self._due.popleft()
            remove = partial(directory.remove_deleted, path, syncs=not is_synced)
            self._thread.run_then(remove, partial(self._removed, directory, path, is_synced))

    def _removed(self, directory: LogDirectory, path: str, is_synced: bool, error: OSError | None) -> None:
        if error is not None and is_temporary(error):
            self.remove_later(directory, [path], _RETRY_MS, is_synced=is_synced)
        elif error is not None:
            logger.warning("a deleted partition could not be removed: %s", error)
        self._begin_next()

    def stop(self) -> None:
        """Wait for the one that is being removed, and begin no other."""
        self._is_stopped = True
        self._thread.close()
