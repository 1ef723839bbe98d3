"""What the handlers of this broker share: its settings, its metadata, its partitions, its clocks and threads.

Owns the order of metadata changes: one at a time, the store first, then the image, then what follows from it.
Must not know any API.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from random import getrandbits
from typing import Any

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.cleaner.engines import engine_for
from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.runtime import Runtime
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.publisher import Publisher
from lamina.broker.network.listening import Listening
from lamina.broker.partitions.free_space import DiskRoom
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.fetch_sessions import FetchSessions
from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.requests.router import Router
from lamina.broker.threads import Threads
from lamina.broker.waits import WAITS
from lamina.errors import KafkaError, PolicyViolation, StorageError
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import Topic
from lamina.log.directory import LogDirectory
from lamina.log.remembered import Checkpoints
from lamina.settings.log_config import LogConfig
from lamina.settings.network import (
    FETCH_MAX_BYTES,
    LAMINA_SLOW_REQUEST_MS,
    MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS,
)
from lamina.settings.topic_config import topic_config
from lamina.settings.values import BrokerSettings
from lamina.store.metadata import MetadataStore

logger = logging.getLogger(__name__)

SESSION_EVICTION_MS = 120_000


class Node:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        node_id: int,
        settings: BrokerSettings,
        directories: list[LogDirectory],
        store: MetadataStore,
        producer_ids: ProducerIdBlock,
        threads: Threads,
    ) -> None:
        self.loop = loop
        self.id = node_id
        self.settings = settings
        self.directories = directories
        self.rooms = {directory.path: DiskRoom(directory.path) for directory in directories}
        """How much room each log directory has, by its path."""
        self.threads = threads
        self.started_at_ms = self.now_ms()
        self.counters = Counters()
        self.request_watch = RequestWatch(settings[LAMINA_SLOW_REQUEST_MS])
        self.kernel_loading = KernelLoading(loop, threads)
        self.partitions = Partitions()
        self.producer_ids = producer_ids
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self)
        self.publisher = Publisher(self)
        self.cleaner = Cleaner(self, engine_for(settings))
        self.fetch_sessions = FetchSessions(
            settings[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS], SESSION_EVICTION_MS, lambda: getrandbits(31)
        )
        self.fetch_max_bytes = settings[FETCH_MAX_BYTES]
        self.encoded_topics: dict[str, tuple[Topic, dict[int, bytearray]]] = {}
        """Metadata answers by topic and version, good as long as the topic is the same object."""
        self.actual_values: dict[str, str] = {}
        """Settings whose values came about at start, by name: what clients are shown instead of what was given."""
        self.router: Router | None = None
        self.listening: Listening | None = None
        self.is_stopping = False
        self.complained_of: set[str] = set()
        """Internal topics that cannot be made: it is said once."""
        self.on_fatal: Callable[[str], None] | None = None
        """Told why the broker cannot go on."""
        self.on_settings: Callable[[BrokerSettings], None] | None = None
        """Told the settings that hold from now on, when some change while the broker runs."""
        self.image = store.image
        """What clients are told: a topic is in it once it can be written to, and no longer when it is to go."""
        self._store = store
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[Image]] = set()
        self._checkpointing = asyncio.Lock()

    # Clocks

    def now_ms(self) -> int:
        """Wall time: what records, retention and horizons go by."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Time that never goes back: what sessions and timeouts go by."""
        return time.monotonic_ns() // 1_000_000

    # Metadata

    @property
    def decided(self) -> Image:
        """The metadata as it is stored; ``image`` follows once this broker serves what is new in it."""
        return self._store.image

    def config_of(self, topic: str) -> LogConfig:
        return topic_config(self.settings, self.decided.configs_of(ConfigResource(ResourceType.TOPIC, topic)))

    async def change(self, change: Callable[[Image], Image]) -> Image:
        """Make a metadata change durable and do what follows from it. Returns the image after it.

        ``change`` sees the image as it is when its turn comes, and may raise the error to answer. What has begun
        is finished, even if whoever asked for it goes away meanwhile.
        """
        task = self.loop.create_task(self._change_in_turn(change))
        self._changes.add(task)
        task.add_done_callback(self._changed)
        return await asyncio.shield(task)

    def _changed(self, task: "asyncio.Task[Image]") -> None:
        self._changes.discard(task)
        if not task.cancelled():
            # Asked for, so that an error nobody waits for any more is not complained of.
            task.exception()

    async def finish_changes(self) -> None:
        """Wait until every change that has begun is done."""
        await asyncio.gather(*self._changes, return_exceptions=True)

    async def _change_in_turn(self, change: Callable[[Image], Image]) -> Image:
        async with self._changing:
            return await self._change(change)

    async def _change(self, change: Callable[[Image], Image]) -> Image:
        image = change(self._store.image)
        try:
            changes = await self.threads.run(lambda: self._store.save(image))
            if not changes.topics_created and not changes.partitions_added:
                self.image = image
            if changes:
                await self.publisher.publish(changes, self._change)
        except KafkaError:
            raise
        except Exception as error:
            logger.critical("a metadata change failed", exc_info=error)
            self.count_unexpected(Place.METADATA)
            self.fatal(f"a metadata change failed: {error}")
            raise
        self.image = self._store.image
        return self.image

    # Partitions

    def check_room(self) -> None:
        """Raise if there is no log directory with room for more partitions."""
        rooms = [self.rooms[directory.path] for directory in self.directories if directory.failure is None]
        if rooms and all(room.is_low for room in rooms):
            raise PolicyViolation(rooms[0].sentence)

    async def flushed(self, partitions: Iterable[Partition]) -> dict[tuple[str, int], KafkaError]:
        """Wait until what these partitions hold now is on disk. Returns the errors of those that failed."""
        waiting: list[Awaitable[None]] = []
        failed: dict[tuple[str, int], KafkaError] = {}
        for partition in partitions:
            future: asyncio.Future[None] = self.loop.create_future()

            def done(
                error: StorageError | None, future: "asyncio.Future[None]" = future, of: Partition = partition
            ) -> None:
                if error is not None:
                    failed[of.topic, of.index] = error
                if not future.done():
                    future.set_result(None)

            partition.flush(done)
            waiting.append(future)
        began_ns = time.perf_counter_ns()
        for future_of_one in waiting:
            await future_of_one
        waits = WAITS.get()
        if waits is not None:
            waits.threads_ns += time.perf_counter_ns() - began_ns
        return failed

    def run_flush(self, work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
        """Flush on a thread, and count how long that took."""
        took_ns = 0
        fault: Exception | None = None

        def timed() -> None:
            nonlocal took_ns, fault
            began_ns = time.perf_counter_ns()
            try:
                work()
            except Exception as error:
                fault = None if isinstance(error, OSError) else error
                raise
            finally:
                took_ns = time.perf_counter_ns() - began_ns

        def counted(error: OSError | None) -> None:
            self.counters.flushes.observe(took_ns)
            if fault is not None:
                logger.error("a flush failed", exc_info=fault)
                self.count_unexpected(Place.PARTITION)
            done(error)

        self.threads.run_then(timed, counted)

    async def checkpoint(self, directory: LogDirectory, collect: Callable[[], Checkpoints]) -> None:
        """Write checkpoints of a directory as they are when its turn comes: an older one never overtakes a newer."""
        async with self._checkpointing:
            changed = collect()
            await self.threads.run(lambda: directory.write_checkpoints(changed))

    def partition_failed(self, topic: str, index: int, error: Exception) -> None:
        """An unexpected exception while a partition was written or read: it goes offline, the rest goes on."""
        self.count_unexpected(Place.PARTITION)
        logger.error("%s-%d goes offline", topic, index, exc_info=error)
        partition = self.partitions.find(topic, index)
        if partition is not None and partition.log.failure is None:
            partition.log.failure = f"{topic}-{index} is offline: {error!r}"
            self.log_failed(partition)

    def log_failed(self, partition: Partition) -> None:
        """Nobody coordinates what lives in a log that is offline."""
        runtime = self.runtime_of(partition.topic)
        if runtime is not None:
            runtime.resign(partition.index)

    def runtime_of(self, topic: str) -> Runtime[Any, Any] | None:
        """What lives in an internal topic."""
        return next((one.runtime for one in (self.groups, self.transactions) if one.runtime.topic == topic), None)

    def count_unexpected(self, place: Place) -> None:
        """Our own code failed where nobody expected it."""
        self.counters.unexpected[place] += 1

    @property
    def unexpected_errors(self) -> int:
        return self.counters.unexpected.total()

    def fatal(self, reason: str) -> None:
        if self.on_fatal is not None:
            self.on_fatal(reason)
