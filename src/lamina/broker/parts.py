"""The parts of a broker: built from settings and storage, put together, started without a socket.

Owns which part gets which others, and the order of the start: what is stored is applied, producer ids begin above all
that logs speak of, then this broker registers and leads. Must not listen.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from random import getrandbits
from typing import TYPE_CHECKING

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.cleaner.engine import engine_for
from lamina.broker.coordination.broker_batches import AskBroker, nobody_else
from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.internal_topics import InternalTopics
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import Counters
from lamina.broker.metadata.alone import Alone
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.publisher import Publisher, settings_in
from lamina.broker.metadata.replicas import Replicas
from lamina.broker.metadata.replication_throttles import ReplicationThrottles
from lamina.broker.metadata.topic_creation import NewTopic, create_topics
from lamina.broker.moving.moves import Moves
from lamina.broker.partitions.cluster import Cluster, Lease, OwnCluster
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.read_leases import ReadLeases
from lamina.broker.partitions.removal import Removal
from lamina.broker.partitions.upkeep import Upkeep
from lamina.broker.readiness import Readiness
from lamina.broker.requests.api_table import APIS, HandlerParts, table
from lamina.broker.requests.fetch_sessions import FetchSessions
from lamina.broker.requests.follower_waits import FollowerWaits
from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.requests.router import Router
from lamina.broker.requests.transaction_verification import TransactionVerification
from lamina.broker.threads import NewExecutor, Threads
from lamina.broker.turns import in_turns
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.controller.election import LogEnd
from lamina.errors import KafkaError, StorageError
from lamina.image.image import Broker
from lamina.image.topic import Topic
from lamina.log.directory import LogDirectory
from lamina.settings.broker import (
    BROKER_ID,
    LAMINA_READ_LEASES_MAX,
    NODE_ID,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
)
from lamina.settings.definition import SettingError
from lamina.settings.network import LAMINA_SLOW_REQUEST_MS, MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS
from lamina.settings.replication import REPLICA_LAG_TIME_MAX_MS
from lamina.settings.values import BrokerSettings
from lamina.storage import MemberStorage, StartError, Storage
from lamina.store.producer_ids import LastBlock, ProducerIds
from lamina.topic_partition import TopicPartition

if TYPE_CHECKING:
    from lamina.broker.cluster_parts import ClusterParts
    from lamina.broker.metadata.member import Member
    from lamina.broker.replication.replica_fetchers import ReplicaFetchers
    from lamina.peer.connector import Connector

logger = logging.getLogger(__name__)

_CLOSING_FACTOR = 8

SESSION_EVICTION_MS = 120_000


@dataclass(slots=True)
class Parts:
    loop: asyncio.AbstractEventLoop
    clocks: Clocks
    storage: Storage | MemberStorage
    threads: Threads
    counters: Counters
    readiness: Readiness
    directories: LogDirectories
    partitions: Partitions
    read_leases: ReadLeases
    removal: Removal
    upkeep: Upkeep
    publisher: Publisher
    participant: "Alone | Member"
    cluster: "ClusterParts | None"
    """Of a member of a cluster."""
    fetchers: "ReplicaFetchers | None"
    metadata: Metadata
    producer_ids: ProducerIdBlock
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verification: TransactionVerification
    cleaner: Cleaner
    moves: Moves
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

        self.unknown = list((await self.participant.start(broker, progress)).unknown)
        if not self.directories.online:
            raise StartError(f"no log directory can be used: {self.directories[0].failure}")
        highest_id, ends = -1, dict[TopicPartition, LogEnd]()
        async for partition in in_turns(list(self.partitions), self.clocks):
            log = partition.log
            if self.cluster is not None:
                self.cluster.check_leader_epoch(self.metadata.image, log)
            highest_id = max(highest_id, log.producers.highest_id)
            if log.producers.invented_id is not None:
                logger.warning(
                    "%s: no broker gave producer id %d: it is not counted", log.name, log.producers.invented_id
                )
            ends[partition.topic, partition.index] = LogEnd(log.epochs.latest, log.log_end_offset)
        self.producer_ids.start_above(highest_id)
        if self.cluster is not None:
            await self.producer_ids.fill()
        await self.participant.serve(ends)

    def watch_directories(self, on_none_left: Callable[[str], None]) -> None:
        """Have partitions go offline with their directory; ``on_none_left`` is told why the broker cannot go on."""

        def failed(directory: LogDirectory) -> None:
            self.loop.call_soon_threadsafe(took_offline, directory)

        def took_offline(directory: LogDirectory) -> None:
            self.partitions.directory_failed()
            if not self.directories.online:
                on_none_left(f"no log directory is left: {directory.failure}")

        for directory in self.directories:
            directory.on_failure = failed

    async def stop(self) -> None:
        """End what works by itself, and answer whoever waits."""
        self.readiness.is_stopping = True
        await self.verification.close()
        await self.transactions.close()
        self.groups.runtime.close()
        await self.cleaner.stop()
        await self.moves.stop()
        await self.kernel_loading.stop()
        if self.fetchers is not None:
            await self.fetchers.stop()
        await self.partitions.release_all(self.clocks)
        if self.cluster is not None:
            self.cluster.member.release_followers()

    async def close(self) -> list[str]:
        """Finish changes, flush and close the logs. Returns why the stop was not clean, if it was not."""
        await self.participant.finish_changes()
        if self.cluster is not None:
            await self.cluster.leave()
        # While the directories are still locked.
        await self.read_leases.close()
        self.removal.stop()
        failures = []
        await self.upkeep.note_high_watermarks()
        for directory in self.directories:
            try:
                await self._close(directory)
            except StorageError as error:
                failures.append(f"the stop was not clean: {error}")
        self.storage.database.close()
        self.threads.close()
        return failures

    async def _close(self, directory: LogDirectory) -> None:
        """Raises :class:`StorageError` where its disk fails; whatever happens, it is let go of."""
        count = closing_threads(self.metadata.settings[NUM_RECOVERY_THREADS_PER_DATA_DIR])
        # Else the next start would not tell that an unclean stop may have cost committed records.
        is_marked = self.cluster is None or not self.cluster.following.is_stop_unanswered
        epoch = None if self.cluster is None else self.cluster.member.broker_epoch
        try:
            if directory.failure is None:
                await self.upkeep.write_noted_high_watermarks(directory)
        finally:
            await self.threads.run(partial(directory.close, count, is_marked=is_marked, broker_epoch=epoch))


def closing_threads(recovery_threads: int) -> int:
    """Recovery computes; who closes logs waits for the disk, which syncs many files about as fast as one."""
    return 1 if recovery_threads == 1 else recovery_threads * _CLOSING_FACTOR


def build_parts(
    loop: asyncio.AbstractEventLoop,
    settings: BrokerSettings,
    storage: Storage | MemberStorage,
    on_fatal: Callable[[str], None],
    clocks: Clocks = SYSTEM_CLOCKS,
    new_executor: NewExecutor = ThreadPoolExecutor,
    ask_broker: AskBroker = nobody_else,
    connector_for: "Callable[[str], Connector] | None" = None,
    on_unregistered: Callable[[], None] = lambda: None,
) -> Parts:
    """``on_fatal`` is told why the broker cannot go on. Raises :class:`StartError` and closes the storage.

    ``on_unregistered`` is told when a member is one no more, and is to stop.
    A member reaches other brokers by the connectors of ``connector_for``, each for a client id.
    """
    node_id = storage.node_id
    if isinstance(storage, Storage):
        try:
            settings = settings_in(storage.metadata.image, settings, node_id)
        except SettingError as error:
            storage.close()
            raise StartError(f"with what was set while the broker ran, {error}") from error
    threads, counters = Threads(loop, clocks, new_executor=new_executor), Counters()
    # One is enough: work that keeps the interpreter busy gains nothing by a second thread.
    message_thread = threads.separate("messages")
    cluster = Cluster(node_id, settings[REPLICA_LAG_TIME_MAX_MS], _lease(storage, clocks))
    directories, partitions = LogDirectories(storage.directories, threads), Partitions(counters, cluster)
    removal = Removal(loop, threads)
    replicas = Replicas(loop, clocks, threads, counters, directories, partitions, removal, cluster)
    publisher = Publisher(settings, threads, directories, partitions, replicas, removal, cluster, clocks)
    member_parts: ClusterParts | None = None
    participant: Alone | Member
    ask_for_markers = ask_for_verification = ask_broker
    if isinstance(storage, MemberStorage):
        from lamina.broker.cluster_parts import build_cluster_parts

        member_parts = build_cluster_parts(
            loop,
            clocks,
            threads,
            settings,
            storage,
            cluster,
            partitions,
            publisher,
            counters,
            connector_for,
            on_fatal,
            on_unregistered,
        )
        participant = member_parts.member
        # A broker answers one connection in order, and markers only once they are committed.
        ask_for_markers = partial(member_parts.links.ask, lane="markers")
        ask_for_verification = partial(member_parts.links.ask, lane="verification")
        source = ProducerIds(storage.database, LastBlock(node_id))
    else:
        participant = Alone(node_id, storage.metadata, publisher, threads, counters, on_fatal)
        source = ProducerIds(storage.database)
    metadata = Metadata(node_id, publisher, participant)
    producer_ids = ProducerIdBlock(source, threads)
    read_leases = ReadLeases(
        clocks, threads, directories, partitions, most=lambda: metadata.settings[LAMINA_READ_LEASES_MAX]
    )

    async def create_here(topics: Sequence[NewTopic]) -> Mapping[str, Topic | KafkaError]:
        return await create_topics(metadata, directories, topics, message_thread, clocks)

    create = create_here if member_parts is None else member_parts.topic_requests(create_here).create
    internal_topics = InternalTopics(metadata, create, is_alone=member_parts is None)
    groups = GroupCoordinator(metadata, internal_topics, partitions, counters, threads, clocks, loop)
    transactions = TransactionCoordinator(
        metadata, internal_topics, producer_ids, partitions, ask_for_markers, counters, threads, clocks, loop
    )
    cleaner = Cleaner(loop, clocks, threads, counters, metadata, directories, partitions, engine_for(settings))
    moves = publisher.moves = Moves(settings, clocks, threads, counters, directories, partitions, removal, cleaner)
    request_watch = RequestWatch(settings[LAMINA_SLOW_REQUEST_MS], clocks)
    kernel_loading = KernelLoading(loop, threads)
    throttles = ReplicationThrottles(settings, counters.replication, clocks)
    fetch_sessions = FetchSessions(
        settings[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS],
        SESSION_EVICTION_MS,
        lambda: getrandbits(31),
        throttles.holds_back,
    )
    follower_waits = FollowerWaits(clocks)
    verification = TransactionVerification(metadata, partitions, transactions, ask_for_verification, clocks, loop)
    # That of a member may be one that ZooKeeper gave.
    actual_values = dict.fromkeys((NODE_ID.name, BROKER_ID.name), str(node_id)) if member_parts is not None else {}
    handlers = HandlerParts(
        loop=loop,
        clocks=clocks,
        threads=threads,
        message_thread=message_thread,
        counters=counters,
        directories=directories,
        partitions=partitions,
        read_leases=read_leases,
        metadata=metadata,
        groups=groups,
        transactions=transactions,
        producer_ids=producer_ids,
        cleaner=cleaner,
        moves=moves,
        fetch_sessions=fetch_sessions,
        follower_waits=follower_waits,
        throttles=throttles,
        kernel_loading=kernel_loading,
        verification=verification,
        actual_values=actual_values,
        create_topics=create,
        broker_listener=None if member_parts is None else member_parts.listener_name,
        apis_on=(lambda _: APIS) if member_parts is None else member_parts.apis_on,
    )
    router = (
        Router(table(handlers), counters, request_watch, message_thread)
        if member_parts is None
        else member_parts.router(handlers, request_watch)
    )
    fetchers: ReplicaFetchers | None = None
    if member_parts is not None:
        publisher.truncations = member_parts.truncations(directories, cleaner)
        fetchers = member_parts.fetchers(settings, publisher.truncations, throttles)
        publisher.add_listener(fetchers)
    for listener in (throttles, groups, transactions, cleaner, moves, request_watch, follower_waits):
        publisher.add_listener(listener)

    def went_offline(partition: Partition) -> None:
        """Nobody coordinates what lives in a log that is offline, nor copies to it."""
        for coordinator in (groups, transactions):
            coordinator.partition_removed(partition.topic, partition.index)
        if fetchers is not None and member_parts is not None:
            fetchers.partition_offline(partition)
            member_parts.member.tell()

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
        read_leases=read_leases,
        removal=removal,
        upkeep=Upkeep(clocks, threads, directories, partitions),
        publisher=publisher,
        participant=participant,
        cluster=member_parts,
        fetchers=fetchers,
        metadata=metadata,
        producer_ids=producer_ids,
        groups=groups,
        transactions=transactions,
        verification=verification,
        cleaner=cleaner,
        moves=moves,
        request_watch=request_watch,
        kernel_loading=kernel_loading,
        fetch_sessions=fetch_sessions,
        router=router,
        actual_values=actual_values,
    )


def _lease(storage: Storage | MemberStorage, clocks: Clocks) -> Lease:
    if not isinstance(storage, MemberStorage):
        return OwnCluster()
    from lamina.broker.cluster_parts import SessionLease

    return SessionLease(storage.database, clocks)
