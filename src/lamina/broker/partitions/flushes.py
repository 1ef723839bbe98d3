"""The flushes of logs, run on threads.

Owns how long each took, and that a fault of our own in one is counted. Must not know what is flushed, nor who waits.
"""

import logging
from collections.abc import Callable

from lamina.broker.counters import Counters, Place
from lamina.broker.threads import Threads
from lamina.clocks import Clocks

logger = logging.getLogger(__name__)


class Flushes:
    def __init__(self, threads: Threads, counters: Counters, clocks: Clocks) -> None:
        self._threads = threads
        self._counters = counters
        self._clocks = clocks

    def run(self, work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
        took_ns = 0
        fault: Exception | None = None

        def timed() -> None:
            nonlocal took_ns, fault
            began_ns = self._clocks.monotonic_ns()
            try:
                work()
            except Exception as error:
                fault = None if isinstance(error, OSError) else error
                raise
            finally:
                took_ns = self._clocks.monotonic_ns() - began_ns

        def counted(error: OSError | None) -> None:
            self._counters.flushes.observe(took_ns)
            if fault is not None:
                logger.error("a flush failed", exc_info=fault)
                self._counters.count_unexpected(Place.PARTITION)
            done(error)

        self._threads.run_then(timed, counted)
