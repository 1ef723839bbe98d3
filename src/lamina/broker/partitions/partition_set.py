"""The partitions that this broker serves, by name and by topic id.

Must not know where they come from: the publisher adds and removes them.
"""

from collections.abc import Iterator
from uuid import UUID

from lamina.broker.partitions.partition import Partition
from lamina.errors import StorageError, UnknownTopicId, UnknownTopicOrPartition


class Partitions:
    def __init__(self) -> None:
        self._by_key: dict[tuple[str, int], Partition] = {}
        self._names: dict[UUID, str] = {}
        self._lost: dict[tuple[str, int], str] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, partition: Partition) -> None:
        self._by_key[partition.topic, partition.index] = partition
        self._names[partition.topic_id] = partition.topic

    def add_lost(self, topic: str, index: int, topic_id: UUID, reason: str) -> None:
        """A partition that should be here and whose directory is not: it answers with a storage error."""
        self._lost[topic, index] = reason
        self._names[topic_id] = topic

    @property
    def lost(self) -> int:
        """How many should be here and are not."""
        return len(self._lost)

    def remove(self, topic: str, index: int) -> Partition | None:
        self._lost.pop((topic, index), None)
        return self._by_key.pop((topic, index), None)

    def forget_topic(self, topic_id: UUID) -> None:
        self._names.pop(topic_id, None)

    def get(self, topic: str, index: int) -> Partition:
        """The partition; raises UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR for one that was lost."""
        partition = self._by_key.get((topic, index))
        if partition is None:
            if (topic, index) in self._lost:
                raise StorageError(self._lost[topic, index])
            raise UnknownTopicOrPartition(f"this broker has no partition {topic}-{index}")
        return partition

    def is_known(self, topic: str, index: int) -> bool:
        """Whether it is here, or should be."""
        return (topic, index) in self._by_key or (topic, index) in self._lost

    def find(self, topic: str, index: int) -> Partition | None:
        return self._by_key.get((topic, index))

    def name_of(self, topic_id: UUID | None) -> str:
        """The name of the topic with this id; raises UNKNOWN_TOPIC_ID."""
        name = None if topic_id is None else self._names.get(topic_id)
        if name is None:
            raise UnknownTopicId(f"this broker has no topic with id {topic_id}")
        return name
