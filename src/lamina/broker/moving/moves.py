"""Which partitions of this broker move to other log directories (AlterReplicaLogDirs, R70).

Owns the moves that are under way, and that a partition has one at most: another target ends the one before, its own
directory ends it for good. The next start of the broker goes on with what it finds. Must not know how a log is copied.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.partitions.flushes import Flushes
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.quota import Quota
from lamina.broker.partitions.removal import Removal
from lamina.broker.partitions.truncations import CleaningPauses
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.errors import InvalidTopic, NotLeaderOrFollower, ReplicaNotAvailable, StorageError
from lamina.log.directory import LogDirectory
from lamina.log.future_logs import FutureLog
from lamina.log.names import may_have_future
from lamina.settings.broker import PRODUCER_ID_EXPIRATION_MS
from lamina.settings.replication import (
    ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM,
    ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS,
    NUM_REPLICA_ALTER_LOG_DIRS_THREADS,
    REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND,
    REPLICA_FETCH_MAX_BYTES,
)
from lamina.settings.values import BrokerSettings
from lamina.topic_partition import TopicPartition

if TYPE_CHECKING:
    from lamina.broker.moving.partition_move import FutureState, MovingParts, PartitionMove

logger = logging.getLogger(__name__)


class Moves(MetadataListener):
    def __init__(
        self,
        settings: BrokerSettings,
        clocks: Clocks,
        threads: Threads,
        counters: Counters,
        directories: LogDirectories,
        partitions: Partitions,
        removal: Removal,
        cleaning: CleaningPauses,
    ) -> None:
        self._settings = settings
        self._clocks = clocks
        self._threads = threads
        self._counters = counters
        self._directories = directories
        self._partitions = partitions
        self._removal = removal
        self._cleaning = cleaning
        self._quota = Quota(
            settings[ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM],
            settings[ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS] * 1000,
            clocks,
            settings[REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND],
        )
        self._parts: MovingParts | None = None
        """Made, and the code of moves loaded, with the first move: most brokers have none."""
        self._moves: dict[TopicPartition, PartitionMove] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._deciding = asyncio.Lock()
        self._is_stopping = False

    def settings_changed(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._quota.bytes_per_second = settings[REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND]

    def futures_in(self, directory: LogDirectory) -> "dict[TopicPartition, FutureState]":
        """What moves have copied to a directory so far."""
        moves = (move for move in self._moves.values() if move.target is directory)
        return {move.key: future for move in moves if (future := move.future) is not None}

    @property
    def under_way(self) -> int:
        return len(self._moves)

    @property
    def max_lag(self) -> int:
        """How many offsets a copy is behind its log, the most of all."""
        futures = (move.future for move in self._moves.values())
        return max((future.offset_lag for future in futures if future is not None), default=0)

    async def move(self, topic: str, index: int, path: str) -> None:
        """Begin to move a partition to the log directory of that path; to its own one ends the move that is under way.

        Raises Kafka's errors: LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR while any directory is offline, and
        REPLICA_NOT_AVAILABLE for a partition of other brokers, which comes to that directory if it ever comes here.
        """
        if not may_have_future(topic, index):
            raise InvalidTopic(f"the name {topic} is too long for a partition that moves to another log directory")
        target, key = self._directories.at(path), (topic, index)
        if target.failure is not None:
            raise StorageError(target.failure)
        async with self._deciding:
            before = self._moves.get(key)
            if before is not None and before.target is not target:
                await self._end(before)
            try:
                partition = self._partitions.get(topic, index)
            except NotLeaderOrFollower as error:
                self._directories.asked[key] = target
                raise ReplicaNotAvailable(str(error)) from None
            partition.check_online()
            if self._directories.of[key] is target or key in self._moves:
                return
            if not self._directories.are_all_online:
                raise StorageError(f"{topic}-{index} cannot be moved while a log directory of this broker is offline")
            self._begin(partition, target)

    async def drop(self, topic: str, index: int) -> None:
        """The partition goes away, and what was copied of it with it."""
        move = self._moves.get((topic, index))
        if move is not None:
            move.drop()
            await asyncio.wait((self._tasks[move.key],))

    def resume(self, futures: Sequence[FutureLog]) -> None:
        """Go on with what an earlier run has begun. A copy whose partition is not served stays as it is."""
        for future in futures:
            key, target = future.partition, future.directory
            partition = self._partitions.find(*key)
            if partition is None or target.failure is not None or self._directories.of[key] is target:
                logger.warning("%s stays as it is: %s-%d cannot be used", future.path, *key)
            else:
                self._begin(partition, target, future)

    async def stop(self) -> None:
        """Leave what is under way to the next start."""
        self._is_stopping = True
        for move in self._moves.values():
            move.stop()
        await asyncio.gather(*self._tasks.values())
        if self._parts is not None:
            self._parts.threads.close()

    # One move

    def _begin(self, partition: Partition, target: LogDirectory, found: FutureLog | None = None) -> None:
        from lamina.broker.moving.partition_move import PartitionMove

        move = PartitionMove(self._moving_parts(), partition, target, found)
        self._moves[move.key] = move
        self._directories.futures[move.key] = target
        if self._is_stopping:
            move.stop()
        self._tasks[move.key] = asyncio.get_running_loop().create_task(self._run(move))

    async def _run(self, move: "PartitionMove") -> None:
        try:
            await move.run()
        except Exception as error:
            self._counters.count_unexpected(Place.MOVE)
            logger.error("the move of %s-%d failed", *move.key, exc_info=error)
        finally:
            del self._moves[move.key], self._tasks[move.key], self._directories.futures[move.key]

    async def _end(self, move: "PartitionMove") -> None:
        move.cancel()
        await asyncio.wait((self._tasks[move.key],))

    def _moving_parts(self) -> "MovingParts":
        from lamina.broker.moving.partition_move import MovingParts

        if self._parts is None:
            count = self._settings.get(NUM_REPLICA_ALTER_LOG_DIRS_THREADS) or len(list(self._directories))
            self._parts = MovingParts(
                self._clocks,
                self._threads.more(count),
                self._directories,
                self._partitions,
                self._removal,
                self._cleaning,
                self._quota,
                Flushes(self._threads, self._counters, self._clocks),
                lambda: self._settings[PRODUCER_ID_EXPIRATION_MS],
                self._settings[REPLICA_FETCH_MAX_BYTES],
                self._counters,
            )
        return self._parts
