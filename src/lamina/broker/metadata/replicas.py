"""The replicas of this broker on its disks: opened, made, deleted.

Owns the steps, and which of them wait for the disk on threads; all else is a turn of the loop. However many partitions
a topic has, the steps wait for the disk a fixed number of times. What cannot be used is
offline and says why. Must not know why a replica comes or goes: the publisher does.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from uuid import UUID

from lamina.broker.counters import Counters
from lamina.broker.metadata.found_partitions import FoundPartitions
from lamina.broker.partitions.cluster import Cluster
from lamina.broker.partitions.flushes import Flushes
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.removal import Removal
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns, in_turns
from lamina.clocks import Clocks
from lamina.errors import StorageError
from lamina.image.topic import Topic
from lamina.log.copies import Opened, forget_move, is_interrupted_move, open_furthest
from lamina.log.directory import LogDirectory
from lamina.log.flushing import Flusher, begin_flush
from lamina.log.names import partition_directory
from lamina.log.partition_log import PartitionLog
from lamina.settings.broker import (
    LAMINA_DECOMPRESSED_BATCH_MAX_BYTES,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
    PRODUCER_ID_EXPIRATION_MS,
)
from lamina.settings.log_config import LogConfig
from lamina.settings.values import BrokerSettings
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

Replica = tuple[Topic, int]
"""A topic and the index of a partition of it that this broker keeps."""

Going = Callable[[str, int], Awaitable[None]]
"""Awaited for each replica that goes, in the turn that closes it."""


class Replicas:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        threads: Threads,
        counters: Counters,
        directories: LogDirectories,
        partitions: Partitions,
        removal: Removal,
        cluster: Cluster,
    ) -> None:
        self._removal = removal
        self._cluster = cluster
        self._loop = loop
        self._clocks = clocks
        self._threads = threads
        self._counters = counters
        self._directories = directories
        self._partitions = partitions
        self._flushes = Flushes(threads, counters, clocks)
        self._waiting: dict[TopicPartition, Replica] = {}
        """New ones for which no descriptors were left. ``make_waiting`` tries them again."""

    # Opening what is there

    async def open(
        self,
        found: FoundPartitions,
        replicas: Sequence[Replica],
        config_of: Callable[[str], LogConfig],
        settings: BrokerSettings,
        opened: Callable[[int, int], None] | None,
    ) -> list[Replica]:
        """Open and recover the replicas that were found, several of each directory at a time.

        Returns those that were not found. ``opened`` is told after each how many of how many are open.
        """
        here = [(topic, index) for topic, index in replicas if (topic.name, index) in found.places]
        self._directories.of.update({(topic.name, index): found.places[topic.name, index] for topic, index in here})
        done = 0

        async def open_in_turn(waiting: Iterator[Replica], pool: Threads) -> None:
            nonlocal done
            for topic, index in waiting:
                copies = found.copies.get((topic.name, index), ())
                await self._open_one(topic, index, copies, config_of(topic.name), settings, pool)
                done += 1
                if opened is not None:
                    opened(done, len(here))

        count = settings[NUM_RECOVERY_THREADS_PER_DATA_DIR]
        by_path: defaultdict[str, list[Replica]] = defaultdict(list)
        for topic, index in here:
            by_path[self._directories.of[topic.name, index].path].append((topic, index))
        pools = [self._threads.more(count) for _ in by_path]
        try:
            opening = []
            for replicas_there, pool in zip(by_path.values(), pools, strict=True):
                waiting = iter(replicas_there)
                # One more than there are threads: none of them waits for the loop.
                opening += [open_in_turn(waiting, pool) for _ in range(count + 1)]
            await asyncio.gather(*opening)
        finally:
            for pool in pools:
                pool.close()
        return [(topic, index) for topic, index in replicas if (topic.name, index) not in found.places]

    async def _open_one(
        self,
        topic: Topic,
        index: int,
        copies: Sequence[LogDirectory],
        config: LogConfig,
        settings: BrokerSettings,
        pool: Threads,
    ) -> None:
        """It is served, or it is offline and says why. ``copies`` are the directories of one that is in several."""
        key, now_ms, expiration_ms = (topic.name, index), self._clocks.now_ms(), settings[PRODUCER_ID_EXPIRATION_MS]
        directory = self._directories.of[key]
        if directory.failure is not None:
            self.take_offline(topic, index, directory.failure)
            return
        try:
            if copies:
                log = await self._open_copy(pool, copies, key, config, now_ms, expiration_ms)
            else:
                log = await pool.run(lambda: directory.open_log(*key, config, now_ms, expiration_ms))
            self._serve(self._directories.of[key].adopt(log), topic, settings)
        except StorageError as error:
            self.take_offline(topic, index, str(error))

    async def _open_copy(
        self,
        pool: Threads,
        copies: Sequence[LogDirectory],
        key: TopicPartition,
        config: LogConfig,
        now_ms: int,
        expiration_ms: int,
    ) -> PartitionLog:
        """Open the copy that reaches furthest, and have the others out of the way."""

        going: list[tuple[LogDirectory, dict[TopicPartition, str]]] = []

        def open_one() -> Opened:
            opened = open_furthest(copies, key, config, now_ms, expiration_ms)
            for other in opened.others:
                if is_interrupted_move(key, opened.directory, other):
                    going.append((other, {}))
                    other.rename_deleted([key], going[-1][1])
                else:
                    other.set_aside(*key)
            try:
                forget_move(opened.directory, key)
            except OSError as error:
                raise opened.directory.fail(error) from error
            return opened

        opened = await pool.run(open_one)
        self._directories.of[key] = opened.directory
        for other in opened.others:
            await self._directories.forget(other, [key], Turns(self._clocks))
        for other, renamed in going:
            self._removal.remove_later(other, renamed.values(), 0)
        return opened.log

    def _serve(self, log: PartitionLog, topic: Topic, settings: BrokerSettings) -> Partition:
        partition = Partition(
            log,
            UUID(bytes=topic.id),
            Flusher(log, self._flushes.run, self._partitions.due),
            settings[LAMINA_DECOMPRESSED_BATCH_MAX_BYTES],
            self._counters.topic(topic.name),
            self._directories.free_space_of((log.topic, log.partition)),
            self._cluster,
            self._clocks,
        )
        self._partitions.add(partition)
        return partition

    def take_offline(self, topic: Topic, index: int, reason: str, *, is_told: bool = False) -> None:
        """Have a partition answer with a storage error: it should be here and cannot be used.

        ``is_told``: the caller logs why, in one line for many.
        """
        sentence = f"{topic.name}-{index} cannot be used: {reason}"
        logger.log(logging.DEBUG if is_told else logging.ERROR, "%s", sentence)
        self._partitions.add_missing(topic.name, index, UUID(bytes=topic.id), sentence)

    # Making

    async def make(
        self, wanted: Sequence[Replica], config_of: Callable[[str], LogConfig], settings: BrokerSettings
    ) -> list[TopicPartition]:
        """Make new replicas. Returns those that were made.

        Those of a directory that fails meanwhile go to another one. When none is left they are offline, and the next
        start makes them. Those that find no descriptors wait for ``make_waiting``.
        """
        made: list[TopicPartition] = []
        while wanted and (directories := self._directories.places_for([(topic.name, one) for topic, one in wanted])):
            placed = list(zip(wanted, directories, strict=True))
            left: list[Replica] = []
            for directory in {id(directory): directory for directory in directories}.values():
                mine = [replica for replica, other in placed if other is directory]
                if await self._make_in(directory, mine, config_of, settings):
                    made += [(topic.name, index) for topic, index in mine]
                elif directory.failure is not None:
                    left += mine
            wanted = left
        for topic, index in wanted:
            self.take_offline(topic, index, "no log directory can take it now; it is made at the next start")
        return made

    async def make_waiting(
        self, config_of: Callable[[str], LogConfig], settings: BrokerSettings
    ) -> list[TopicPartition]:
        """Try again those that found no descriptors, one by one, until one still finds none. Returns what was made."""
        made: list[TopicPartition] = []
        for key, replica in list(self._waiting.items()):
            directory = self._directories.of[key]
            if directory.failure is None and await self._make_in(directory, [replica], config_of, settings):
                made.append(key)
            elif directory.failure is None:
                break
            else:
                del self._waiting[key]
                self._directories.of.pop(key, None)
                made += await self.make([replica], config_of, settings)
        return made

    async def _make_in(
        self,
        directory: LogDirectory,
        wanted: list[Replica],
        config_of: Callable[[str], LogConfig],
        settings: BrokerSettings,
    ) -> bool:
        """Make and open the new logs on a thread. False if the disk failed before, or if they have to wait."""
        turns = Turns(self._clocks)
        keys = [(topic.name, index) for topic, index in wanted]
        configs: dict[str, LogConfig] = {}
        for name in {topic.name for topic, _ in wanted}:
            configs[name] = config_of(name)
            await turns.step()
        now_ms = self._clocks.now_ms()
        self._directories.of |= dict.fromkeys(keys, directory)
        try:
            await self._directories.forget(directory, keys, turns)
            logs = await self._threads.run(lambda: _make_files(directory, wanted, configs, now_ms))
        except StorageError as error:
            if directory.failure is None:
                self._wait(wanted, error)
            else:
                logger.error("%d partitions were not made: %s", len(keys), error)
                for key in keys:
                    del self._directories.of[key]
            return False
        for log in logs:
            self._waiting.pop((log.topic, log.partition), None)
            self._directories.asked.pop((log.topic, log.partition), None)
            directory.adopt(log)
            await turns.step()
        try:
            await self._directories.checkpoint(directory, directory.collect_recovery_points)
        except StorageError as error:
            # They may be in the checkpoint, which tells the next start where they are: no second place for them.
            logger.error("%d partitions are offline: %s", len(keys), error)
        for log, (topic, _) in zip(logs, wanted, strict=True):
            self._serve(log, topic, settings)
            await turns.step()
        return True

    def _wait(self, wanted: list[Replica], error: StorageError) -> None:
        """They stay in the directory where they were begun."""
        if any((topic.name, index) not in self._waiting for topic, index in wanted):
            logger.error("%d new partitions cannot be opened for now and are tried again: %s", len(wanted), error)
        for topic, index in wanted:
            self._waiting[topic.name, index] = (topic, index)
            reason = f"{topic.name}-{index} cannot be opened for now and is tried again: {error}"
            self._partitions.add_missing(topic.name, index, UUID(bytes=topic.id), reason)

    # Deleting

    async def delete(
        self, topics: Sequence[Topic], config_of: Callable[[str], LogConfig], going: Going
    ) -> list[tuple[TopicPartition, bytes]]:
        """Take the replicas of deleted topics out of service and off the disk.

        Returns those, with the topic's id, of which a failed directory may still have something.
        """
        replicas = _every_replica(topics)
        here = [
            (topic, index)
            async for topic, index in in_turns(replicas, self._clocks)
            if self._partitions.is_known(topic.name, index)
        ]
        gone = frozenset(await self._delete(replicas, config_of, going))
        await self._forget_topics(topics)
        if self._directories.are_all_online:
            return []
        return [((topic.name, index), topic.id) for topic, index in here if (topic.name, index) not in gone]

    async def retire(
        self, replicas: Sequence[Replica], config_of: Callable[[str], LogConfig], going: Going
    ) -> list[TopicPartition]:
        """Take replicas out of service and off the disk that others keep from now on. Returns those that are gone.

        What is in a directory that has failed stays there: the next start removes it.
        """
        gone = await self._delete(replicas, config_of, going)
        names = {topic.name: topic for topic, _ in replicas}
        await self._forget_topics([topic for topic in names.values() if not self.has_any(topic)])
        return gone

    def has_any(self, topic: Topic) -> bool:
        """Whether any partition of a topic is in service here, or should be."""
        return any(self._partitions.is_known(topic.name, index) for index in range(len(topic.partitions)))

    async def _delete(
        self, replicas: Sequence[Replica], config_of: Callable[[str], LogConfig], going: Going
    ) -> list[TopicPartition]:
        """In turns of the loop. All directories are renamed together, with one sync for each log directory.

        They are removed later.
        """
        closed: dict[str, list[TopicPartition]] = {}
        delays_ms: dict[str, int] = {}
        turns = Turns(self._clocks)
        for name in dict.fromkeys(topic.name for topic, _ in replicas):
            delays_ms[name] = config_of(name).file_delete_delay_ms
            await turns.step()
        await self._close_all(replicas, going, closed)
        gone: list[TopicPartition] = []
        for directory in self._directories:
            keys = closed.get(directory.path)
            if keys and await self._remove_files(directory, keys, delays_ms):
                gone += keys
        return gone

    async def set_aside(self, topics: Sequence[Topic], going: Going) -> None:
        """Take replicas out of service whose topics are unknown from now on. Their directories stay as they are."""
        flushes = [(log, begin_flush(log, log.log_end_offset)) for log in self._logs_of(topics)]
        closed: dict[str, list[TopicPartition]] = {}
        await self._close_all(_every_replica(topics), going, closed)
        for log, flush in flushes:
            try:
                if flush is not None:
                    # A mark of a clean stop would speak of them too.
                    await self._threads.run(flush.run)
            except OSError as error:
                log.fail(error)
        for topic in topics:
            paths = [
                f"{path}/{partition_directory(*key)}"
                for path, keys in closed.items()
                for key in keys
                if key[0] == topic.name
            ]
            logger.error(
                "topic %s is gone from the metadata and its deletion is not recorded there: %s are kept, and nobody "
                "uses them",
                topic.name,
                ", ".join(paths) or "its directories",
            )
        await self._forget_topics(topics)

    def _logs_of(self, topics: Iterable[Topic]) -> Iterator[PartitionLog]:
        for topic in topics:
            for index in range(len(topic.partitions)):
                partition = self._partitions.find(topic.name, index)
                if partition is not None:
                    yield partition.log

    async def _close_all(
        self, replicas: Iterable[Replica], going: Going, closed: dict[str, list[TopicPartition]]
    ) -> None:
        """``closed`` is told what was here, by the directory."""
        turns = Turns(self._clocks)
        for topic, index in replicas:
            await going(topic.name, index)
            self._close(topic, index, closed)
            await turns.step()

    async def _forget_topics(self, topics: Sequence[Topic]) -> None:
        turns = Turns(self._clocks)
        for topic in topics:
            self._partitions.forget_topic(UUID(bytes=topic.id))
            self._counters.forget_topic(topic.name)
            await turns.step()

    async def delete_directories(self, directory: LogDirectory, keys: list[TopicPartition]) -> bool:
        """Take partitions off the disk that were never in service since the start. Returns whether they are gone."""
        return await self._remove_files(directory, keys, dict.fromkeys((name for name, _ in keys), 0))

    def _close(self, topic: Topic, index: int, closed: dict[str, list[TopicPartition]]) -> None:
        key = (topic.name, index)
        self._waiting.pop(key, None)
        partition = self._partitions.remove(*key)
        if partition is not None:
            partition.release_all()
        directory = self._directories.of.pop(key, None)
        if directory is not None and directory.failure is None:
            directory.close_partition(*key)
            closed.setdefault(directory.path, []).append(key)

    async def _remove_files(
        self, directory: LogDirectory, keys: list[TopicPartition], delays_ms: Mapping[str, int]
    ) -> bool:
        """Returns whether they are gone."""
        renamed: dict[TopicPartition, str] = {}
        is_synced = True
        try:
            await self._threads.run(partial(directory.rename_deleted, keys, renamed))
        except StorageError as error:
            if directory.failure is not None:
                # As where it had failed before: the topic goes, and the next start removes what has its new name.
                logger.error("%d partitions are not removed from the disk: %s", len(keys), error)
                return False
            is_synced = False
        try:
            await self._directories.forget(directory, keys, Turns(self._clocks))
        except StorageError as error:
            logger.error("the checkpoints of %s still have deleted partitions: %s", directory.path, error)
        by_delay: defaultdict[int, list[str]] = defaultdict(list)
        for (name, _), path in renamed.items():
            by_delay[delays_ms[name]].append(path)
        for delay_ms, paths in by_delay.items():
            self._removal.remove_later(directory, paths, delay_ms, is_synced=is_synced)
        return True


def _every_replica(topics: Iterable[Topic]) -> list[Replica]:
    return [(topic, index) for topic in topics for index in range(len(topic.partitions))]


def _make_files(
    directory: LogDirectory, wanted: list[Replica], configs: Mapping[str, LogConfig], now_ms: int
) -> list[PartitionLog]:
    directory.make_partitions((topic.name, index, topic.id) for topic, index in wanted)
    return directory.open_made(((topic.name, index, configs[topic.name]) for topic, index in wanted), now_ms)
