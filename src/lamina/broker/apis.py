"""The APIs that this broker speaks. What is not here is not advertised.

Must not know what any of them does.
"""

from lamina.broker.handlers import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from lamina.broker.router import Api

APIS: tuple[Api, ...] = (
    produce.API,
    fetch.API,
    list_offsets.API,
    metadata.API,
    api_versions.API,
    create_topics.API,
    delete_topics.API,
    delete_records.API,
    init_producer_id.API,
    offset_for_leader_epoch.API,
    describe_acls.API,
    describe_configs.API,
    alter_configs.ALTER_API,
    describe_log_dirs.API,
    create_partitions.API,
    alter_configs.INCREMENTAL_API,
    describe_cluster.API,
)
