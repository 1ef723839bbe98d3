"""The partitions that this broker serves, by name and by topic id.

Owns which of them are offline, and tells listeners of one that goes offline; and whoever waited at any of them is told
by ``due``, in turns of the loop. Must not know where partitions come from: the publisher adds and removes them.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from uuid import UUID

from lamina.broker.counters import Counters, Place
from lamina.broker.partitions.cluster import Cluster
from lamina.broker.partitions.partition import Partition
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import NotLeaderOrFollower, StorageError, UnknownTopicId
from lamina.log.due_waiters import DueWaiters
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_NONE: frozenset[int] = frozenset()


class Partitions:
    def __init__(self, loop: asyncio.AbstractEventLoop, counters: Counters, cluster: Cluster) -> None:
        self._counters = counters
        # What they do is no part of the request that let them go on.
        self.due = DueWaiters(
            partial(loop.call_soon, context=Context()), partial(counters.count_unexpected, Place.PARTITION)
        )
        """Tells whoever waited, at all partitions: one request may let very many go on."""
        self.cluster = cluster
        self._by_key: dict[TopicPartition, Partition] = {}
        self._names: dict[UUID, str] = {}
        self._missing: dict[TopicPartition, str] = {}
        self._offline: dict[str, set[int]] = {}
        """Those without a log, and those whose log has failed."""
        self._told_offline: dict[str, frozenset[int]] = {}
        """As they were told of a topic, until another one goes or comes back."""
        self.is_closing = False
        """Whether the broker stops: nothing may wait for a partition any more."""
        self._offline_listeners: list[Callable[[Partition], None]] = []

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, partition: Partition) -> None:
        self.remove(partition.topic, partition.index)
        self._by_key[partition.topic, partition.index] = partition
        self._names[partition.topic_id] = partition.topic

    def add_missing(self, topic: str, index: int, topic_id: UUID, reason: str) -> None:
        """A partition that should be here and has no log: it is offline, and answers with a storage error."""
        self._missing[topic, index] = reason
        self._names[topic_id] = topic
        self._take_note(topic, index)

    @property
    def missing(self) -> int:
        """How many should be here and have no log."""
        return len(self._missing)

    def all_offline(self) -> Iterator[TopicPartition]:
        """Every partition that should be served here and cannot be."""
        for topic, indexes in self._offline.items():
            for index in indexes:
                yield topic, index

    def offline(self, topic: str) -> frozenset[int]:
        """The partitions of a topic that should be served here and cannot be."""
        if topic not in self._offline:
            return _NONE
        told = self._told_offline.get(topic)
        if told is None:
            told = self._told_offline[topic] = frozenset(self._offline[topic])
        return told

    def remove(self, topic: str, index: int) -> Partition | None:
        self._missing.pop((topic, index), None)
        if self._is_noted(topic, index):
            self._offline[topic].discard(index)
            self._told_offline.pop(topic, None)
        return self._by_key.pop((topic, index), None)

    def forget_topic(self, topic_id: UUID) -> None:
        name = self._names.pop(topic_id, None)
        if name is not None:
            self._offline.pop(name, None)
            self._told_offline.pop(name, None)

    def get(self, topic: str, index: int) -> Partition:
        """The partition. Raises KAFKA_STORAGE_ERROR for one that is missing, NOT_LEADER_OR_FOLLOWER for one that other
        brokers keep, and UNKNOWN_TOPIC_OR_PARTITION for one that does not exist (R23)."""
        partition = self._by_key.get((topic, index))
        if partition is None:
            if (topic, index) in self._missing:
                raise StorageError(self._missing[topic, index])
            self.cluster.image.partition(topic, index)
            raise NotLeaderOrFollower(f"this broker has no replica of {topic}-{index}")
        return partition

    def is_known(self, topic: str, index: int) -> bool:
        """Whether it is here, or should be."""
        return (topic, index) in self._by_key or (topic, index) in self._missing

    def find(self, topic: str, index: int) -> Partition | None:
        return self._by_key.get((topic, index))

    def name_of(self, topic_id: UUID | None) -> str:
        """The name of the topic with this id; raises UNKNOWN_TOPIC_ID."""
        if topic_id is None:
            raise UnknownTopicId("a topic without an id")
        return self._names.get(topic_id) or self.cluster.image.topic_with_id(topic_id.bytes).name

    # Going offline

    def failed(self, topic: str, index: int, error: Exception) -> None:
        """An unexpected exception while a partition was written or read: it goes offline, the rest goes on."""
        self._counters.count_unexpected(Place.PARTITION)
        logger.error("%s-%d goes offline", topic, index, exc_info=error)
        partition = self.find(topic, index)
        if partition is not None:
            self.take_offline(partition, repr(error))

    def when_offline(self, told: Callable[[Partition], None]) -> None:
        """``told`` hears of each partition that goes offline from now on."""
        self._offline_listeners.append(told)

    def take_offline(self, partition: Partition, reason: str) -> None:
        """Stop using a log, of which another replica should take the place."""
        if partition.log.failure is None:
            partition.log.take_offline(f"{partition.log.name} is offline: {reason}")
            partition.release_all()
            self._went_offline(partition)

    def directory_failed(self) -> None:
        """A log directory has gone offline with its partitions: wake their waiters, and stop their coordinators."""
        for partition in list(self):
            if partition.log.failure is not None and not self._is_noted(partition.topic, partition.index):
                partition.release_all()
                self._went_offline(partition)

    def _went_offline(self, partition: Partition) -> None:
        self._take_note(partition.topic, partition.index)
        for told in self._offline_listeners:
            told(partition)

    def _take_note(self, topic: str, index: int) -> None:
        self._offline.setdefault(topic, set()).add(index)
        self._told_offline.pop(topic, None)

    def _is_noted(self, topic: str, index: int) -> bool:
        return index in self._offline.get(topic, ())

    async def release_all(self, clocks: Clocks) -> None:
        """The broker stops: let nobody wait again, and wake all waiters, in turns of the loop."""
        self.is_closing = True
        async for partition in in_turns(list(self), clocks):
            partition.release_all()
