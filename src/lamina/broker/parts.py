"""The parts of a broker: built from settings and storage, put together, started without a socket.

Owns which part gets which others, and the order of the start: what is stored is applied, producer ids begin above all
that logs speak of, then this broker registers and leads. Must not listen.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from random import getrandbits

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.cleaner.engine import engine_for
from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.internal_topics import InternalTopics
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import Counters
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.publisher import Publisher, settings_in
from lamina.broker.metadata.replicas import Replicas
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.removal import Removal
from lamina.broker.partitions.upkeep import Upkeep
from lamina.broker.readiness import Readiness
from lamina.broker.requests.api_table import HandlerParts, table
from lamina.broker.requests.fetch_sessions import FetchSessions
from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.requests.router import Router
from lamina.broker.requests.transaction_verification import TransactionVerification
from lamina.broker.threads import Threads
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.errors import StorageError
from lamina.image.image import Broker
from lamina.settings.broker import NODE_ID, NUM_RECOVERY_THREADS_PER_DATA_DIR
from lamina.settings.definition import SettingError
from lamina.settings.network import LAMINA_SLOW_REQUEST_MS, MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS
from lamina.settings.values import BrokerSettings
from lamina.storage import StartError, Storage
from lamina.store.producer_ids import ProducerIds

logger = logging.getLogger(__name__)

SESSION_EVICTION_MS = 120_000


@dataclass(slots=True)
class Parts:
    loop: asyncio.AbstractEventLoop
    clocks: Clocks
    storage: Storage
    threads: Threads
    counters: Counters
    readiness: Readiness
    directories: LogDirectories
    partitions: Partitions
    removal: Removal
    upkeep: Upkeep
    publisher: Publisher
    metadata: Metadata
    producer_ids: ProducerIdBlock
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    cleaner: Cleaner
    request_watch: RequestWatch
    kernel_loading: KernelLoading
    fetch_sessions: FetchSessions
    router: Router
    actual_values: dict[str, str]
    unknown: list[str] = field(default_factory=list)
    """Partition directories that the metadata does not know; they are left alone."""

    async def start(self, broker: Broker, opened: Callable[[int, int], None] | None = None) -> None:
        """Open the logs and take the roles that the metadata gives this broker. Raises :class:`StartError`."""

        def progress(done: int, total: int) -> None:
            self.readiness.opened(done, total)
            if opened is not None:
                opened(done, total)

        self.unknown = list((await self.metadata.start(progress)).unknown)
        if not self.directories.online:
            raise StartError(f"no log directory can be used: {self.directories[0].failure}")
        logs = {(partition.topic, partition.index): partition.log for partition in self.partitions}
        self.producer_ids.start_above(max((log.producers.highest_id for log in logs.values()), default=-1))
        for log in logs.values():
            if log.producers.invented_id is not None:
                logger.warning(
                    "%s: no broker gave producer id %d: it is not counted", log.name, log.producers.invented_id
                )
        await self.metadata.lead_alone(broker, {key: log.epochs.latest for key, log in logs.items()})

    async def stop(self) -> None:
        """End what works by itself, and answer whoever waits."""
        self.readiness.is_stopping = True
        await self.transactions.close()
        self.groups.runtime.close()
        await self.cleaner.stop()
        await self.kernel_loading.stop()
        self.partitions.release_all()

    async def close(self) -> list[str]:
        """Finish changes, flush and close the logs. Returns why the stop was not clean, if it was not."""
        await self.metadata.finish_changes()
        # While the directories are still locked.
        self.removal.stop()
        count = self.metadata.settings[NUM_RECOVERY_THREADS_PER_DATA_DIR]
        failures = []
        for directory in self.directories:
            try:
                if directory.failure is None:
                    directory.write_high_watermarks(self.upkeep.high_watermarks(directory))
                await self.threads.run(lambda d=directory: d.close(count))  # type: ignore[misc]
            except StorageError as error:
                failures.append(f"the stop was not clean: {error}")
        self.storage.database.close()
        self.threads.close()
        return failures


def build_parts(
    loop: asyncio.AbstractEventLoop,
    settings: BrokerSettings,
    storage: Storage,
    on_fatal: Callable[[str], None],
    clocks: Clocks = SYSTEM_CLOCKS,
) -> Parts:
    """``on_fatal`` is told why the broker cannot go on. Raises :class:`StartError` and closes the storage."""
    node_id, image = settings[NODE_ID], storage.metadata.image
    try:
        settings = settings_in(image, settings, node_id)
    except SettingError as error:
        storage.close()
        raise StartError(f"with what was set while the broker ran, {error}") from error
    threads, counters = Threads(loop, clocks), Counters()
    # One is enough: work that keeps the interpreter busy gains nothing by a second thread.
    message_thread = threads.separate("messages")
    directories, partitions = LogDirectories(storage.directories, threads), Partitions(counters)
    removal = Removal(loop, threads)
    replicas = Replicas(loop, clocks, threads, counters, directories, partitions, removal)
    publisher = Publisher(node_id, settings, threads, directories, partitions, replicas, removal)
    metadata = Metadata(node_id, storage.metadata, publisher, threads, counters, on_fatal)
    producer_ids = ProducerIdBlock(ProducerIds(storage.database), threads)
    internal_topics = InternalTopics(metadata, directories, clocks)
    groups = GroupCoordinator(metadata, internal_topics, partitions, counters, threads, clocks, loop)
    transactions = TransactionCoordinator(
        metadata, internal_topics, producer_ids, partitions, counters, threads, clocks, loop
    )
    cleaner = Cleaner(loop, clocks, threads, counters, metadata, directories, partitions, engine_for(settings))
    request_watch = RequestWatch(settings[LAMINA_SLOW_REQUEST_MS], clocks)
    kernel_loading = KernelLoading(loop, threads)
    fetch_sessions = FetchSessions(
        settings[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS], SESSION_EVICTION_MS, lambda: getrandbits(31)
    )
    actual_values: dict[str, str] = {}
    handlers = HandlerParts(
        loop=loop,
        clocks=clocks,
        threads=threads,
        message_thread=message_thread,
        counters=counters,
        directories=directories,
        partitions=partitions,
        metadata=metadata,
        groups=groups,
        transactions=transactions,
        producer_ids=producer_ids,
        cleaner=cleaner,
        fetch_sessions=fetch_sessions,
        kernel_loading=kernel_loading,
        verification=TransactionVerification(metadata, partitions, transactions, clocks, loop),
        actual_values=actual_values,
    )
    router = Router(table(handlers), counters, request_watch, message_thread)
    for listener in (groups, transactions, cleaner, request_watch):
        publisher.add_listener(listener)

    def went_offline(partition: Partition) -> None:
        """Nobody coordinates what lives in a log that is offline."""
        for coordinator in (groups, transactions):
            coordinator.partition_removed(partition.topic, partition.index)

    partitions.on_offline = went_offline
    return Parts(
        loop=loop,
        clocks=clocks,
        storage=storage,
        threads=threads,
        counters=counters,
        readiness=Readiness(),
        directories=directories,
        partitions=partitions,
        removal=removal,
        upkeep=Upkeep(clocks, threads, directories, partitions),
        publisher=publisher,
        metadata=metadata,
        producer_ids=producer_ids,
        groups=groups,
        transactions=transactions,
        cleaner=cleaner,
        request_watch=request_watch,
        kernel_loading=kernel_loading,
        fetch_sessions=fetch_sessions,
        router=router,
        actual_values=actual_values,
    )
