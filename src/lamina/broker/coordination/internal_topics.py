"""The topics that a broker keeps for itself: made when they are first needed.

Must not know what is in them.
"""

import logging
from collections.abc import Mapping

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.topic_creation import NewTopic, create_topics
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.clocks import Clocks
from lamina.errors import CoordinatorNotAvailable, InvalidReplicationFactor, KafkaError, TopicAlreadyExists
from lamina.settings.definition import Setting

logger = logging.getLogger(__name__)


class InternalTopics:
    def __init__(self, metadata: Metadata, directories: LogDirectories, clocks: Clocks) -> None:
        self._clocks = clocks
        self._metadata = metadata
        self._directories = directories
        self._impossible: set[str] = set()
        """Those that cannot have as many replicas as they shall: each is logged once."""

    async def create(
        self, name: str, partition_count: int, replication_factor: Setting[int], configs: Mapping[str, str]
    ) -> None:
        """Create the topic unless it exists. Without an explicit factor it has as many replicas as there are brokers.

        Raises InvalidReplicationFactor or CoordinatorNotAvailable.
        """
        image, settings = self._metadata.image, self._metadata.settings
        if name in image.topics:
            return
        factor = settings[replication_factor]
        if not settings.is_given(replication_factor):
            factor = min(factor, len(image.brokers))
        topic = NewTopic(name, partition_count, factor, configs=configs)
        created = (await create_topics(self._metadata, self._directories, [topic], self._clocks))[name]
        if isinstance(created, InvalidReplicationFactor):
            if name not in self._impossible:
                self._impossible.add(name)
                logger.error("%s cannot be created with %s=%d: %s", name, replication_factor.name, factor, created)
            raise created
        if isinstance(created, KafkaError) and not isinstance(created, TopicAlreadyExists):
            raise CoordinatorNotAvailable(f"{name} cannot be created: {created}")
