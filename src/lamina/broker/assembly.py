"""How the parts of a broker are put together, from its settings and its storage.

Owns which part gets which others. Must not start any.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import getrandbits
from typing import TYPE_CHECKING, NamedTuple

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.cleaner.engine import engine_for
from lamina.broker.coordination.broker_batches import AskBroker, nobody_else
from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.internal_topics import InternalTopics
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import Counters
from lamina.broker.ground import Ground, Logs
from lamina.broker.metadata.alone import Alone
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.publisher import Publisher, settings_in
from lamina.broker.metadata.replicas import Replicas
from lamina.broker.metadata.replication_throttles import ReplicationThrottles
from lamina.broker.metadata.topic_creation import CreateTopics, NewTopic, create_topics
from lamina.broker.moving.moves import Moves
from lamina.broker.partitions.cluster import Cluster, Lease, OwnCluster
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.read_leases import ReadLeases
from lamina.broker.partitions.removal import Removal
from lamina.broker.partitions.truncations import Truncations
from lamina.broker.partitions.upkeep import Upkeep
from lamina.broker.parts import Parts
from lamina.broker.readiness import Readiness
from lamina.broker.requests.api_table import APIS, HandlerParts, table
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.client_quotas import ClientQuotas
from lamina.broker.requests.fetch_sessions import FetchSessions
from lamina.broker.requests.follower_waits import FollowerWaits
from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.requests.router import Router
from lamina.broker.requests.transaction_verification import TransactionVerification
from lamina.broker.threads import NewExecutor, Threads
from lamina.clocks import Clocks
from lamina.errors import KafkaError
from lamina.image.topic import Topic
from lamina.security.access_index import AccessIndex
from lamina.settings.authorization import (
    ALLOW_EVERYONE_IF_NO_ACL_FOUND,
    AUTHORIZER_CLASS_NAME,
    SUPER_USERS,
    principals,
)
from lamina.settings.broker import (
    BROKER_ID,
    LAMINA_READ_LEASES_MAX,
    NODE_ID,
)
from lamina.settings.definition import SettingError
from lamina.settings.inter_broker_login import broker_principals
from lamina.settings.network import LAMINA_SLOW_REQUEST_MS, MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS
from lamina.settings.replication import REPLICA_LAG_TIME_MAX_MS
from lamina.settings.values import BrokerSettings
from lamina.storage import MemberStorage, StartError, Storage
from lamina.store.producer_ids import LastBlock, ProducerIds

if TYPE_CHECKING:
    from lamina.broker.member_parts import MemberParts
    from lamina.broker.metadata.member import Member
    from lamina.broker.replication.replica_fetchers import ReplicaFetchers
    from lamina.peer.connector import Connector

_SESSION_EVICTION_MS = 120_000


def build_parts(
    loop: asyncio.AbstractEventLoop,
    settings: BrokerSettings,
    storage: Storage | MemberStorage,
    on_fatal: Callable[[str], None],
    clocks: Clocks,
    new_executor: NewExecutor = ThreadPoolExecutor,
    ask_broker: AskBroker = nobody_else,
    connector_for: "Callable[[str], Connector] | None" = None,
    on_unregistered: Callable[[], None] = lambda: None,
) -> Parts:
    """``on_fatal`` is told why the broker cannot go on. Raises :class:`StartError` and closes the storage.

    ``on_unregistered`` is told when a member is one no more, and is to stop.
    A member reaches other brokers by the connectors of ``connector_for``, each for a client id.
    """
    settings = _settings_of(storage, settings)
    threads = Threads(loop, clocks, new_executor=new_executor)
    # One is enough: work that keeps the interpreter busy gains nothing by a second thread.
    ground = Ground(loop, clocks, threads, threads.separate("messages"), Counters(), Readiness(), settings)
    logs = _build_logs(ground, storage)
    if isinstance(storage, MemberStorage):
        deciding = _build_member(ground, logs, storage, connector_for, on_fatal, on_unregistered)
    else:
        deciding = _build_alone(ground, logs, storage, ask_broker, on_fatal)
    member_parts, publisher = deciding.member_parts, logs.publisher
    participant = deciding.participant
    publisher.decided = lambda: participant.decided
    metadata = Metadata(storage.node_id, publisher, participant)
    coordination = _build_coordination(ground, logs, deciding, metadata)
    authorizer = _build_authorizer(ground, logs)
    # That of a member may be one that ZooKeeper gave.
    own_id = dict.fromkeys((NODE_ID.name, BROKER_ID.name), str(storage.node_id))
    actual_values = {} if member_parts is None else own_id
    handlers = _build_handlers(ground, logs, deciding, metadata, coordination, authorizer, actual_values)
    request_watch = RequestWatch(settings[LAMINA_SLOW_REQUEST_MS], clocks)
    fetchers: ReplicaFetchers | None = None
    if member_parts is not None:
        fetchers = member_parts.fetchers(handlers.throttles)
    _add_listeners(logs, member_parts, fetchers, coordination, handlers, request_watch)
    return Parts(
        loop=loop,
        clocks=clocks,
        storage=storage,
        threads=threads,
        counters=ground.counters,
        readiness=ground.readiness,
        directories=logs.directories,
        partitions=logs.partitions,
        read_leases=handlers.read_leases,
        removal=logs.removal,
        upkeep=Upkeep(clocks, threads, logs.directories, logs.partitions),
        publisher=publisher,
        participant=participant,
        member_parts=member_parts,
        fetchers=fetchers,
        metadata=metadata,
        producer_ids=coordination.producer_ids,
        groups=coordination.groups,
        transactions=coordination.transactions,
        verification=coordination.verification,
        cleaner=logs.cleaner,
        moves=logs.moves,
        request_watch=request_watch,
        kernel_loading=handlers.kernel_loading,
        fetch_sessions=handlers.fetch_sessions,
        router=_build_router(ground, handlers, request_watch, member_parts),
        actual_values=actual_values,
    )


def _settings_of(storage: Storage | MemberStorage, settings: BrokerSettings) -> BrokerSettings:
    """With those that were set while the broker ran, where this broker's own storage has them."""
    if isinstance(storage, MemberStorage):
        return settings
    try:
        return settings_in(storage.metadata.image, settings, storage.node_id)
    except SettingError as error:
        storage.close()
        raise StartError(f"with what was set while the broker ran, {error}") from error


def _build_logs(ground: Ground, storage: Storage | MemberStorage) -> Logs:
    loop, clocks, threads, settings = ground.loop, ground.clocks, ground.threads, ground.settings
    counters = ground.counters
    cluster = Cluster(storage.node_id, settings[REPLICA_LAG_TIME_MAX_MS], _lease(storage, clocks))
    directories, partitions = LogDirectories(storage.directories, threads), Partitions(loop, counters, cluster)
    removal = Removal(loop, threads)
    cleaner = Cleaner(settings, loop, clocks, threads, counters, directories, partitions, engine_for(settings))
    moves = Moves(settings, clocks, threads, counters, directories, partitions, removal, cleaner)
    truncations = Truncations(clocks, threads, directories, partitions, cleaner)
    replicas = Replicas(loop, clocks, threads, counters, directories, partitions, removal, cluster)
    publisher = Publisher(
        settings, threads, directories, partitions, replicas, removal, moves, truncations, cluster, clocks
    )
    return Logs(cluster, directories, partitions, removal, cleaner, moves, truncations, publisher)


class _Deciding(NamedTuple):
    """Who decides what the metadata is, and how other brokers are asked."""

    participant: "Alone | Member"
    member_parts: "MemberParts | None"
    producer_ids: ProducerIds
    ask_for_markers: AskBroker
    ask_for_verification: AskBroker


def _build_alone(
    ground: Ground, logs: Logs, storage: Storage, ask_broker: AskBroker, on_fatal: Callable[[str], None]
) -> _Deciding:
    participant = Alone(storage.node_id, storage.metadata, logs.publisher, ground.threads, ground.counters, on_fatal)
    return _Deciding(participant, None, ProducerIds(storage.database), ask_broker, ask_broker)


def _build_member(
    ground: Ground,
    logs: Logs,
    storage: MemberStorage,
    connector_for: "Callable[[str], Connector] | None",
    on_fatal: Callable[[str], None],
    on_unregistered: Callable[[], None],
) -> _Deciding:
    from lamina.broker.member_parts import build_member_parts

    parts = build_member_parts(ground, logs, storage, connector_for, on_fatal, on_unregistered)
    # A broker answers one connection in order, and markers only once they are committed.
    markers, verification = (partial(parts.links.ask, lane=lane) for lane in ("markers", "verification"))
    ids = ProducerIds(storage.database, LastBlock(storage.node_id))
    return _Deciding(parts.member, parts, ids, markers, verification)


class _Coordination(NamedTuple):
    """Groups and transactions, and what they live in."""

    create_topics: CreateTopics
    producer_ids: ProducerIdBlock
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verification: TransactionVerification


def _build_coordination(ground: Ground, logs: Logs, deciding: _Deciding, metadata: Metadata) -> _Coordination:
    loop, clocks, threads, counters = ground.loop, ground.clocks, ground.threads, ground.counters
    member_parts, partitions = deciding.member_parts, logs.partitions

    async def create_here(topics: Sequence[NewTopic]) -> Mapping[str, Topic | KafkaError]:
        return await create_topics(metadata, logs.directories, topics, ground.message_thread, clocks)

    create = create_here if member_parts is None else member_parts.topic_requests(create_here).create
    internal_topics = InternalTopics(metadata, create, is_alone=member_parts is None)
    producer_ids = ProducerIdBlock(deciding.producer_ids, threads)
    groups = GroupCoordinator(metadata, internal_topics, partitions, counters, threads, clocks, loop)
    transactions = TransactionCoordinator(
        metadata,
        internal_topics,
        producer_ids,
        partitions,
        deciding.ask_for_markers,
        counters,
        threads,
        clocks,
        loop,
    )
    verification = TransactionVerification(
        metadata, partitions, transactions, deciding.ask_for_verification, clocks, loop
    )
    return _Coordination(create, producer_ids, groups, transactions, verification)


def _build_authorizer(ground: Ground, logs: Logs) -> Authorizer | None:
    settings = ground.settings
    if not settings.get(AUTHORIZER_CLASS_NAME):
        return None
    index = AccessIndex(
        principals(settings[SUPER_USERS]), allows_everyone_without_acl=settings[ALLOW_EVERYONE_IF_NO_ACL_FOUND]
    )
    authorizer = Authorizer(index, lambda: logs.cluster.image, ground.clocks)
    logs.publisher.add_listener(authorizer)
    return authorizer


def _build_handlers(
    ground: Ground,
    logs: Logs,
    deciding: _Deciding,
    metadata: Metadata,
    coordination: _Coordination,
    authorizer: Authorizer | None,
    actual_values: dict[str, str],
) -> HandlerParts:
    clocks, settings, member_parts = ground.clocks, ground.settings, deciding.member_parts
    throttles = ReplicationThrottles(settings, ground.counters.replication, clocks)
    return HandlerParts(
        loop=ground.loop,
        clocks=clocks,
        threads=ground.threads,
        message_thread=ground.message_thread,
        counters=ground.counters,
        directories=logs.directories,
        partitions=logs.partitions,
        read_leases=ReadLeases(
            clocks,
            ground.threads,
            logs.directories,
            logs.partitions,
            most=lambda: metadata.settings[LAMINA_READ_LEASES_MAX],
        ),
        metadata=metadata,
        groups=coordination.groups,
        transactions=coordination.transactions,
        producer_ids=coordination.producer_ids,
        cleaner=logs.cleaner,
        moves=logs.moves,
        fetch_sessions=FetchSessions(
            settings[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS],
            _SESSION_EVICTION_MS,
            lambda: getrandbits(31),
            throttles.holds_back,
        ),
        follower_waits=FollowerWaits(clocks),
        client_quotas=ClientQuotas(settings, ground.counters.quotas, clocks),
        throttles=throttles,
        kernel_loading=KernelLoading(ground.loop, ground.threads),
        verification=coordination.verification,
        actual_values=actual_values,
        create_topics=coordination.create_topics,
        authorizer=authorizer,
        broker_principals=broker_principals(settings),
        broker_listener=None if member_parts is None else member_parts.listener_name,
        apis_on=(lambda _: APIS) if member_parts is None else member_parts.apis_on,
    )


def _build_router(
    ground: Ground, handlers: HandlerParts, request_watch: RequestWatch, member_parts: "MemberParts | None"
) -> Router:
    if member_parts is not None:
        return member_parts.router(handlers, request_watch, ground.readiness)
    return Router(
        table(handlers),
        ground.counters,
        request_watch,
        ground.message_thread,
        ground.readiness,
        handlers.client_quotas,
    )


def _add_listeners(
    logs: Logs,
    member_parts: "MemberParts | None",
    fetchers: "ReplicaFetchers | None",
    coordination: _Coordination,
    handlers: HandlerParts,
    request_watch: RequestWatch,
) -> None:
    """Whom the publisher tells of what follows from metadata, and the partitions of one that goes offline."""
    if fetchers is not None:
        logs.publisher.add_listener(fetchers)
    for listener in (
        handlers.throttles,
        handlers.client_quotas,
        coordination.groups,
        coordination.transactions,
        logs.cleaner,
        logs.moves,
        request_watch,
        handlers.follower_waits,
    ):
        logs.publisher.add_listener(listener)

    def went_offline(partition: Partition) -> None:
        """Nobody coordinates what lives in a log that is offline, nor copies to it."""
        for coordinator in (coordination.groups, coordination.transactions):
            coordinator.partition_removed(partition.topic, partition.index)
        if fetchers is not None and member_parts is not None:
            fetchers.partition_offline(partition)
            member_parts.member.tell()

    logs.partitions.when_offline(went_offline)


def _lease(storage: Storage | MemberStorage, clocks: Clocks) -> Lease:
    if not isinstance(storage, MemberStorage):
        return OwnCluster()
    from lamina.broker.member_parts import SessionLease

    return SessionLease(storage.database, clocks)
