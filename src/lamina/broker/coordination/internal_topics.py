"""Making the topics that a broker keeps for itself, when they are first needed.

Must not know what is in them.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lamina.errors import CoordinatorNotAvailable, InvalidReplicationFactor, KafkaError, TopicAlreadyExists
from lamina.settings.definition import Setting

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)


async def make_internal_topic(
    node: "Node", name: str, partition_count: int, replication_factor: Setting[int], configs: Mapping[str, str]
) -> None:
    """Make the topic unless it is there. Without an explicit factor it has as many replicas as there are brokers.

    Raises InvalidReplicationFactor, said in the log once, or CoordinatorNotAvailable.
    """
    from lamina.broker.metadata.topic_creation import NewTopic, create_topics

    if name in node.image.topics:
        return
    factor = node.settings[replication_factor]
    if not node.settings.is_given(replication_factor):
        factor = min(factor, len(node.image.brokers))
    made = (
        await create_topics(node.metadata, node.directories, [NewTopic(name, partition_count, factor, configs=configs)])
    )[name]
    if isinstance(made, InvalidReplicationFactor) and name not in node.complained_of:
        node.complained_of.add(name)
        logger.error("%s cannot be made with %s=%d: %s", name, replication_factor.name, factor, made)
    if isinstance(made, InvalidReplicationFactor):
        raise made
    if isinstance(made, KafkaError) and not isinstance(made, TopicAlreadyExists):
        raise CoordinatorNotAvailable(f"{name} cannot be made: {made}")
