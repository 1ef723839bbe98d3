"""The threads on which the admin listener reads logs: its own, few, and none of them for long.

Owns how many scans run at the same time and how long each may take. The broker's threads, which fsync and read for
Kafka clients, are never used. Must not know HTTP, nor what is looked for.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from lamina.broker.cleaner.record_search import SEARCH_MAX_MS
from lamina.broker.threads import Threads
from lamina.clocks import Clocks

T = TypeVar("T")

SCANS_AT_ONCE = 2
RETRY_SECONDS = 5


class TooManyScans(Exception):
    """As many scans are running as may."""

    def __init__(self) -> None:
        super().__init__(f"{SCANS_AT_ONCE} scans of logs are running, and no more may: ask again in {RETRY_SECONDS} s")


class ScanPool:
    def __init__(self, loop: asyncio.AbstractEventLoop, clocks: Clocks) -> None:
        self._clocks = clocks
        self._scan_threads = Threads(loop, clocks, SCANS_AT_ONCE)
        self._read_threads = Threads(loop, clocks, 1)
        """Apart, so that a list of segments does not wait for a scan."""
        self._running = 0
        self._is_closing = False

    def read(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """A short look at files, after those that came before it."""
        return self._read_threads.run(work)

    @contextmanager
    def scan(self) -> Iterator["Scan"]:
        """One of the few scans that may run at a time; raises :class:`TooManyScans`."""
        if self._running >= SCANS_AT_ONCE:
            raise TooManyScans
        self._running += 1
        try:
            yield Scan(self, self._clocks.monotonic_ms() + SEARCH_MAX_MS)
        finally:
            self._running -= 1

    def run_scan(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return self._scan_threads.run(work)

    def is_over(self, deadline_ms: int) -> bool:
        return self._is_closing or self._clocks.monotonic_ms() > deadline_ms

    def close(self) -> None:
        """Scans end at their next batch."""
        self._is_closing = True
        self._scan_threads.close()
        self._read_threads.close()


class Scan:
    def __init__(self, pool: ScanPool, deadline_ms: int) -> None:
        self._pool = pool
        self._deadline_ms = deadline_ms

    async def run(self, work: Callable[[], T], done: Callable[[], None]) -> T:
        """The result of ``work``. ``done`` is called when the thread has ended, even if the result is not wanted."""
        running = self._pool.run_scan(work)
        running.add_done_callback(lambda _: done())
        return await asyncio.shield(running)

    def is_over(self) -> bool:
        """Whether ``work`` must end now; asked on its thread."""
        return self._pool.is_over(self._deadline_ms)
