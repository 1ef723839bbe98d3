"""Which partition is fetched from which broker, by which of its fetchers.

Owns the fetchers, by leader and number. Follows the metadata: a partition goes to the fetcher of the leader that it has
now, and waits here while that one's broker is not in the cluster. Must not know how a partition is fetched.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from lamina.broker.counters import Counters
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.metadata.replication_throttles import ReplicationThrottles
from lamina.broker.partitions.follower import FollowerState
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.truncations import Truncations
from lamina.broker.replication.alignment import Alignment
from lamina.broker.replication.broker_links import BrokerLinks
from lamina.broker.replication.fetch_session_handler import FetchSessionHandler, fetch_limits
from lamina.broker.replication.fetcher import Fetcher
from lamina.broker.tasks import Tasks
from lamina.clocks import Clocks
from lamina.image.diff import Changes
from lamina.image.image import Image
from lamina.settings.replication import NUM_REPLICA_FETCHERS, REPLICA_FETCH_BACKOFF_MS
from lamina.settings.values import BrokerSettings
from lamina.topic_partition import TopicPartition


class ReplicaFetchers(MetadataListener):
    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        image: Callable[[], Image],
        settings: BrokerSettings,
        links: BrokerLinks,
        truncations: Truncations,
        partitions: Partitions,
        throttles: ReplicationThrottles,
        counters: Counters,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``broker_epoch`` is that of this broker's present registration, whatever the image knows of it (R92)."""
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._image = image
        self._settings = settings
        self._links = links
        self._truncations = truncations
        self._alignment = Alignment(node_id, links.ask, truncations)
        self._partitions = partitions
        self._throttles = throttles
        self._counters = counters
        self._clocks = clocks
        self._loop = loop
        self._count = settings[NUM_REPLICA_FETCHERS]
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._fetcher_of: dict[TopicPartition, tuple[Partition, Fetcher]] = {}
        self._waiting: dict[TopicPartition, Partition] = {}
        """Those whose leader is not in the cluster now."""
        self._stopping = Tasks(loop)
        self._is_stopped = False

    # What follows from metadata

    def settings_changed(self, settings: BrokerSettings) -> None:
        """``num.replica.fetchers`` holds at once: partitions may belong to other fetchers."""
        self._settings = settings
        if settings[NUM_REPLICA_FETCHERS] != self._count:
            self._count = settings[NUM_REPLICA_FETCHERS]
            for partition, _ in list(self._fetcher_of.values()):
                if partition.follower is not None:
                    # In a role of its own: the fetcher that had it until now may still work on an answer.
                    partition.follow(replace(partition.follower, state=FollowerState.FETCHING, reason=""))
                self.partition_followed(partition)
            self._stop_idle()

    def partition_followed(self, partition: Partition) -> None:
        """Another broker leads the partition from now on, or in another epoch, or none does."""
        self._leave(partition.topic, partition.index)
        if partition.follower is None or self._is_stopped:
            return
        key = (partition.topic, partition.index)
        if partition.follower.leader_id not in self._image().brokers:
            self._waiting[key] = partition
            return
        fetcher = self._fetcher(partition.follower.leader_id, fetcher_number(*key, self._count))
        self._fetcher_of[key] = (partition, fetcher)
        fetcher.add(partition)

    def partition_led(self, partition: Partition) -> None:
        self._leave(partition.topic, partition.index)

    def partition_resigned(self, partition: Partition) -> None:
        self._leave(partition.topic, partition.index)

    def partition_removed(self, topic: str, index: int) -> None:
        self._leave(topic, index)

    def partition_offline(self, partition: Partition) -> None:
        """Its log has failed (R80): the leader must not take it for one that is still there."""
        self._leave(partition.topic, partition.index)

    def image_changed(self, changes: Changes) -> None:
        if changes.brokers:
            self._links.image_changed()
            for (leader_id, _), fetcher in self._fetchers.items():
                if changes.brokers.get(leader_id) is not None:
                    fetcher.retry_now()
        waiting, self._waiting = self._waiting, {}
        for partition in waiting.values():
            self.partition_followed(partition)
        self._stop_idle()

    def max_lag(self) -> int:
        """How many committed offsets the replica lacks that is furthest behind its leader."""
        lags = (
            partition.follower.lag(partition.log.log_end_offset)
            for partition, _ in self._fetcher_of.values()
            if partition.follower is not None
        )
        return max(0, max(lags, default=0))

    def _leave(self, topic: str, index: int) -> None:
        self._waiting.pop((topic, index), None)
        held = self._fetcher_of.pop((topic, index), None)
        if held is not None:
            partition, fetcher = held
            fetcher.remove(partition)

    # Fetchers

    def _fetcher(self, leader_id: int, number: int) -> Fetcher:
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            fetcher = self._fetchers[leader_id, number] = Fetcher(
                leader_id,
                number,
                FetchSessionHandler(self._node_id, self._broker_epoch, fetch_limits(self._settings)),
                self._links.ask,
                self._alignment,
                self._partitions,
                self._throttles,
                self._counters,
                self._settings[REPLICA_FETCH_BACKOFF_MS],
                self._clocks,
                self._loop,
            )
        return fetcher

    def _stop_idle(self) -> None:
        for place, fetcher in list(self._fetchers.items()):
            if not len(fetcher):
                del self._fetchers[place]
                fetcher.cancel()
                self._links.forget(fetcher.leader_id, fetcher.lane)
                self._stopping.begin(fetcher.stop())

    async def stop(self) -> None:
        """Fetch no more, whatever the metadata says, and finish what is being truncated: logs are closed next."""
        self._is_stopped = True
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        self._fetcher_of.clear()
        self._waiting.clear()
        await asyncio.gather(*(fetcher.stop() for fetcher in fetchers), *self._stopping)
        await self._truncations.finish_all()


def fetcher_number(topic: str, index: int, count: int) -> int:
    """Which of so many fetchers copies a partition (R2): Kafka's own arithmetic, of 32 bits."""
    hashed = 0
    for unit in memoryview(topic.encode("utf-16-le")).cast("H"):
        hashed = (31 * hashed + unit) & 0xFFFF_FFFF
    mixed = (31 * hashed + index) & 0xFFFF_FFFF
    signed = mixed - 2**32 if mixed >= 2**31 else mixed
    return (abs(signed) if signed != -(2**31) else 0) % count
