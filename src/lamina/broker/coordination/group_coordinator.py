"""The group coordinator of this broker: which shard a group lives in, its topic, its settings.

Owns ``__consumer_offsets``, which is created for the first group. Must not know what a group does:
its shard decides.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import chain

from lamina.broker.coordination.internal_topics import InternalTopics
from lamina.broker.coordination.runtime import Runtime
from lamina.broker.coordination.shard import Shard
from lamina.broker.coordination.shard_log import RecordFormat
from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.tasks import Tasks
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.coordinators.assignors import ASSIGNORS
from lamina.coordinators.decision import Effect, Now, ResolveRegexes
from lamina.coordinators.group_context import GroupContext, GroupSettings
from lamina.coordinators.group_requests import ClassicDescription, ConsumerDescription, GroupListing
from lamina.coordinators.group_shard import GroupCounts, GroupShard
from lamina.coordinators.offset_requests import GroupDecision
from lamina.coordinators.offsets import AT_A_TIME
from lamina.coordinators.patterns import matching
from lamina.coordinators.records.group_codec import decode_record, encode_record
from lamina.coordinators.records.group_records import GroupRecord
from lamina.coordinators.records.partitioning import partition_of
from lamina.errors import KafkaError, NotCoordinator
from lamina.image.diff import Changes
from lamina.image.image import ConfigResource, ResourceType
from lamina.image.topic import CONSUMER_OFFSETS
from lamina.records.batch import Codec
from lamina.settings.group_config import group_value
from lamina.settings.groups import (
    CONSUMER_HEARTBEAT_INTERVAL_MS,
    CONSUMER_SESSION_TIMEOUT_MS,
    GROUP_CONSUMER_ASSIGNORS,
    GROUP_CONSUMER_MAX_SIZE,
    GROUP_CONSUMER_MIGRATION_POLICY,
    GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS,
    GROUP_INITIAL_REBALANCE_DELAY_MS,
    GROUP_MAX_SESSION_TIMEOUT_MS,
    GROUP_MAX_SIZE,
    GROUP_MIN_SESSION_TIMEOUT_MS,
    OFFSET_METADATA_MAX_BYTES,
    OFFSETS_COMMIT_TIMEOUT_MS,
    OFFSETS_RETENTION_MINUTES,
    OFFSETS_TOPIC_COMPRESSION_CODEC,
    OFFSETS_TOPIC_NUM_PARTITIONS,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    OFFSETS_TOPIC_SEGMENT_BYTES,
)
from lamina.settings.values import BrokerSettings

logger = logging.getLogger(__name__)

_MINUTE_MS = 60_000
_EXPIRED_AT_A_TIME = 20

GroupShardOnLog = Shard[GroupRecord, GroupShard]


class GroupCoordinator(MetadataListener):
    def __init__(
        self,
        metadata: Metadata,
        internal_topics: InternalTopics,
        partitions: Partitions,
        counters: Counters,
        threads: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._metadata = metadata
        self._internal_topics = internal_topics
        self._counters = counters
        self._threads = threads
        self._clocks = clocks
        self.counts = GroupCounts()
        codec = Codec(metadata.settings[OFFSETS_TOPIC_COMPRESSION_CODEC])
        self.runtime: Runtime[GroupRecord, GroupShard] = Runtime(
            CONSUMER_OFFSETS,
            RecordFormat(encode_record, decode_record, codec),
            lambda _: GroupShard(self._context_of, self.counts),
            self._perform,
            loop,
            clocks,
            threads,
            counters,
            partitions,
            metadata.settings[OFFSETS_COMMIT_TIMEOUT_MS],
        )
        self._image_version = 0
        self._usual: tuple[BrokerSettings, GroupSettings] | None = None
        self._resolving = Tasks(loop)

    # Which shard

    def shard_of(self, group_id: str) -> GroupShardOnLog:
        """Raises NotCoordinator where it is another broker's, or nobody's."""
        topic = self._metadata.image.topics.get(CONSUMER_OFFSETS)
        if topic is None:
            raise NotCoordinator(f"{CONSUMER_OFFSETS} does not exist yet")
        return self.runtime.shard(partition_of(group_id, len(topic.partitions)))

    def coordinator_of(self, group_id: str) -> int:
        """The broker that coordinates the group; raises CoordinatorNotAvailable while none does."""
        return self.runtime.coordinator_of(self._metadata, group_id)

    @property
    def existing_partition_count(self) -> int:
        """Partitions of the topic, whether they can be used or not; 0 before it is created."""
        topic = self._metadata.image.topics.get(CONSUMER_OFFSETS)
        return 0 if topic is None else len(topic.partitions)

    def listings(self) -> AsyncIterator[GroupListing]:
        """All groups that this broker coordinates, in turns of the loop; ends when all that it told is committed.

        Raises CoordinatorLoadInProgress while some are not known yet.
        """
        shards = [shard for shard in self.runtime if not shard.is_given_up]
        led = [shard.look(GroupShard.listings) for shard in shards]
        return self._committed(in_turns(chain.from_iterable(led), self._clocks), shards)

    async def _committed(
        self, listings: AsyncIterator[GroupListing], shards: Iterable[GroupShardOnLog]
    ) -> AsyncIterator[GroupListing]:
        async for listing in listings:
            yield listing
        for shard in shards:
            await shard.committed()

    def loaded_listings(self) -> AsyncIterator[GroupListing]:
        """As above, of those groups that are known now."""
        loaded = [shard.machine.listings() for shard in self.runtime if shard.machine is not None]
        return in_turns(chain.from_iterable(loaded), self._clocks)

    async def describe(self, group_id: str) -> ClassicDescription:
        described: ClassicDescription = await self.shard_of(group_id).read(lambda machine: machine.describe(group_id))
        return described

    async def describe_consumers(self, group_id: str) -> ConsumerDescription:
        described: ConsumerDescription = await self.shard_of(group_id).read(
            lambda machine: machine.describe_consumers(group_id)
        )
        return described

    # The topic

    async def create_topic(self) -> None:
        settings = self._metadata.settings
        await self._internal_topics.create(
            CONSUMER_OFFSETS,
            settings[OFFSETS_TOPIC_NUM_PARTITIONS],
            OFFSETS_TOPIC_REPLICATION_FACTOR,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings[OFFSETS_TOPIC_SEGMENT_BYTES]),
            },
        )

    def partition_count(self) -> int:
        """Partitions of the topic as it is, or as it would be created."""
        topic = self._metadata.image.topics.get(CONSUMER_OFFSETS)
        return self._metadata.settings[OFFSETS_TOPIC_NUM_PARTITIONS] if topic is None else len(topic.partitions)

    # What follows from metadata

    def partition_led(self, partition: Partition) -> None:
        if partition.topic == CONSUMER_OFFSETS and not self.runtime.goes_on(partition):
            self.runtime.lead(partition)

    def partition_resigned(self, partition: Partition) -> None:
        self.partition_removed(partition.topic, partition.index)

    def partition_removed(self, topic: str, index: int) -> None:
        if topic == CONSUMER_OFFSETS:
            self.runtime.resign(index)

    def topics_gone(self, topics: frozenset[str]) -> None:
        """Their offsets go."""
        for shard in self.runtime:
            shard.run_once_loaded(lambda machine, now: machine.topics_deleted(topics, now))

    def image_changed(self, changes: Changes) -> None:
        """The topics that regular expressions stand for are looked up again."""
        if changes.topics_created or changes.topics_gone:
            self._image_version += 1

    # Old offsets

    async def expire_offsets(self) -> None:
        """Visit every group for a moment, so that the loop is never held up."""
        for shard in list(self.runtime):
            if shard.machine is None:
                continue
            for number, group_id in enumerate(shard.machine.group_ids(), 1):
                while _expire(shard, group_id):
                    await asyncio.sleep(0)
                if number % _EXPIRED_AT_A_TIME == 0:
                    await asyncio.sleep(0)

    # What decisions depend on

    def _context_of(self, group_id: str) -> GroupContext:
        image = self._metadata.image
        overrides = image.configs_of(ConfigResource(ResourceType.GROUP, group_id))
        return GroupContext(
            _group_settings(self._metadata.settings, overrides) if overrides else self._usual_settings(),
            image,
            self._image_version,
            ASSIGNORS,
        )

    def _usual_settings(self) -> GroupSettings:
        """Of groups on which nothing is set; looked up once, until the broker's settings change."""
        settings = self._metadata.settings
        if self._usual is None or self._usual[0] is not settings:
            self._usual = (settings, _group_settings(settings, {}))
        return self._usual[1]

    # Regular expressions

    def _perform(self, shard: GroupShardOnLog, effect: Effect) -> None:
        if isinstance(effect, ResolveRegexes):
            self._resolving.begin(self._resolve(shard, effect))

    async def _resolve(self, shard: GroupShardOnLog, effect: ResolveRegexes) -> None:
        """On a thread: there may be many topics, and many expressions."""
        names = [
            name
            for name, topic in self._metadata.image.topics.items()
            if not topic.is_being_deleted and (effect.may_describe is None or effect.may_describe(name))
        ]
        results: dict[str, tuple[str, ...]] = {}
        for regex in effect.regexes:
            try:
                results[regex] = await self._threads.run(lambda text=regex: matching(text, names))  # type: ignore[misc]
            except KafkaError as error:
                # It was fine when it came; an older broker may have taken what this one cannot read.
                logger.warning("%s: %s", effect.group_id, error)
            except Exception as error:
                self._counters.count_unexpected(Place.COORDINATOR)
                logger.error("%s: a regular expression could not be resolved", effect.group_id, exc_info=error)
        machine = shard.machine
        if machine is not None:
            shard.run(lambda now: machine.resolved(effect.group_id, results, now))


def _expire(shard: GroupShardOnLog, group_id: str) -> bool:
    """Expire as many offsets of a group as one turn takes. Returns whether there may be more."""
    machine, expired = shard.machine, 0
    if machine is None:
        return False

    def expire(now: Now) -> GroupDecision:
        nonlocal expired
        decision = machine.expire(group_id, now)
        expired = len(decision.records)
        return decision

    return shard.run(expire) and expired >= AT_A_TIME


def _group_settings(settings: BrokerSettings, overrides: Mapping[str, str]) -> GroupSettings:
    return GroupSettings(
        min_session_timeout_ms=settings[GROUP_MIN_SESSION_TIMEOUT_MS],
        max_session_timeout_ms=settings[GROUP_MAX_SESSION_TIMEOUT_MS],
        initial_rebalance_delay_ms=settings[GROUP_INITIAL_REBALANCE_DELAY_MS],
        max_size=settings[GROUP_MAX_SIZE],
        offset_metadata_max_bytes=settings[OFFSET_METADATA_MAX_BYTES],
        offsets_retention_ms=settings[OFFSETS_RETENTION_MINUTES] * _MINUTE_MS,
        consumer_session_timeout_ms=group_value(CONSUMER_SESSION_TIMEOUT_MS, settings, overrides),
        consumer_heartbeat_interval_ms=group_value(CONSUMER_HEARTBEAT_INTERVAL_MS, settings, overrides),
        consumer_max_size=settings[GROUP_CONSUMER_MAX_SIZE],
        consumer_assignors=settings[GROUP_CONSUMER_ASSIGNORS],
        consumer_migration_policy=settings[GROUP_CONSUMER_MIGRATION_POLICY],
        consumer_regex_refresh_interval_ms=settings[GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS],
    )
