"""Removing the directories of deleted partitions, on a thread that does nothing else.

Owns which of them are still to be removed: thousands must not keep fsyncs and reads waiting. What is left when the
broker stops is removed at the next start, which knows it by its name. Must not know why a directory goes.
"""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from lamina.broker.threads import Threads
from lamina.log.files import Disk

logger = logging.getLogger(__name__)


class Removal:
    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Threads) -> None:
        self._loop = loop
        self._thread = threads.separate("removal")
        self._is_stopped = False

    def remove_later(self, disk: Disk, paths: Iterable[str], delay_ms: int) -> None:
        """Remove directories that are out of service; readers that still hold their files finish first."""
        self._loop.call_later(delay_ms / 1000, self._remove, disk, list(paths))

    def _remove(self, disk: Disk, paths: list[str]) -> None:
        if not self._is_stopped:
            for path in paths:
                self._thread.run_then(partial(disk.remove_tree, path), _removed)

    def stop(self) -> None:
        """Wait for the one that is being removed, and begin no other."""
        self._is_stopped = True
        self._thread.close()


def _removed(error: OSError | None) -> None:
    if error is not None:
        logger.warning("a deleted partition could not be removed: %s", error)
