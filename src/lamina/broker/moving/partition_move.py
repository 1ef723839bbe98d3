"""One partition on its way to another log directory (R70): its log is copied, and in the end the copy is used.

Owns the order of the steps. The copy is filled beside everything else that happens to the log, then flushed and named;
what comes meanwhile is copied too, and in one turn of the loop in which both end alike the partition goes on in the
copy. Nobody has to wait for that. The old directory goes when the copy is flushed: at every moment one of the two has
all that was acknowledged, and on disk as far as it was. Only this task touches the copy: on the loop, or on a thread
while it waits for that. The log is not cleaned meanwhile. Must not know who wants the move, nor what partitions there
are.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from lamina.broker.counters import Counters
from lamina.broker.moving.copying import Cut, copy_range, find_cut, find_gap, next_offset, segment_base
from lamina.broker.partitions.flushes import Flushes
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.quota import Quota
from lamina.broker.partitions.removal import Removal
from lamina.broker.partitions.truncations import CleaningPauses
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import CorruptMessage, KafkaError, StorageError
from lamina.log.copies import forget_move
from lamina.log.directory import LogDirectory
from lamina.log.flushing import Flusher, flush
from lamina.log.future_logs import FutureLog, give_name, make_future_log, rename_discarded
from lamina.log.partition_log import PartitionLog
from lamina.log.steps import Steps
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_AT_ONCE_BYTES = 64 << 10
"""So much of what is left is copied in the turn in which the copy takes the place of the log."""
_AGAIN_MS = 100
_RETRY_MS = 1000


@dataclass(frozen=True, slots=True)
class MovingParts:
    """What all moves of a broker work with."""

    clocks: Clocks
    threads: Threads
    directories: LogDirectories
    partitions: Partitions
    removal: Removal
    cleaning: CleaningPauses
    quota: Quota
    flushes: Flushes
    producer_expiration_ms: Callable[[], int]
    piece_bytes: int
    """How much is read of a log at a time; a larger batch comes whole."""
    counters: Counters


class FutureState(NamedTuple):
    """What a move has copied so far."""

    size_bytes: int
    offset_lag: int
    """How many offsets the copy is behind its log (R71)."""


class _NotWanted(Exception):
    """The copy is of no use any more."""


class _Stopping(Exception):
    """The broker stops: the next start goes on."""


class PartitionMove:
    def __init__(
        self, parts: MovingParts, partition: Partition, target: LogDirectory, found: FutureLog | None = None
    ) -> None:
        """``found`` is what an earlier run of the broker has copied."""
        self.partition = partition
        self.key = (partition.topic, partition.index)
        self.source = parts.directories.of[self.key]
        self.target = target
        self.copy: PartitionLog | None = None
        """While it is open and the partition is not in it."""
        self._parts = parts
        self._future = found
        self._cuts = -1
        """How often the log had been cut when the copy was compared with it."""
        self._may_lack_deletions = found is not None and self.key in self.source.offset_checkpoints.cleaner_offsets
        """Whether compaction may have removed tombstones since, of keys that the copy has: then it begins anew."""
        self._is_wanted = True
        self._is_dropped = False
        self._is_stopping = False
        self._has_moved = False
        self._wake = asyncio.Event()

    @property
    def future(self) -> FutureState | None:
        """How far it is; ``None`` once the partition is in its new directory."""
        if self._has_moved:
            return None
        copied, size_bytes = (0, 0) if self.copy is None else (self.copy.log_end_offset, self.copy.size_bytes())
        return FutureState(size_bytes, max(self.partition.log.log_end_offset - copied, 0))

    # From outside

    def cancel(self) -> None:
        """Nobody wants it any more. Once the partition is in the copy it stays there."""
        self._is_wanted = False
        self._wake.set()

    def drop(self) -> None:
        """The partition goes away, and nobody needs what either directory has of it."""
        self._is_dropped = True
        self.cancel()

    def stop(self) -> None:
        """Leave everything to the next start."""
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Until the partition is in the other directory, or never will be; the log tells."""
        await self._parts.cleaning.pause(self.key)
        try:
            while not await self._is_over():
                await self._wait(_RETRY_MS)
        finally:
            if self._is_served():
                self._parts.cleaning.resume(self.key)

    async def _is_over(self) -> bool:
        """False if it is to be tried again."""
        try:
            await self._carry_out()
        except _Stopping:
            return True
        except _NotWanted:
            await self._discard()
        except CorruptMessage as error:
            logger.error("%s cannot be moved to %s: %s", self._name, self.target.path, error)
            await self._discard()
        except KafkaError as error:
            self._close_copy()
            if self._has_moved:
                logger.error("%s was moved, and its old log in %s stays: %s", self._name, self.source.path, error)
                return True
            if not self._has_failed():
                logger.warning("the move of %s to %s is tried again: %s", self._name, self.target.path, error)
                return False
            logger.error("%s is not moved to %s: %s", self._name, self.target.path, error)
        return True

    @property
    def _name(self) -> str:
        return self.partition.log.name

    def _has_failed(self) -> bool:
        return any(one.failure is not None for one in (self.source, self.target, self.partition.log))

    def _is_served(self) -> bool:
        return self._parts.partitions.find(*self.key) is self.partition

    def _check(self) -> None:
        if not (self._is_wanted and self._is_served()):
            raise _NotWanted
        if self._is_stopping:
            raise _Stopping

    async def _wait(self, wait_ms: int) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), wait_ms / 1000)
        except TimeoutError:
            return

    # The steps

    async def _carry_out(self) -> None:
        copy = await self._open()
        await self._fill(copy)
        copy = await self._give_name(copy)
        await self._catch_up(copy)
        flusher = self._go_on_in(copy)
        await self._flush(copy, flusher)
        await self._remove_source()

    async def _open(self) -> PartitionLog:
        threads = self._parts.threads
        if self._future is None:
            self._check()
            topic_id = self.partition.topic_id.bytes
            self._future = await threads.run(partial(make_future_log, self.target, self.key, topic_id))
            logger.info("%s is being moved from %s to %s", self._name, self.source.path, self.target.path)
        self._check()
        self._cuts = -1
        copy = await self._open_copy(self._future)
        if self._may_lack_deletions:
            await self._cut(copy, Cut(self.partition.log.log_start_offset, is_whole=True))
            self._may_lack_deletions = False
        return copy

    async def _open_copy(self, future: FutureLog) -> PartitionLog:
        config, now_ms = self.partition.log.config, self._parts.clocks.now_ms()
        expiration_ms = self._parts.producer_expiration_ms()
        opening = partial(future.directory.open_log, *self.key, config, now_ms, expiration_ms, future.name)
        copy = await self._parts.threads.run(opening)
        if not self._is_served():
            # Another partition may have its name there by now.
            copy.close()
            raise _NotWanted
        self.copy = self.target.adopt(copy)
        return self.copy

    async def _fill(self, copy: PartitionLog) -> None:
        """Until the copy ends where the log ended a moment ago, within the rate that moves may take."""
        while True:
            end_offset = await self._next(copy, is_throttled=True)
            if end_offset is not None:
                await self._copy_some(copy, end_offset)
                if copy.log_end_offset >= end_offset and self._is_compared():
                    return

    async def _catch_up(self, copy: PartitionLog) -> None:
        """Until both end alike, in this very turn of the loop."""
        while True:
            end_offset = await self._next(copy, is_throttled=False)
            if end_offset is None:
                continue
            if copy.log_end_offset == end_offset:
                self.partition.log.require_online()
                copy.require_online()
                return
            await self._copy_some(copy, end_offset, is_last=True)

    async def _next(self, copy: PartitionLog, *, is_throttled: bool) -> int | None:
        """Bring the copy to where the log goes on, and tell where that ends; ``None`` to ask again.

        What it tells is so in the turn in which it is asked: then it has not waited for anything.
        """
        self._check()
        log, quota = self.partition.log, self._parts.quota
        wait_ms = quota.over_ms() if is_throttled else 0
        if log.is_truncating or self._parts.directories.free_space[self.target.path].is_low:
            wait_ms = _AGAIN_MS
        if wait_ms:
            await self._wait(wait_ms)
            return None
        cut = find_gap(copy, log)
        if not self._is_compared():
            cuts = log.cuts
            cut = find_cut(copy, log)
            if cut is None:
                self._cuts = cuts
        if cut is not None:
            await self._cut(copy, cut)
            return None
        if copy.log_start_offset < log.log_start_offset <= copy.log_end_offset:
            copy.advance_log_start(log.log_start_offset)
        copy.configure(log.config)
        return log.log_end_offset

    def _is_compared(self) -> bool:
        return self._cuts == self.partition.log.cuts

    async def _cut(self, copy: PartitionLog, cut: Cut) -> None:
        now_ms = self._parts.clocks.now_ms()
        truncate = self.target.truncate_fully if cut.is_whole else self.target.truncate
        await self._take_steps(truncate(copy, cut.offset, now_ms))

    async def _take_steps(self, steps: Steps) -> None:
        for step in steps:
            await self._parts.threads.run(step)

    async def _copy_some(self, copy: PartitionLog, end_offset: int, *, is_last: bool = False) -> None:
        """Copy the next piece of the log, which ends at ``end_offset``; at once where that is all, and little."""
        log, now_ms, cuts = self.partition.log, self._parts.clocks.now_ms(), self.partition.log.cuts
        offset = next_offset(copy, log)
        lease = log.read(offset, self._parts.piece_bytes) if offset < end_offset else None
        if lease is None:
            if copy.log_end_offset < end_offset:
                await self._parts.threads.run(partial(copy.skip_to, end_offset, now_ms))
            return
        with lease:
            base_offset = segment_base(log, offset)
            copy_piece = partial(copy_range, lease, base_offset, copy, lambda: log.cuts != cuts, now_ms)
            is_little = is_last and lease.size_bytes <= _AT_ONCE_BYTES and lease.is_cached()
            copied = copy_piece() if is_little else await self._parts.threads.compute(copy_piece)
        if copied.begins_at is not None:
            await self._cut(copy, Cut(copied.begins_at, is_whole=True))
        self._parts.quota.record(copied.size_bytes)
        self._parts.directories.free_space[self.target.path].take(copied.size_bytes)
        self._parts.counters.moved_log_bytes += copied.size_bytes

    # In the end

    async def _give_name(self, copy: PartitionLog) -> PartitionLog:
        """Everything that is in the copy is on disk with what checkpoints say of it; then it has the name."""
        assert self._future is not None, "it was made"
        threads = self._parts.threads
        await threads.run(partial(flush, copy))
        await self._write_checkpoints(copy)
        self._check()
        self.copy = self.target.logs.pop(self.key)
        self._future = await threads.run(partial(give_name, self._future, copy, self.source))
        self._check()
        return await self._open_copy(self._future)

    async def _write_checkpoints(self, copy: PartitionLog) -> None:
        """What the old directory's checkpoints tell moves with the log. What is too high is cut where it is read."""
        directories, target = self._parts.directories, self.target
        known = self.source.offset_checkpoints.cleaner_offsets
        if self.key in known:
            cleaned = {self.key: min(known[self.key], copy.segments.active.base_offset)}
            await directories.checkpoint(
                target, lambda: target.offset_checkpoints.of_cleaner_offsets(cleaned, target.logs)
            )
        high_watermark = {self.key: min(self.partition.high_watermark, copy.log_end_offset)}
        await directories.checkpoint(target, lambda: target.offset_checkpoints.of_high_watermarks(high_watermark))
        await directories.checkpoint(target, target.collect_log_starts)
        await directories.checkpoint(target, target.collect_recovery_points)

    def _go_on_in(self, copy: PartitionLog) -> Flusher:
        """In one turn of the loop: whatever is done with the partition from now on is done in its new directory."""
        partition, directories = self.partition, self._parts.directories
        copy.take_place_of(partition.log)
        directories.of[self.key] = self.target
        self.copy, self._has_moved = None, True
        flusher = Flusher(copy, self._parts.flushes.run, self._parts.partitions.due)
        partition.go_on_in(copy, flusher, directories.free_space[self.target.path])
        self.source.close_partition(*self.key, why=f"was moved to {self.target.path}")
        logger.info("%s was moved from %s to %s", copy.name, self.source.path, self.target.path)
        return flusher

    async def _flush(self, copy: PartitionLog, flusher: Flusher) -> None:
        """What came last is safe in the old directory, perhaps there alone: before it goes it is safe in the copy.

        Not if the partition goes away. If the broker stops, the next start finds both, and uses what reaches further.
        """
        while not self._is_dropped:
            flushed: asyncio.Future[StorageError | None] = asyncio.get_running_loop().create_future()
            flusher.flush_to(copy.log_end_offset, flushed.set_result)
            if await flushed is None:
                return
            # It failed, or the log was cut below that, or no descriptor was left.
            copy.require_online()
            if self._is_stopping:
                raise _Stopping
            await asyncio.sleep(_AGAIN_MS / 1000)

    async def _remove_source(self) -> None:
        """The old directory first: as long as it is there, the mark says which of the two is the copy."""
        parts, renamed = self._parts, dict[TopicPartition, str]()
        await parts.threads.run(partial(self.source.rename_deleted, [self.key], renamed))
        await parts.directories.forget(self.source, [self.key], Turns(parts.clocks))
        delay_ms = self.partition.log.config.file_delete_delay_ms
        parts.removal.remove_later(self.source, renamed.values(), delay_ms)
        try:
            await parts.threads.run(partial(forget_move, self.target, self.key))
        except OSError as error:
            raise self.target.fail(error) from error

    def _close_copy(self) -> None:
        copy, self.copy = self.copy, None
        if copy is not None:
            if self.target.logs.get(self.key) is copy:
                del self.target.logs[self.key]
            copy.close()
            copy.take_offline(f"{copy.name} is not copied any more")

    async def _discard(self) -> None:
        """What was copied goes; the partition stays where it is."""
        self._close_copy()
        if self._future is None or self.target.failure is not None:
            return
        parts = self._parts
        try:
            path = await parts.threads.run(partial(rename_discarded, self._future))
            if parts.directories.of.get(self.key) is not self.target:
                await parts.directories.forget(self.target, [self.key], Turns(parts.clocks))
        except StorageError as error:
            logger.error("the unfinished copy %s stays: %s", self._future.path, error)
            return
        parts.removal.remove_later(self.target, [path], 0)
        logger.info("%s is not moved to %s any more", self._name, self.target.path)
