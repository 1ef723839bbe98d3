"""The one door to threads.

What may block for long (fsync, reads that miss the page cache, deletes, recovery, large decompressions, the
store) goes through here; everything else happens on the loop. Work is a plain function that touches no state of the
loop. Which executor does the work is handed in, so that a simulation can do it in an order of its own. Must not
know what the work is.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TypeVar

from lamina.broker.waits import WAITS
from lamina.clocks import Clocks

T = TypeVar("T")

NewExecutor = Callable[[int, str], Executor]
"""Makes one of so many threads, which have a name."""

_SWITCH_SECONDS = 0.0005


class _GivingWay:
    """How many threads give way now, and how long they had the interpreter before the first of them did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._usual_seconds = 0.0

    def begin(self) -> None:
        with self._lock:
            if not self._count:
                self._usual_seconds = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_SECONDS)
            self._count += 1

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                sys.setswitchinterval(self._usual_seconds)


_giving_way = _GivingWay()


@contextmanager
def giving_way() -> Iterator[None]:
    """For work on a thread that keeps the interpreter busy, such as imports: the loop need not wait 5 ms for it."""
    _giving_way.begin()
    try:
        yield
    finally:
        _giving_way.end()


class Threads:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        count: int = 4,
        name: str = "lamina",
        new_executor: NewExecutor = ThreadPoolExecutor,
    ) -> None:
        """Threads are started when there is work for them."""
        self._loop = loop
        self._clocks = clocks
        self._new_executor = new_executor
        self._executor = new_executor(count, name)
        self._separate: list[Threads] = []
        self._ends_at_once = False
        self._counting = threading.Lock()
        self.waiting = 0
        """Pieces of work that no thread has taken yet."""
        self.busy = 0
        """Threads that are busy."""
        self.busy_ns = 0
        """How long threads have worked so far, in all."""

    def separate(self, name: str) -> "Threads":
        """One thread more, for work that must not keep these busy. It ends with them, and leaves work undone then."""
        one = Threads(self._loop, self._clocks, 1, f"lamina-{name}", self._new_executor)
        one._ends_at_once = True
        self._separate.append(one)
        return one

    def more(self, count: int) -> "Threads":
        """As many threads more, for work that must not keep these busy. Whoever asked for them closes them."""
        return Threads(self._loop, self._clocks, count, new_executor=self._new_executor)

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """The result of ``work``, to be awaited on the loop."""
        future = asyncio.wrap_future(self._submit(work), loop=self._loop)
        waits = WAITS.get()
        if waits is not None:
            began_ns = self._clocks.monotonic_ns()

            def waited(_: "asyncio.Future[T]") -> None:
                waits.threads_ns += self._clocks.monotonic_ns() - began_ns

            future.add_done_callback(waited)
        return future

    async def run_to_its_end(self, work: Callable[[], T]) -> T:
        """As :meth:`run`. Whoever is cancelled meanwhile learns it when the thread has ended, not before.

        So what ``work`` reads can be closed by whoever asked for it, as soon as he goes on.
        """
        running = self.run(work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((running,))
            raise

    def compute(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """As :meth:`run`, for work that keeps the interpreter busy: it gives way to the loop."""

        def give_way() -> T:
            with giving_way():
                return work()

        return self.run(give_way)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        with self._counting:
            self.waiting += 1
        future = self._executor.submit(self._counted, work)
        future.add_done_callback(self._left_undone)
        return future

    def _left_undone(self, future: Future[T]) -> None:
        if future.cancelled():
            with self._counting:
                self.waiting -= 1

    def _counted(self, work: Callable[[], T]) -> T:
        with self._counting:
            self.waiting -= 1
            self.busy += 1
        began_ns = self._clocks.monotonic_ns()
        try:
            return work()
        finally:
            with self._counting:
                self.busy -= 1
                self.busy_ns += self._clocks.monotonic_ns() - began_ns

    def run_then(self, work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
        """Do ``work`` on a thread, then call ``done`` with its disk error, if any, on the loop.

        Work that was left undone when the threads ended calls nobody.
        """

        def finished(future: Future[None]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is not None and not isinstance(error, OSError):
                error = OSError(f"unexpected: {error!r}")
            self._loop.call_soon_threadsafe(done, error)

        self._submit(work).add_done_callback(finished)

    def close(self) -> None:
        for one in self._separate:
            one.close()
        self._executor.shutdown(wait=True, cancel_futures=self._ends_at_once)
