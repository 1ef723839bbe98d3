"""Waiting until records are committed or deleted on all replicas.

Owns the calls through which requests wait for one partition or for several, some with a timeout; a coordinator has one
partition, and asks it itself. Must not know what was appended.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from functools import partial

from lamina.broker.partitions.offset_waiters import Waiter
from lamina.broker.partitions.partition import CommitPoint, Partition
from lamina.broker.waits import WAITS
from lamina.clocks import Clocks
from lamina.errors import KafkaError, RequestTimedOut
from lamina.log.due_waiters import AT_A_TIME
from lamina.topic_partition import TopicPartition


async def all_committed(
    appended: Iterable[tuple[Partition, CommitPoint]], clocks: Clocks, *, timeout_ms: int | None = None
) -> dict[TopicPartition, KafkaError]:
    """Wait until each partition is committed up to the point beside it. Returns the errors of those that failed.

    One that still waits for other replicas after ``timeout_ms`` is REQUEST_TIMED_OUT: what it holds stays, and may be
    committed later. Without other replicas there is only this broker's disk to wait for, which has no timeout.
    """
    calls = [(partition, partial(partition.when_committed, point=point)) for partition, point in appended]
    return await _all_told(calls, clocks, timeout_ms)


class CommitWait:
    """As ``all_committed``, of one partition and without a task: ``told`` is told once, in the turn of the commit."""

    __slots__ = ("_partition", "_timer", "_told")

    def __init__(
        self,
        partition: Partition,
        point: CommitPoint,
        timeout_ms: int,
        told: Waiter,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._partition = partition
        self._told: Waiter | None = told
        self._timer: asyncio.TimerHandle | None = None
        partition.when_committed(self._committed, point)
        if self._told is not None and partition.is_replicated:
            self._timer = loop.call_later(timeout_ms / 1000, self._time_out, context=Context())

    def _committed(self, error: KafkaError | None) -> None:
        told, self._told = self._told, None
        if self._timer is not None:
            self._timer.cancel()
        if told is not None:
            told(error)

    def _time_out(self) -> None:
        self._partition.forget_waiter(self._committed)
        self._committed(_timed_out())

    def give_up(self) -> None:
        """Nobody wants to be told any more."""
        self._told = None
        if self._timer is not None:
            self._timer.cancel()


async def all_flushed(partitions: Iterable[Partition], clocks: Clocks) -> dict[TopicPartition, KafkaError]:
    """Wait until what these partitions hold now is on disk, for who wants no word of other replicas."""
    return await _all_told([(partition, partition.when_flushed) for partition in partitions], clocks)


async def all_deleted_within(
    deleted: Iterable[tuple[Partition, int]], timeout_ms: int, clocks: Clocks
) -> dict[TopicPartition, KafkaError]:
    """Wait until no replica that is online starts below the offset beside each partition. Returns the errors."""
    calls = [(partition, partial(partition.when_deleted, offset)) for partition, offset in deleted]
    return await _all_told(calls, clocks, timeout_ms)


async def _all_told(
    calls: Iterable[tuple[Partition, Callable[[Waiter], None]]], clocks: Clocks, timeout_ms: int | None = None
) -> dict[TopicPartition, KafkaError]:
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[None]] = []
    timed: deque[tuple[Partition, Waiter]] = deque()
    failed: dict[TopicPartition, KafkaError] = {}
    for partition, call in calls:
        future: asyncio.Future[None] = loop.create_future()

        def done(error: KafkaError | None, future: "asyncio.Future[None]" = future, of: Partition = partition) -> None:
            if not future.done():
                if error is not None:
                    failed[of.topic, of.index] = error
                future.set_result(None)

        call(done)
        waiting.append(future)
        if timeout_ms is not None and partition.is_replicated:
            timed.append((partition, done))
        if len(waiting) % AT_A_TIME == 0:
            await asyncio.sleep(0)
    began_ns = clocks.monotonic_ns()
    timer = None
    if timed and timeout_ms is not None:
        timer = loop.call_later(timeout_ms / 1000, _time_out, loop, timed, context=Context())
    try:
        for one in waiting:
            await one
    finally:
        if timer is not None:
            timer.cancel()
    waits = WAITS.get()
    if waits is not None:
        waits.threads_ns += clocks.monotonic_ns() - began_ns
    return failed


def _timed_out() -> RequestTimedOut:
    return RequestTimedOut("other replicas have not followed in time; they may follow later")


def _time_out(loop: asyncio.AbstractEventLoop, waiters: deque[tuple[Partition, Waiter]]) -> None:
    """As many as may be told in one turn of the loop, and the others in the next ones."""
    for _ in range(min(AT_A_TIME, len(waiters))):
        partition, waiter = waiters.popleft()
        partition.forget_waiter(waiter)
        waiter(_timed_out())
    if waiters:
        loop.call_soon(_time_out, loop, waiters, context=Context())
