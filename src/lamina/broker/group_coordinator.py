"""The group coordinator of this broker: which shard a group lives in, its topic, its settings.

Owns ``__consumer_offsets`` and what makes it: the topic comes with the first group. Must not know what a group does:
its shard decides.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from lamina.broker.runtime import Runtime, Shard
from lamina.broker.topic_creation import NewTopic, create_topics
from lamina.coordinators.group_settings import GroupSettings
from lamina.coordinators.group_shard import GroupShard
from lamina.coordinators.records.group_codec import decode_record, encode_record
from lamina.coordinators.records.group_records import GroupRecord
from lamina.coordinators.records.partitioning import partition_of
from lamina.errors import InvalidReplicationFactor, KafkaError, NotCoordinator, TopicAlreadyExists
from lamina.image.topic import CONSUMER_OFFSETS
from lamina.records.batch import Codec
from lamina.settings.groups import (
    GROUP_CONSUMER_ASSIGNORS,
    GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MAX_SIZE,
    GROUP_CONSUMER_MIGRATION_POLICY,
    GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS,
    GROUP_CONSUMER_SESSION_TIMEOUT_MS,
    GROUP_INITIAL_REBALANCE_DELAY_MS,
    GROUP_MAX_SESSION_TIMEOUT_MS,
    GROUP_MAX_SIZE,
    GROUP_MIN_SESSION_TIMEOUT_MS,
    OFFSET_METADATA_MAX_BYTES,
    OFFSETS_RETENTION_MINUTES,
    OFFSETS_TOPIC_COMPRESSION_CODEC,
    OFFSETS_TOPIC_NUM_PARTITIONS,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    OFFSETS_TOPIC_SEGMENT_BYTES,
)

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)

T = TypeVar("T")
A = TypeVar("A")

GroupShardOnLog = Shard[GroupRecord, GroupShard]


class GroupCoordinator:
    def __init__(self, node: "Node") -> None:
        self._node = node
        settings = node.settings
        self.runtime: Runtime[GroupRecord, GroupShard] = Runtime(
            node,
            CONSUMER_OFFSETS,
            lambda: GroupShard(self._world),
            encode_record,
            decode_record,
            Codec(settings[OFFSETS_TOPIC_COMPRESSION_CODEC]),
            self._perform,
        )
        self._image_version = 0
        self._making: Awaitable[None] | None = None

    # Which shard

    def shard_of(self, group_id: str) -> GroupShardOnLog:
        """Raises NotCoordinator while there is none."""
        topic = self._node.image.topics.get(CONSUMER_OFFSETS)
        if topic is None:
            raise NotCoordinator(f"{CONSUMER_OFFSETS} is not made yet")
        return self.runtime.shard(partition_of(group_id, len(topic.partitions)))
