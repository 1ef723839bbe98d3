"""Elections that somebody asks for (R68), and those that bring leaders back to where they were assigned (R49).

Owns when such an election is possible, with Kafka's errors. Must not know who asks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from enum import IntEnum

from lamina.controller.election import ElectionFacts, elect, elect_uncleanly, lead
from lamina.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidTopic,
    KafkaError,
    PreferredLeaderNotAvailable,
)
from lamina.image.changes import set_partitions
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER, Partition
from lamina.topic_partition import TopicPartition, name_of


class ElectionType(IntEnum):
    """With the protocol's numbers."""

    PREFERRED = 0
    """The first replica leads, if it is online and in sync."""
    UNCLEAN = 1
    """Whoever is online leads: the in-sync member with the most records, or else one that may lack some."""


Outcomes = Mapping[TopicPartition, Partition | KafkaError]
"""For each partition the state that it was elected to, or why it was not."""


def elect_leaders(
    image: Image, election_type: ElectionType, keys: Iterable[TopicPartition] | None, facts: ElectionFacts
) -> tuple[Image, Outcomes]:
    """The image with all elections that can be held. ``None`` stands for all partitions that need one."""
    wanted = _in_need(image, election_type) if keys is None else keys
    outcomes: dict[TopicPartition, Partition | KafkaError] = {}
    for key in wanted:
        try:
            partition = _known(image, key)
            if election_type is ElectionType.PREFERRED:
                outcomes[key] = _elect_preferred(image, key, partition)
            else:
                outcomes[key] = _elect_unclean(image, key, partition, facts)
        except KafkaError as error:
            outcomes[key] = error.without_frames()
    elected = {key: outcome for key, outcome in outcomes.items() if isinstance(outcome, Partition)}
    return set_partitions(image, elected) if elected else image, outcomes


def balance_leaders(
    image: Image, allowed_percentage: int, silent: Set[int] = frozenset()
) -> Mapping[TopicPartition, Partition]:
    """The partitions to be led by their preferred replicas again, where too many of a broker's are led by others (R49).

    Each as it is then. A broker that is ``silent`` would not learn that it leads, and gets nothing back.
    """
    preferred: defaultdict[int, int] = defaultdict(int)
    elsewhere: defaultdict[int, list[tuple[TopicPartition, Partition]]] = defaultdict(list)
    for key, partition in _partitions(image):
        preferred[partition.replicas[0]] += 1
        if partition.leader != partition.replicas[0]:
            elsewhere[partition.replicas[0]].append((key, partition))
    return {
        key: lead(partition, broker_id, partition.isr)
        for broker_id, away in elsewhere.items()
        if broker_id not in silent and len(away) * 100 > preferred[broker_id] * allowed_percentage
        for key, partition in away
        if _can_preferred_lead(image, key, partition)
    }


def _elect_preferred(image: Image, key: TopicPartition, partition: Partition) -> Partition:
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        raise ElectionNotNeeded(f"{name_of(key)} is led by broker {preferred} already, which is its preferred one")
    if not _can_preferred_lead(image, key, partition):
        raise PreferredLeaderNotAvailable(f"broker {preferred} is not in sync with {name_of(key)} or not online")
    return lead(partition, preferred, partition.isr)


def _elect_unclean(image: Image, key: TopicPartition, partition: Partition, facts: ElectionFacts) -> Partition:
    if partition.leader != NO_LEADER:
        raise ElectionNotNeeded(f"{name_of(key)} has a leader, broker {partition.leader}")
    elected = elect(image, key, partition, replace(facts, overdue=facts.overdue | {key}))
    if elected.leader != NO_LEADER:
        return elected
    unclean = elect_uncleanly(image, key, partition) if partition.isr else None
    if unclean is None:
        raise EligibleLeadersNotAvailable(f"no replica of {name_of(key)} that has its records is online")
    return unclean


def _can_preferred_lead(image: Image, key: TopicPartition, partition: Partition) -> bool:
    """Where nobody leads, an election has been tried: the preferred replica may lack what another one has."""
    preferred = partition.replicas[0]
    return partition.leader != NO_LEADER and preferred in partition.isr and image.is_online(preferred, *key)


def _known(image: Image, key: TopicPartition) -> Partition:
    topic = image.topics.get(key[0])
    if topic is not None and topic.is_being_deleted:
        raise InvalidTopic(f"topic {key[0]!r} is being deleted")
    return image.partition(*key)


def _in_need(image: Image, election_type: ElectionType) -> list[TopicPartition]:
    is_preferred = election_type is ElectionType.PREFERRED
    return [
        key
        for key, partition in _partitions(image)
        if (partition.leader != partition.replicas[0] if is_preferred else partition.leader == NO_LEADER)
    ]


def _partitions(image: Image) -> Iterator[tuple[TopicPartition, Partition]]:
    """Those that are not being deleted."""
    for topic in image.topics.values():
        if not topic.is_being_deleted:
            for index, partition in enumerate(topic.partitions):
                yield (topic.name, index), partition
