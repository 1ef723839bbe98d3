"""Making topics: what CreateTopics and auto-creation have in common.

Owns the step from a wish to an image: names, counts, replicas and configs checked by Kafka's rules, in one
change for all topics of a request. Must not know requests.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from lamina.broker.metadata.config_changes import check_topic_configs
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.controller.placement import place
from lamina.errors import InvalidConfig, InvalidRequest, KafkaError
from lamina.image.assignments import check_assignments, check_total_partitions
from lamina.image.changes import create_topic, set_configs
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import Topic
from lamina.image.topic_names import check_new_topic_name
from lamina.settings.broker import DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from lamina.settings.values import BrokerSettings

USE_DEFAULT = -1
AT_ONCE = 500
"""Partitions of one topic that are placed on the loop, within a millisecond; more are on a thread."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partition_count: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)
    """``None`` where a client sends a name alone."""


CreateTopics = Callable[[Sequence[NewTopic]], Awaitable[Mapping[str, Topic | KafkaError]]]
"""Has topics made by whoever decides; returns for each its topic or its error."""


def partition_count(settings: BrokerSettings, wanted: NewTopic) -> int:
    """How many partitions the topic would have; not yet checked."""
    if wanted.assignments:
        return len(wanted.assignments)
    return settings[NUM_PARTITIONS] if wanted.partition_count == USE_DEFAULT else wanted.partition_count


async def plan_topic(
    metadata: Metadata, directories: LogDirectories, image: Image, wanted: NewTopic, threads: Threads
) -> Image:
    """The image with the topic in it; raises Kafka's error for what is wrong with the wish, in Kafka's order."""
    check_new_topic_name(image, wanted.name)
    configs = _checked_configs(metadata, wanted)
    topic_id = uuid4().bytes
    if wanted.assignments:
        if wanted.partition_count != USE_DEFAULT or wanted.replication_factor != USE_DEFAULT:
            raise InvalidRequest(
                "a topic with assignments takes its partitions and replicas from them: both must be -1"
            )
        count = len(wanted.assignments)
        assign = partial(check_assignments, image, wanted.assignments)
    else:
        count, factor = partition_count(metadata.settings, wanted), wanted.replication_factor
        factor = metadata.settings[DEFAULT_REPLICATION_FACTOR] if factor == USE_DEFAULT else factor
        # The topic's id is random: its ends say where its first leader is and how far the first follower is from it.
        start, shift = int.from_bytes(topic_id[:4]), int.from_bytes(topic_id[-4:])
        assign = partial(place, image.brokers.values(), count, factor, start, shift)

    def with_topic() -> Image:
        return create_topic(image, wanted.name, topic_id, assign())

    planned = await threads.compute(with_topic) if count > AT_ONCE else with_topic()
    directories.check_free_space()
    return set_configs(planned, ConfigResource(ResourceType.TOPIC, wanted.name), configs) if configs else planned


def _checked_configs(metadata: Metadata, wanted: NewTopic) -> dict[str, str]:
    configs: dict[str, str] = {}
    for name, value in wanted.configs.items():
        if value is None:
            raise InvalidConfig(f"{name}: a config without a value")
        configs[name] = value
    check_topic_configs(metadata.settings, wanted.name, configs)
    return configs


async def plan_topics(
    metadata: Metadata,
    directories: LogDirectories,
    image: Image,
    topics: Sequence[NewTopic],
    threads: Threads,
    clocks: Clocks,
) -> tuple[Image, dict[str, Topic | KafkaError]]:
    """The image with all topics that can be made, and for each its topic or its error."""
    check_total_partitions([partition_count(metadata.settings, topic) for topic in topics])
    planned: dict[str, Topic | KafkaError] = {}
    async for topic in in_turns(topics, clocks):
        try:
            image = await plan_topic(metadata, directories, image, topic, threads)
            planned[topic.name] = image.topics[topic.name]
        except KafkaError as error:
            planned[topic.name] = error.without_frames()
    return image, planned


async def create_topics(
    metadata: Metadata, directories: LogDirectories, topics: Sequence[NewTopic], threads: Threads, clocks: Clocks
) -> dict[str, Topic | KafkaError]:
    """Make the topics that can be made, in one change. On ``threads`` those with many partitions are placed."""
    planned: dict[str, Topic | KafkaError] = {}

    async def change(image: Image) -> Image:
        nonlocal planned
        image, planned = await plan_topics(metadata, directories, image, topics, threads, clocks)
        return image

    await metadata.change(change)
    return planned
