"""Waiting until appended records are committed, and the flushes that are a part of it.

Owns the one call through which Produce and markers wait for several partitions; a coordinator has one, and asks it
itself. Must not know what was appended.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from lamina.broker.counters import Counters, Place
from lamina.broker.partitions.partition import Partition
from lamina.broker.threads import Threads
from lamina.broker.waits import WAITS
from lamina.clocks import Clocks
from lamina.errors import KafkaError
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Flushes:
    """Runs the flushes of logs on threads, and counts how long they took."""

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


async def all_committed(
    partitions: Iterable[Partition], clocks: Clocks, *, flushed_only: bool = False
) -> dict[TopicPartition, KafkaError]:
    """Wait until what these partitions hold now is committed. Returns the errors of those that failed.

    ``flushed_only`` is for who wants no word of other replicas: acks=0 and acks=1.
    """
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[None]] = []
    failed: dict[TopicPartition, KafkaError] = {}
    for partition in partitions:
        future: asyncio.Future[None] = loop.create_future()

        def done(error: KafkaError | None, future: "asyncio.Future[None]" = future, of: Partition = partition) -> None:
            if error is not None:
                failed[of.topic, of.index] = error
            if not future.done():
                future.set_result(None)

        if flushed_only:
            partition.when_flushed(done)
        else:
            partition.when_committed(done)
        waiting.append(future)
    began_ns = clocks.monotonic_ns()
    for one in waiting:
        await one
    waits = WAITS.get()
    if waits is not None:
        waits.threads_ns += clocks.monotonic_ns() - began_ns
    return failed
