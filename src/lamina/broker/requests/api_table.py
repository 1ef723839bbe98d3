"""The APIs that this broker speaks, each bound to the parts that its handler works on. What is not here is not offered.

Must not know what any of them does.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import Counters
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.replication_throttles import ReplicationThrottles
from lamina.broker.metadata.topic_creation import CreateTopics
from lamina.broker.moving.moves import Moves
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.read_leases import ReadLeases
from lamina.broker.requests.api import Api, Check, Handler
from lamina.broker.requests.authorization.apis import guarded
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.client_quotas import ClientQuotas
from lamina.broker.requests.fetch_sessions import FetchSessions
from lamina.broker.requests.follower_waits import FollowerWaits
from lamina.broker.requests.handlers import (
    acls,
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    client_quotas,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    keep_lease,
    leave_group,
    lend_segments,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.requests.transaction_verification import TransactionVerification
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.settings.network import FETCH_MAX_BYTES


class HandlerParts(NamedTuple):
    """What handlers work on; the table below says which handler sees which."""

    loop: asyncio.AbstractEventLoop
    clocks: Clocks
    threads: Threads
    message_thread: Threads
    """For large messages."""
    counters: Counters
    directories: LogDirectories
    partitions: Partitions
    read_leases: ReadLeases
    metadata: Metadata
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    producer_ids: ProducerIdBlock
    cleaner: Cleaner
    moves: Moves
    fetch_sessions: FetchSessions
    follower_waits: FollowerWaits
    throttles: ReplicationThrottles
    client_quotas: ClientQuotas
    kernel_loading: KernelLoading
    verification: TransactionVerification
    create_topics: CreateTopics
    """By whoever decides."""
    broker_listener: str | None
    """The name of the listener between brokers; ``None`` for a broker without a cluster."""
    authorizer: Authorizer | None
    """``None`` where everybody may do everything."""
    broker_principals: frozenset[str] | None
    """Who is served as a broker; ``None`` where that is not known, or access rules say it."""
    apis_on: Callable[[str], Sequence[Api]]
    """What a listener offers, by its name."""
    actual_values: Mapping[str, str]
    """Settings whose values came about at start, by name: what clients are shown instead of what was given."""


_TABLE: tuple[tuple[Api, Callable[[HandlerParts], Handler]], ...] = (
    (
        produce.API,
        lambda p: (
            produce.Produce(
                p.metadata,
                p.partitions,
                p.verification,
                p.kernel_loading,
                p.counters,
                p.threads,
                p.message_thread,
                p.clocks,
                p.loop,
                p.authorizer,
            ).handle
        ),
    ),
    (
        fetch.API,
        lambda p: (
            fetch.Fetch(
                p.metadata,
                p.partitions,
                # Followers come in by the listener between brokers; without one, by any.
                lambda request: (
                    p.broker_listener in (None, request.listener_name)
                    and (p.broker_principals is None or request.principal in p.broker_principals)
                ),
                p.fetch_sessions,
                p.follower_waits,
                p.throttles,
                p.metadata.settings[FETCH_MAX_BYTES],
                p.counters,
                p.threads,
                p.message_thread,
                p.clocks,
                p.loop,
                p.authorizer,
            ).handle
        ),
    ),
    (list_offsets.API, lambda p: partial(list_offsets.handle, p.partitions, p.threads, p.clocks)),
    (
        metadata.API,
        lambda p: (
            metadata.DescribeTopics(
                p.metadata, p.partitions, p.create_topics, p.client_quotas, p.message_thread, p.clocks, p.authorizer
            ).handle
        ),
    ),
    (offset_commit.API, lambda p: partial(offset_commit.handle, p.metadata, p.groups, p.clocks)),
    (offset_fetch.API, lambda p: partial(offset_fetch.handle, p.metadata, p.groups, p.clocks)),
    (
        find_coordinator.API,
        lambda p: partial(find_coordinator.handle, p.metadata, p.groups, p.transactions, p.clocks),
    ),
    (join_group.API, lambda p: partial(join_group.handle, p.groups)),
    (heartbeat.API, lambda p: partial(heartbeat.handle, p.groups)),
    (leave_group.API, lambda p: partial(leave_group.handle, p.groups, p.clocks)),
    (sync_group.API, lambda p: partial(sync_group.handle, p.groups)),
    (describe_groups.API, lambda p: partial(describe_groups.handle, p.groups, p.clocks)),
    (list_groups.API, lambda p: partial(list_groups.handle, p.groups)),
    (
        create_topics.API,
        lambda p: partial(
            create_topics.handle, p.metadata, p.directories, p.client_quotas, p.message_thread, p.clocks, p.authorizer
        ),
    ),
    (delete_topics.API, lambda p: partial(delete_topics.handle, p.metadata, p.client_quotas, p.clocks, p.authorizer)),
    (delete_records.API, lambda p: partial(delete_records.handle, p.partitions, p.clocks)),
    (init_producer_id.API, lambda p: partial(init_producer_id.handle, p.transactions, p.producer_ids)),
    (offset_for_leader_epoch.API, lambda p: partial(offset_for_leader_epoch.handle, p.partitions, p.clocks)),
    (write_txn_markers.API, lambda p: partial(write_txn_markers.handle, p.metadata, p.partitions, p.clocks)),
    (
        acls.DESCRIBE_API,
        lambda p: partial(acls.describe, p.metadata, p.message_thread) if p.authorizer else acls.handle_disabled,
    ),
    (acls.CREATE_API, lambda p: partial(acls.create, p.metadata) if p.authorizer else acls.handle_disabled),
    (
        acls.DELETE_API,
        lambda p: partial(acls.delete, p.metadata, p.message_thread) if p.authorizer else acls.handle_disabled,
    ),
    (
        describe_configs.API,
        lambda p: partial(
            describe_configs.handle,
            p.metadata,
            p.cleaner,
            p.actual_values,
            p.message_thread,
            p.clocks,
            p.authorizer,
        ),
    ),
    (alter_configs.ALTER_API, lambda p: partial(alter_configs.handle, p.metadata, p.clocks)),
    (alter_replica_log_dirs.API, lambda p: partial(alter_replica_log_dirs.handle, p.moves, p.clocks)),
    (
        describe_log_dirs.API,
        lambda p: partial(describe_log_dirs.handle, p.directories, p.partitions, p.moves, p.threads, p.clocks),
    ),
    (
        create_partitions.API,
        lambda p: partial(
            create_partitions.handle, p.metadata, p.directories, p.client_quotas, p.message_thread, p.clocks
        ),
    ),
    (delete_groups.API, lambda p: partial(delete_groups.handle, p.groups, p.clocks)),
    (elect_leaders.API, lambda p: partial(elect_leaders.handle, p.metadata, p.threads, p.clocks)),
    (alter_configs.INCREMENTAL_API, lambda p: partial(alter_configs.handle, p.metadata, p.clocks)),
    (
        alter_partition_reassignments.API,
        lambda p: partial(alter_partition_reassignments.handle, p.metadata, p.threads, p.clocks),
    ),
    (
        list_partition_reassignments.API,
        lambda p: partial(list_partition_reassignments.handle, p.metadata, p.clocks),
    ),
    (client_quotas.DESCRIBE_API, lambda p: partial(client_quotas.describe, p.metadata, p.clocks)),
    (client_quotas.ALTER_API, lambda p: partial(client_quotas.alter, p.metadata, p.clocks)),
    (offset_delete.API, lambda p: partial(offset_delete.handle, p.metadata, p.groups, p.clocks)),
    (update_features.API, lambda p: partial(update_features.handle, p.metadata)),
    (unregister_broker.API, lambda p: partial(unregister_broker.handle, p.metadata)),
    (describe_cluster.API, lambda p: partial(describe_cluster.handle, p.metadata, p.partitions.cluster.lease)),
    (describe_producers.API, lambda p: partial(describe_producers.handle, p.partitions, p.clocks)),
    (
        add_partitions_to_txn.API,
        lambda p: partial(add_partitions_to_txn.handle, p.metadata, p.transactions, p.clocks),
    ),
    (add_offsets_to_txn.API, lambda p: partial(add_offsets_to_txn.handle, p.groups, p.transactions)),
    (end_txn.API, lambda p: partial(end_txn.handle, p.transactions)),
    (
        txn_offset_commit.API,
        lambda p: partial(txn_offset_commit.handle, p.metadata, p.groups, p.verification, p.clocks),
    ),
    (describe_transactions.API, lambda p: partial(describe_transactions.handle, p.transactions, p.clocks)),
    (list_transactions.API, lambda p: partial(list_transactions.handle, p.transactions, p.clocks)),
    (
        consumer_group_heartbeat.API,
        lambda p: partial(consumer_group_heartbeat.handle, p.groups, p.clocks, p.authorizer),
    ),
    (consumer_group_describe.API, lambda p: partial(consumer_group_describe.handle, p.metadata, p.groups, p.clocks)),
    (list_config_resources.API, lambda p: partial(list_config_resources.handle, p.metadata, p.clocks)),
    (
        describe_topic_partitions.API,
        lambda p: partial(describe_topic_partitions.handle, p.metadata, p.partitions, p.clocks, p.authorizer),
    ),
    (
        lend_segments.API,
        lambda p: partial(lend_segments.handle, p.partitions, p.read_leases, p.metadata.node_id),
    ),
    (keep_lease.API, lambda p: partial(keep_lease.handle, p.read_leases, p.authorizer)),
    (
        describe_user_scram_credentials.API,
        lambda p: partial(describe_user_scram_credentials.handle, p.metadata),
    ),
    (
        alter_user_scram_credentials.API,
        lambda p: partial(alter_user_scram_credentials.handle, p.metadata, p.message_thread),
    ),
    (sasl_handshake.API, lambda _: sasl_handshake.handle),
    (sasl_authenticate.API, lambda _: sasl_authenticate.handle),
    (
        api_versions.API,
        lambda p: partial(
            api_versions.handle,
            p.apis_on,
            p.metadata,
        ),
    ),
)

APIS: tuple[Api, ...] = tuple(sorted((api for api, _ in _TABLE), key=lambda api: api.key))

FORWARDABLE = frozenset(api.key for api in APIS if api.is_for_controller)


def table(parts: HandlerParts) -> list[tuple[Api, Handler]]:
    return [(api, guarded(api, bind(parts), parts.authorizer, parts.message_thread)) for api, bind in _TABLE]


def checks(parts: HandlerParts) -> dict[int, Check]:
    """What only this broker can find wrong with a request that the controller decides, by the API's key."""
    check_configs = partial(alter_configs.check_here, parts.metadata, parts.authorizer)
    return {alter_configs.ALTER_API.key: check_configs, alter_configs.INCREMENTAL_API.key: check_configs}
