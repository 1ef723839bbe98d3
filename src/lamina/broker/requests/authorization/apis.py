"""What each API checks before its handler, in Kafka's order and with Kafka's answers (S58).

Produce, Fetch, Metadata, DescribeTopicPartitions, CreateTopics and DescribeConfigs answer in bytes or look at topics
one by one, and KeepLease knows leases, so their handlers ask the authorizer themselves. ApiVersions and DescribeCluster
refuse nobody. Must not know what any handler does.
"""

from typing import Any

from lamina.broker.requests.api import Api, Handler
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.configs import alter_configs
from lamina.broker.requests.authorization.coordinators import find_coordinator
from lamina.broker.requests.authorization.groups import (
    describe_consumer_groups,
    describe_groups,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    subscribe,
)
from lamina.broker.requests.authorization.guards import Guard, Guarding, Need, both, each, needing, on_cluster, told
from lamina.broker.requests.authorization.topics import delete_topics
from lamina.broker.requests.authorization.transactions import (
    add_partitions,
    describe_transactions,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
)
from lamina.broker.requests.authorized_operations import NOT_ASKED
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.security.acls import Operation, ResourceType
from lamina.wire import api_keys

TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID


def _describe_cluster(authorizer: Authorizer, request: Request, response: Any) -> Any:
    if response.cluster_authorized_operations == NOT_ASKED:
        return response
    return response.replace(cluster_authorized_operations=authorizer.operations_on_cluster(request))


def _write_txn_markers(guarding: Guarding) -> Handler:
    """Either of two operations; only a denial of the second is told."""
    handle, authorizer = guarding.handle, guarding.authorizer
    strict = needing(on_cluster(Operation.CLUSTER_ACTION))(guarding)

    def guarded(request: Request, message: Any) -> Any:
        may_alter = authorizer.allows_filtering(request, Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")
        return (handle if may_alter else strict)(request, message)

    return guarded


_READ_GROUP = Need(Operation.READ, GROUP, lambda message: message.group_id)
_WRITE_TRANSACTIONAL_ID = Need(Operation.WRITE, TRANSACTIONAL_ID, lambda message: message.transactional_id)
_FOR_BROKERS = needing(on_cluster(Operation.CLUSTER_ACTION))
_ALTER_CLUSTER = needing(on_cluster(Operation.ALTER))
_DESCRIBE_CLUSTER = needing(on_cluster(Operation.DESCRIBE))

GUARDS: dict[int, Guard] = {
    api_keys.LIST_OFFSETS: each(Operation.DESCRIBE, TOPIC, "topics", "topics", lambda topic: topic.name),
    api_keys.OFFSET_COMMIT: both(needing(_READ_GROUP), offset_commit),
    api_keys.OFFSET_FETCH: offset_fetch,
    api_keys.FIND_COORDINATOR: find_coordinator,
    api_keys.JOIN_GROUP: needing(_READ_GROUP),
    api_keys.HEARTBEAT: needing(_READ_GROUP),
    api_keys.LEAVE_GROUP: needing(_READ_GROUP),
    api_keys.SYNC_GROUP: needing(_READ_GROUP),
    api_keys.CONSUMER_GROUP_HEARTBEAT: both(needing(_READ_GROUP), subscribe),
    api_keys.DESCRIBE_GROUPS: both(
        each(Operation.DESCRIBE, GROUP, "groups", "groups", lambda group_id: group_id), told(describe_groups)
    ),
    api_keys.CONSUMER_GROUP_DESCRIBE: both(
        each(Operation.DESCRIBE, GROUP, "group_ids", "groups", lambda group_id: group_id),
        told(describe_consumer_groups),
    ),
    api_keys.LIST_GROUPS: told(list_groups),
    api_keys.DELETE_GROUPS: each(Operation.DELETE, GROUP, "groups_names", "results", lambda group_id: group_id),
    api_keys.OFFSET_DELETE: both(
        needing(Need(Operation.DELETE, GROUP, lambda message: message.group_id)), offset_delete
    ),
    api_keys.DELETE_TOPICS: delete_topics,
    api_keys.DELETE_RECORDS: each(Operation.DELETE, TOPIC, "topics", "topics", lambda topic: topic.name),
    api_keys.CREATE_PARTITIONS: each(Operation.ALTER, TOPIC, "topics", "results", lambda topic: topic.name),
    api_keys.OFFSET_FOR_LEADER_EPOCH: each(Operation.DESCRIBE, TOPIC, "topics", "topics", lambda topic: topic.topic),
    api_keys.DESCRIBE_PRODUCERS: each(Operation.READ, TOPIC, "topics", "topics", lambda topic: topic.name),
    api_keys.INIT_PRODUCER_ID: init_producer_id,
    api_keys.ADD_PARTITIONS_TO_TXN: add_partitions,
    api_keys.ADD_OFFSETS_TO_TXN: needing(_WRITE_TRANSACTIONAL_ID, _READ_GROUP),
    api_keys.END_TXN: needing(_WRITE_TRANSACTIONAL_ID),
    api_keys.TXN_OFFSET_COMMIT: both(needing(_WRITE_TRANSACTIONAL_ID, _READ_GROUP), txn_offset_commit),
    api_keys.WRITE_TXN_MARKERS: _write_txn_markers,
    api_keys.DESCRIBE_TRANSACTIONS: both(
        each(
            Operation.DESCRIBE,
            TRANSACTIONAL_ID,
            "transactional_ids",
            "transaction_states",
            lambda transactional_id: transactional_id,
        ),
        told(describe_transactions),
    ),
    api_keys.LIST_TRANSACTIONS: told(list_transactions),
    api_keys.DESCRIBE_ACLS: _DESCRIBE_CLUSTER,
    api_keys.CREATE_ACLS: _ALTER_CLUSTER,
    api_keys.DELETE_ACLS: _ALTER_CLUSTER,
    api_keys.ALTER_CONFIGS: alter_configs,
    api_keys.INCREMENTAL_ALTER_CONFIGS: alter_configs,
    api_keys.LIST_CONFIG_RESOURCES: needing(on_cluster(Operation.DESCRIBE_CONFIGS)),
    api_keys.DESCRIBE_LOG_DIRS: _DESCRIBE_CLUSTER,
    api_keys.ALTER_REPLICA_LOG_DIRS: _ALTER_CLUSTER,
    api_keys.ELECT_LEADERS: _ALTER_CLUSTER,
    api_keys.ALTER_PARTITION_REASSIGNMENTS: _ALTER_CLUSTER,
    api_keys.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE_CLUSTER,
    api_keys.UPDATE_FEATURES: _ALTER_CLUSTER,
    api_keys.UNREGISTER_BROKER: _ALTER_CLUSTER,
    api_keys.DESCRIBE_CLUSTER: told(_describe_cluster),
    api_keys.DESCRIBE_CLIENT_QUOTAS: needing(on_cluster(Operation.DESCRIBE_CONFIGS)),
    api_keys.ALTER_CLIENT_QUOTAS: needing(on_cluster(Operation.ALTER_CONFIGS)),
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBE_CLUSTER,
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: _ALTER_CLUSTER,
    api_keys.LEND_SEGMENTS: needing(Need(Operation.READ, TOPIC, lambda message: message.topic)),
    api_keys.ALTER_PARTITION: _FOR_BROKERS,
    api_keys.FOLLOW_METADATA: _FOR_BROKERS,
    api_keys.ENVELOPE: _FOR_BROKERS,
}
ASKING_THEMSELVES = frozenset(
    {
        api_keys.PRODUCE,
        api_keys.FETCH,
        api_keys.METADATA,
        api_keys.DESCRIBE_TOPIC_PARTITIONS,
        api_keys.CREATE_TOPICS,
        api_keys.DESCRIBE_CONFIGS,
        api_keys.KEEP_LEASE,
    }
)
OPEN = frozenset({api_keys.API_VERSIONS, api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE})
"""Whoever has a connection may ask these."""


def guarded(api: Api, handle: Handler, authorizer: Authorizer | None, message_thread: Threads) -> Handler:
    """The handler as clients reach it. An API that nobody has thought of here is a mistake, and nobody may ask it."""
    if authorizer is None or api.key in ASKING_THEMSELVES or api.key in OPEN:
        return handle
    return GUARDS[api.key](Guarding(api, handle, authorizer, message_thread))
