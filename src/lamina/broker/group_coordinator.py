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

    def listings(self) -> list[GroupListing]:
        """All groups; raises CoordinatorLoadInProgress while some are not known yet."""
        return [one for shard in self.runtime for one in shard.look(lambda machine: list(machine.listings()))]

    # The topic

    async def make_topic(self) -> None:
        """Make the topic if it is not there. Raises what forbids it."""
        if CONSUMER_OFFSETS in self._node.image.topics:
            return
        settings = self._node.settings
        factor = settings[OFFSETS_TOPIC_REPLICATION_FACTOR]
        if not settings.is_given(OFFSETS_TOPIC_REPLICATION_FACTOR):
            factor = min(factor, len(self._node.image.brokers))
        wanted = NewTopic(
            CONSUMER_OFFSETS,
            settings[OFFSETS_TOPIC_NUM_PARTITIONS],
            factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings[OFFSETS_TOPIC_SEGMENT_BYTES]),
            },
        )
        made = (await create_topics(self._node, [wanted]))[CONSUMER_OFFSETS]
        if isinstance(made, InvalidReplicationFactor) and not self._has_complained:
            self._has_complained = True
            logger.error("%s cannot be made with offsets.topic.replication.factor=%d: %s", CONSUMER_OFFSETS, factor, made)
        if isinstance(made, KafkaError) and not isinstance(made, TopicAlreadyExists):
            raise made

    # What follows from metadata

    def image_changed(self, changes: Changes) -> None:
        """Offsets of deleted topics go; the topics that regular expressions stand for are looked up again."""
        if changes.topics_created or changes.topics_being_deleted:
            self._image_version += 1
        gone = frozenset(topic.name for topic in changes.topics_being_deleted)
        if gone:
            for shard in self.runtime:
                shard.run(lambda _, shard=shard: shard.require().topics_deleted(gone))  # type: ignore[misc]

    # Old offsets

    async def expire_offsets(self) -> None:
        """Visit every group for a moment, so that the loop is never held up."""
        for shard in list(self.runtime):
            if shard.machine is None:
                continue
            for number, group_id in enumerate(shard.machine.group_ids(), 1):
                machine = shard.machine
                if machine is None:
                    break
                shard.run(lambda now, m=machine, g=group_id: m.expire(g, now))  # type: ignore[misc]
                if number % _GROUPS_AT_A_TIME == 0:
                    await asyncio.sleep(0)

    # What decisions go by

    def _context_of(self, group_id: str) -> ConsumerContext:
        image = self._node.image
        overrides = image.configs_of(ConfigResource(ResourceType.GROUP, group_id))
        return ConsumerContext(
            self._settings_of(overrides) if overrides else self._settings,
            image,
            self._image_version,
            ASSIGNORS,
            compile_pattern,
            EMBEDDED_PROTOCOL,
        )
