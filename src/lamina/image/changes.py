"""Changes: functions from an image to the next one.

Owns how a change is made, copying only the dictionaries that it touches. What is given has been checked
(topic_names, assignments, configs): a change does not refuse, except for a topic that is not there. Must not
know why a change is made.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from lamina.image.image import Broker, ConfigResource, Features, Image, ResourceType
from lamina.image.topic import Partition, Topic, new_partition
from lamina.security.acls import AccessRule, ResourcePattern
from lamina.security.quotas import QuotaEntity
from lamina.security.scram_credential import ScramCredential, ScramMechanism
from lamina.topic_partition import TopicPartition

K = TypeVar("K")
C = TypeVar("C", bound=Collection[object])
V = TypeVar("V")


# Topics


def create_topic(image: Image, name: str, topic_id: bytes, assignments: Iterable[tuple[int, ...]]) -> Image:
    """A new topic, one partition for each tuple of replicas; no directory of it is made yet."""
    return _with_new_topic(image, Topic(name, topic_id, _new_partitions(image, name, assignments)))


def adopt_topic(image: Image, name: str, topic_id: bytes, partition_count: int, broker_id: int) -> Image:
    """A topic that was found on a broker's disk, with a cleanup policy that deletes and compacts nothing.

    A partition that was not found there counts as lost, not as new: it is never made empty.
    """
    found = Partition((broker_id,), broker_id, leader_epoch=0, isr=(broker_id,), made_on=(broker_id,))
    adopted = _with_new_topic(image, Topic(name, topic_id, (found,) * partition_count))
    return set_configs(adopted, ConfigResource(ResourceType.TOPIC, name), {"cleanup.policy": ""})


def add_partitions(image: Image, name: str, assignments: Iterable[tuple[int, ...]]) -> Image:
    topic = image.topic(name)
    added = _new_partitions(image, name, assignments, len(topic.partitions))
    return _with_topics(image, [replace(topic, partitions=topic.partitions + added)])


def _new_partitions(
    image: Image, topic: str, assignments: Iterable[tuple[int, ...]], first_index: int = 0
) -> tuple[Partition, ...]:
    """Brokers that take partitions are registered; an image without brokers has them all."""
    return tuple(
        new_partition(
            replicas,
            tuple(one for one in replicas if one not in image.brokers or image.is_online(one, topic, index)),
        )
        for index, replicas in enumerate(assignments, first_index)
    )


def mark_deleted(image: Image, *names: str) -> Image:
    """From here on clients do not know these topics; their names are free once they are removed."""
    return _with_topics(image, [replace(image.topic(name), is_being_deleted=True) for name in names])


def remove_topic(image: Image, *names: str) -> Image:
    """Forget topics and their configs; their directories are out of the way."""
    return replace(
        image,
        topics=_without(image.topics, *names),
        topic_names=_without(image.topic_names, *(image.topics[name].id for name in names)),
        configs=_without(image.configs, *(ConfigResource(ResourceType.TOPIC, name) for name in names)),
    )


# Partitions


def set_partitions(image: Image, partitions: Mapping[TopicPartition, Partition]) -> Image:
    """Replace the states of partitions; each gets the next partition epoch where its leader or in-sync set changed."""
    by_topic: defaultdict[str, dict[int, Partition]] = defaultdict(dict)
    for (name, index), partition in partitions.items():
        by_topic[name][index] = partition
    changed = []
    for name, replaced in by_topic.items():
        topic = image.topics[name]
        every = tuple(
            _in_next_epoch(partition, replaced[index]) if index in replaced else partition
            for index, partition in enumerate(topic.partitions)
        )
        changed.append(replace(topic, partitions=every))
    return _with_topics(image, changed)


def _in_next_epoch(old: Partition, new: Partition) -> Partition:
    is_changed = (old.leader, old.leader_epoch, old.isr, old.is_recovering) != (
        new.leader,
        new.leader_epoch,
        new.isr,
        new.is_recovering,
    )
    return new.with_partition_epoch(old.partition_epoch + is_changed)


def set_leader_epochs(image: Image, epochs: Mapping[TopicPartition, int]) -> Image:
    return set_partitions(
        image,
        {
            (name, index): replace(image.topics[name].partitions[index], leader_epoch=epoch)
            for (name, index), epoch in epochs.items()
        },
    )


def begin_leader_epochs(image: Image, checkpointed: Mapping[TopicPartition, int]) -> Image:
    """A new epoch for every partition, above the image's and above the last one in the log's own checkpoint."""
    return set_leader_epochs(
        image,
        {
            (topic.name, index): max(partition.leader_epoch, checkpointed.get((topic.name, index), -1)) + 1
            for topic in image.topics.values()
            for index, partition in enumerate(topic.partitions)
        },
    )


def mark_made(image: Image, broker_id: int, partitions: Iterable[TopicPartition]) -> Image:
    """The broker has made these partitions' directories: from now on a missing one is a loss."""
    made = {}
    for name, index in partitions:
        partition = image.topics[name].partitions[index]
        if broker_id not in partition.made_on:
            made[name, index] = replace(partition, made_on=tuple(sorted((*partition.made_on, broker_id))))
    return set_partitions(image, made)


# Security: each replaces all that there is of what it names; nothing at all removes it


def set_acls(image: Image, acls: Mapping[ResourcePattern, frozenset[AccessRule]]) -> Image:
    return replace(image, acls=_with(image.acls, acls))


def set_scram_credentials(image: Image, credentials: Mapping[str, Mapping[ScramMechanism, ScramCredential]]) -> Image:
    return replace(image, scram_credentials=_with(image.scram_credentials, credentials))


def set_quotas(image: Image, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> Image:
    return replace(image, quotas=_with(image.quotas, quotas))


# Everything else


def set_configs(image: Image, resource: ConfigResource, configs: Mapping[str, str]) -> Image:
    """Replace all that is set on a resource."""
    if not configs:
        return replace(image, configs=_without(image.configs, resource))
    return replace(image, configs={**image.configs, resource: dict(configs)})


def set_feature(image: Image, name: str, level: int) -> Image:
    """Level 0 means that the feature is no longer finalized."""
    levels = {**image.features.levels, name: level} if level else _without(image.features.levels, name)
    return replace(image, features=Features(levels, image.features.epoch + 1))


def register_broker(image: Image, broker: Broker) -> Image:
    return replace(image, brokers={**image.brokers, broker.id: broker})


def remove_broker(image: Image, broker_id: int) -> Image:
    return replace(image, brokers=_without(image.brokers, broker_id))


def set_controller(image: Image, broker_id: int) -> Image:
    return replace(image, controller_id=broker_id)


def _with_new_topic(image: Image, topic: Topic) -> Image:
    return replace(_with_topics(image, [topic]), topic_names={**image.topic_names, topic.id: topic.name})


def _with_topics(image: Image, topics: Iterable[Topic]) -> Image:
    return replace(image, topics={**image.topics, **{topic.name: topic for topic in topics}})


def _with(mapping: Mapping[K, C], replaced: Mapping[K, C]) -> Mapping[K, C]:
    return {key: value for key, value in {**mapping, **replaced}.items() if value}


def _without(mapping: Mapping[K, V], *keys: K) -> Mapping[K, V]:
    gone = set(keys)
    return mapping if gone.isdisjoint(mapping) else {key: value for key, value in mapping.items() if key not in gone}
