"""What a broker does again and again: retention, removing, flushing, checkpoints, forgetting producers, disk room.

Owns the intervals. Partitions are visited for a moment at a time, so that they never hold up the loop. Must not decide
anything: the log room does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from lamina.broker.counters import Place
from lamina.broker.metrics.loop_lag import LoopLag
from lamina.broker.partitions.partition import Partition
from lamina.errors import StorageError
from lamina.log.directory import LogDirectory
from lamina.log.files import Disk
from lamina.log.remembered import Checkpoints
from lamina.log.trimming import take_due_paths
from lamina.settings.broker import (
    LAMINA_DISK_FREE_MIN_BYTES,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
    PRODUCER_ID_EXPIRATION_MS,
    REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS,
)
from lamina.settings.groups import OFFSETS_RETENTION_CHECK_INTERVAL_MS
from lamina.settings.log import LOG_FLUSH_SCHEDULER_INTERVAL_MS
from lamina.settings.log_config import LONG_MAX

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)

_REMOVAL_INTERVAL_MS = 10_000
_EXPIRY_INTERVAL_MS = 600_000
_FLUSH_INTERVAL_MS = 1000
_ROOM_INTERVAL_MS = 1000
_TURN_MS = 1
"""After so long the loop is left to others; one visit that rolls a log takes about as long."""


class Timers:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()
        self._loop_lag = LoopLag(node.loop, node.counters.loop_lag)
        self._flushed_ms: dict[tuple[str, int], int] = {}
        """When nothing was left to be flushed, of the partitions that there were at the last visit."""

    def start(self) -> None:
        self._loop_lag.start()
        settings = self._node.settings
        for interval_ms, work in (
            (settings[LOG_RETENTION_CHECK_INTERVAL_MS], self.retain),
            (_REMOVAL_INTERVAL_MS, self.remove_due),
            (_EXPIRY_INTERVAL_MS, self.expire_producers),
            (settings[OFFSETS_RETENTION_CHECK_INTERVAL_MS], self._node.groups.expire_offsets),
            (min(settings[LOG_FLUSH_SCHEDULER_INTERVAL_MS], _FLUSH_INTERVAL_MS), self.flush_due),
            (settings[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS], self.write_recovery_points),
            (settings[LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS], self.write_log_starts),
            (settings[REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS], self.write_high_watermarks),
            (_ROOM_INTERVAL_MS, self.measure_rooms),
        ):
            if 0 < interval_ms < LONG_MAX:
                self._tasks.append(self._node.loop.create_task(self._repeat(interval_ms, work)))

    async def stop(self) -> None:
        """End all timers. Work that is under way is finished: a thread may be writing for it."""
        self._loop_lag.stop()
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def _repeat(self, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        while not await self._stops_within(interval_ms / 1000):
            try:
                await work()
            except StorageError as error:
                logger.warning("%s", error)
            except Exception as error:
                self._node.count_unexpected(Place.TIMER)
                logger.error("a timer failed", exc_info=error)

    async def _stops_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _visit(self, work: Callable[[Partition], None]) -> None:
        """Do ``work`` with every partition, giving way to requests in between. One that fails is passed over."""
        began_ms = self._node.monotonic_ms()
        for partition in list(self._node.partitions):
            if self._stopping.is_set():
                return
            if partition.log.failure is None:
                try:
                    work(partition)
                except StorageError as error:
                    logger.warning("%s", error)
            if self._node.monotonic_ms() - began_ms >= _TURN_MS:
                await asyncio.sleep(0)
                began_ms = self._node.monotonic_ms()

    async def retain(self) -> None:
        """Fact 30: compacted logs are the cleaner's."""
        began_ms = self._node.monotonic_ms()
        for partition in list(self._node.partitions):
            if self._stopping.is_set():
                return
            if not partition.log.config.compact:
                await self._node.cleaner.trimmer.expire(partition)
            if self._node.monotonic_ms() - began_ms >= _TURN_MS:
                await asyncio.sleep(0)
                began_ms = self._node.monotonic_ms()

    async def remove_due(self) -> None:
        now_ms = self._node.now_ms()
        for partition in list(self._node.partitions):
            paths = take_due_paths(partition.log, now_ms)
            if paths:
                log = partition.log
                try:
                    await self._node.threads.run(partial(_unlink, log.disk, paths))
                except OSError as error:
                    logger.warning("%s", log.fail(error))

    async def expire_producers(self) -> None:
        now_ms, expiration_ms = self._node.now_ms(), self._node.settings[PRODUCER_ID_EXPIRATION_MS]
        await self._visit(lambda partition: partition.log.producers.expire(now_ms, expiration_ms))

    async def flush_due(self) -> None:
        """``flush.ms``: what has been in the log that long is flushed, whoever wrote it."""
        now_ms, before_ms = self._node.monotonic_ms(), self._flushed_ms
        self._flushed_ms = {}

        def visit(partition: Partition) -> None:
            log = partition.log
            key = (partition.topic, partition.index)
            is_flushed = log.log_end_offset <= log.recovery_point
            since_ms = now_ms if is_flushed else before_ms.get(key, now_ms)
            if not is_flushed and now_ms - since_ms >= log.config.flush_ms:
                since_ms = now_ms
                partition.flush_in_background()
            self._flushed_ms[key] = since_ms

        await self._visit(visit)

    async def write_recovery_points(self) -> None:
        await self._checkpoint(LogDirectory.collect_recovery_points)

    async def write_log_starts(self) -> None:
        await self._checkpoint(LogDirectory.collect_log_starts)

    async def write_high_watermarks(self) -> None:
        await self._checkpoint(
            lambda directory: directory.remembered.of_high_watermarks(self.high_watermarks(directory))
        )

    async def measure_rooms(self) -> None:
        """``lamina.disk.free.min.bytes``: see what is free. A disk that cannot say has failed."""
        for directory in self._node.directories:
            if directory.failure is not None:
                continue
            room = self._node.rooms[directory.path]
            taken_bytes = room.taken_bytes
            try:
                free_bytes = await self._node.threads.run(partial(directory.disk.free_bytes, directory.path))
            except OSError as error:
                directory.fail(error)
                continue
            room.measured(free_bytes, taken_bytes, self._node.settings[LAMINA_DISK_FREE_MIN_BYTES])

    def high_watermarks(self, directory: LogDirectory) -> dict[tuple[str, int], int]:
        return {
            (partition.topic, partition.index): partition.high_watermark
            for partition in self._node.partitions
            if directory.logs.get((partition.topic, partition.index)) is partition.log
        }

    async def _checkpoint(self, collect: Callable[[LogDirectory], Checkpoints]) -> None:
        for directory in self._node.directories:
            if directory.failure is None:
                await self._node.checkpoint(directory, partial(collect, directory))


def _unlink(disk: Disk, paths: list[str]) -> None:
    for path in paths:
        disk.unlink(path)
