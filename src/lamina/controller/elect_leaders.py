"""Elections that somebody asks for (R68), and those that bring leaders back to where they were assigned (R49).

Owns when such an election is possible, with Kafka's errors. Must not know who asks.
"""

from collections import defaultdict
from dataclasses import replace

from lamina.controller.election import ElectionFacts, elect, elect_uncleanly, lead
from lamina.errors import ElectionNotNeeded, EligibleLeadersNotAvailable, PreferredLeaderNotAvailable
from lamina.image.changes import set_partitions
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER
from lamina.topic_partition import TopicPartition


def elect_preferred(image: Image, key: TopicPartition) -> Image:
    """The first replica leads, if it is online and in sync."""
    partition = image.partition(*key)
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        raise ElectionNotNeeded(f"{key[0]}-{key[1]} is led by broker {preferred} already, which is its preferred one")
    if partition.leader == NO_LEADER or not _can_lead(image, key):
        raise PreferredLeaderNotAvailable(f"broker {preferred} is not in sync with {key[0]}-{key[1]} or not online")
    return set_partitions(image, {key: lead(partition, preferred, partition.isr)})


def elect_unclean(image: Image, key: TopicPartition, facts: ElectionFacts) -> Image:
    """Whoever is online leads: the in-sync member with the most records, or else one that may lack some."""
    partition = image.partition(*key)
    if partition.leader != NO_LEADER:
        raise ElectionNotNeeded(f"{key[0]}-{key[1]} has a leader, broker {partition.leader}")
    elected = elect(image, key, partition, replace(facts, overdue=facts.overdue | {key}))
    if elected.leader == NO_LEADER:
        unclean = elect_uncleanly(image, key, partition) if partition.isr else None
        if unclean is None:
            raise EligibleLeadersNotAvailable(f"no replica of {key[0]}-{key[1]} that has its records is online")
        elected = unclean
    return set_partitions(image, {key: elected})


def imbalanced_partitions(image: Image, allowed_percentage: int) -> tuple[TopicPartition, ...]:
    """What preferred leaders should get back: where too many of a broker's partitions are led by others (R49)."""
    preferred: defaultdict[int, int] = defaultdict(int)
    elsewhere: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions) if not topic.is_being_deleted else ():
            preferred[partition.replicas[0]] += 1
            if partition.leader != partition.replicas[0]:
                elsewhere[partition.replicas[0]].append((topic.name, index))
    return tuple(
        key
        for broker_id, keys in elsewhere.items()
        if len(keys) * 100 > preferred[broker_id] * allowed_percentage
        for key in keys
        if image.partition(*key).leader != NO_LEADER and _can_lead(image, key)
    )


def _can_lead(image: Image, key: TopicPartition) -> bool:
    partition = image.partition(*key)
    return partition.replicas[0] in partition.isr and image.is_online(partition.replicas[0], *key)
