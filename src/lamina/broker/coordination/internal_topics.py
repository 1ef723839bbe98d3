"""The topics that a broker keeps for itself: made when they are first needed.

Owns how many replicas they get, and that this broker asks for one topic at a time. Must not know what is in them, nor
who decides that a topic is made.
"""

import asyncio
import logging
from collections.abc import Mapping

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.topic_creation import CreateTopics, NewTopic
from lamina.errors import CoordinatorNotAvailable, InvalidReplicationFactor, KafkaError, TopicAlreadyExists
from lamina.image.topic import Topic
from lamina.settings.definition import Setting

logger = logging.getLogger(__name__)


class InternalTopics:
    def __init__(self, metadata: Metadata, create_topics: CreateTopics, *, is_alone: bool) -> None:
        """``is_alone`` says that this broker is the whole cluster, and that no other will ever join it."""
        self._metadata = metadata
        self._create_topics = create_topics
        self._is_alone = is_alone
        self._creating = asyncio.Lock()
        self._impossible: set[str] = set()
        """Those for which there are too few brokers: each is logged once."""

    def copies(self, setting: Setting[int]) -> int:
        """A number of replicas: as configured, but by default a broker that is alone does with one."""
        settings = self._metadata.settings
        wanted: int = settings[setting]
        return min(wanted, 1) if self._is_alone and not settings.is_given(setting) else wanted

    async def _created(self, topic: NewTopic) -> Topic | KafkaError:
        try:
            return (await self._create_topics([topic]))[topic.name]
        except KafkaError as error:
            return error

    async def create(
        self, name: str, partition_count: int, replication_factor: Setting[int], configs: Mapping[str, str]
    ) -> None:
        """Create the topic unless it exists. In a cluster the image may show it only later.

        Raises CoordinatorNotAvailable, and InvalidReplicationFactor where no other broker will ever join.
        """
        if name in self._metadata.image.topics:
            return
        async with self._creating:
            if name in self._metadata.image.topics:
                return
            factor = self.copies(replication_factor)
            topic = NewTopic(name, partition_count, factor, configs=configs)
            created = await self._created(topic)
        if isinstance(created, InvalidReplicationFactor):
            self._log_once(name, f"{replication_factor.name}={factor}", created)
            if self._is_alone:
                raise created
        if isinstance(created, KafkaError) and not isinstance(created, TopicAlreadyExists):
            raise CoordinatorNotAvailable(f"{name} cannot be created: {created}")

    def _log_once(self, name: str, setting: str, error: KafkaError) -> None:
        if name not in self._impossible:
            self._impossible.add(name)
            # In a cluster brokers may only be away.
            level = logging.ERROR if self._is_alone else logging.WARNING
            logger.log(level, "%s cannot be created with %s: %s", name, setting, error)
