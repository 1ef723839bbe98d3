"""Sets of partitions by topic id, as consumer groups speak of them, and by name, as the classic protocol does.

Results have ascending partitions and no topic without any, so that equal sets are equal mappings. Must not know
groups.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from lamina.coordinators.records.group_records import TopicIdPartitions
from lamina.image.image import Image

NamePartitions = Mapping[str, tuple[int, ...]]
NO_PARTITIONS: TopicIdPartitions = {}


def normal(partitions: Mapping[bytes, Collection[int]]) -> TopicIdPartitions:
    """The same partitions in the one form that equal sets share."""
    return {
        topic_id: tuple(some) if len(some) == 1 else tuple(sorted(set(some)))
        for topic_id, some in partitions.items()
        if some
    }


def each(partitions: TopicIdPartitions) -> Iterator[tuple[bytes, int]]:
    for topic_id, some in partitions.items():
        for partition in some:
            yield topic_id, partition


def gathered(pairs: Iterable[tuple[bytes, int]]) -> TopicIdPartitions:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in pairs:
        by_topic.setdefault(topic_id, []).append(partition)
    return normal(by_topic)


def intersection(left: TopicIdPartitions, right: TopicIdPartitions) -> TopicIdPartitions:
    return normal({topic_id: set(some) & set(right.get(topic_id, ())) for topic_id, some in left.items()})


def difference(left: TopicIdPartitions, right: TopicIdPartitions) -> TopicIdPartitions:
    return normal({topic_id: set(some) - set(right.get(topic_id, ())) for topic_id, some in left.items()})


def union(left: TopicIdPartitions, right: TopicIdPartitions) -> TopicIdPartitions:
    return normal({topic_id: (*left.get(topic_id, ()), *right.get(topic_id, ())) for topic_id in {**left, **right}})


def is_subset(left: TopicIdPartitions, right: TopicIdPartitions) -> bool:
    return all(set(some) <= set(right.get(topic_id, ())) for topic_id, some in left.items())


def overlap(left: TopicIdPartitions, right: TopicIdPartitions) -> bool:
    return any(not set(some).isdisjoint(right.get(topic_id, ())) for topic_id, some in left.items())


# By name


def by_id(partitions: NamePartitions, image: Image) -> TopicIdPartitions:
    """Topics that do not exist any more are left out."""
    return gathered(
        (image.topics[name].id, partition)
        for name, some in partitions.items()
        if name in image.topics
        for partition in some
    )


def by_name(partitions: TopicIdPartitions, image: Image) -> NamePartitions:
    names = image.topic_names
    return {names[topic_id]: some for topic_id, some in partitions.items() if topic_id in names}
