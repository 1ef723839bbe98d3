"""The following half of a broker: real logs, partitions and fetchers; its leaders are reached in memory."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid5

from lamina.broker.counters import Counters
from lamina.broker.metadata.replication_throttles import ReplicationThrottles
from lamina.broker.partitions.cluster import Cluster, OwnCluster
from lamina.broker.partitions.flushes import Flushes
from lamina.broker.partitions.follower import Follower
from lamina.broker.partitions.free_space import FreeSpace
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.truncations import Truncations
from lamina.broker.replication.broker_links import BrokerLinks, link_limits
from lamina.broker.replication.replica_fetchers import ReplicaFetchers
from lamina.broker.threads import Threads
from lamina.image.diff import diff
from lamina.image.image import Broker, Image
from lamina.log.directory import LogDirectory
from lamina.log.flushing import Flusher
from lamina.peer.addresses import Address
from lamina.settings.listeners import Listener
from lamina.settings.resolve import resolve_broker
from lamina.topic_partition import TopicPartition
from tests.broker.replication.memory_leader import LedPartition, MemoryConnector, MemoryLeader
from tests.driven_clock import DrivenClock
from tests.log.building import NOW_MS, LogBuilder, a_log

LEADER, NODE = 1, 2
BROKER_EPOCH = 77
_NAMESPACE = UUID(int=14)
QUICK = {"replica.fetch.wait.max.ms": "5", "replica.fetch.backoff.ms": "1"}


class CleaningLog:
    """Stands for the cleaner: notes which logs must not be cleaned."""

    def __init__(self) -> None:
        self.paused: list[TopicPartition] = []
        self.gate = asyncio.Event()
        """Whoever pauses waits for it, as for a pass that is being put in place."""
        self.gate.set()
        self.resumed: list[TopicPartition] = []

    async def pause(self, key: TopicPartition) -> None:
        self.paused.append(key)
        await self.gate.wait()

    def resume(self, key: TopicPartition) -> None:
        self.resumed.append(key)


@dataclass
class NotedFollower(Follower):
    """Notes why it waited: a short back-off may be over before anybody looks at its state."""

    waited_for: list[str] = field(default_factory=list)

    def wait(self, reason: str) -> None:
        self.waited_for.append(reason)
        super().wait(reason)

    def has_waited_for(self, text: str) -> bool:
        return any(text in reason for reason in self.waited_for)


class FollowingBroker:
    """To be used as ``async with``. Broker 2, beside a leader which is broker 1."""

    def __init__(self, path: Path, **settings: str) -> None:
        self.path = path
        self.leader = MemoryLeader()
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = resolve_broker(sets={**QUICK, **given})
        self.image = with_broker(Image("cluster"), NODE, 9002, BROKER_EPOCH)
        self.image = with_broker(self.image, LEADER, 9001, 5)
        self.leaders = {Address("broker.test", 9001): self.leader}

    async def __aenter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        self.clock = DrivenClock()
        self.clock.wall_ms = NOW_MS
        self.clocks = self.clock.clocks
        self.counters, self.cleaning = Counters(), CleaningLog()
        self.threads = Threads(self.loop, self.clocks)
        self.directory = LogDirectory.open(str(self.path / "follower"), node_id=NODE)
        self.directories = LogDirectories([self.directory], self.threads)
        self.cluster = Cluster(NODE, 30_000, OwnCluster())
        self.partitions = Partitions(self.loop, self.counters, self.cluster)
        truncations = Truncations(self.clocks, self.threads, self.directories, self.partitions, self.cleaning)
        self.throttles = ReplicationThrottles(self.settings, self.counters.replication, self.clocks)
        self.links = BrokerLinks(NODE, lambda: self.image, "BROKERS", link_limits(self.settings), self._connector)
        self.fetchers = ReplicaFetchers(
            NODE,
            lambda: self.image.brokers[NODE].epoch if NODE in self.image.brokers else -1,
            lambda: self.image,
            self.settings,
            self.links,
            truncations,
            self.partitions,
            self.throttles,
            self.counters,
            self.clocks,
            self.loop,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        await self.fetchers.stop()
        await self.links.close()
        for connection in self.leader.connections:
            connection.abort()
        await asyncio.sleep(0)
        self.directory.close()
        self.threads.close()

    def _connector(self, client_id: str) -> MemoryConnector:
        return MemoryConnector(self.leaders, client_id)

    # Partitions

    def lead(self, topic: str = "t", index: int = 0, **config: Any) -> LogBuilder:
        """A partition of the leader, whose log is for the test to write; not followed yet."""
        builder = a_log(self.path / f"leader-{topic}-{index}", segment_ms=10**15, **config)
        self.leader.led[uuid5(_NAMESPACE, topic), index] = LedPartition(topic, builder)
        return builder

    def led(self, topic: str = "t", index: int = 0) -> LedPartition:
        return self.leader.led[uuid5(_NAMESPACE, topic), index]

    def replica(self, topic: str = "t", index: int = 0) -> Partition:
        """This broker's replica of a partition, without a role yet."""
        topic_id, config = uuid5(_NAMESPACE, topic), self.led(topic, index).builder.config
        log = self.directory.create_partition(topic, index, topic_id.bytes, config, NOW_MS)
        self.directories.of[topic, index] = self.directory
        partition = Partition(
            log,
            topic_id,
            Flusher(log, Flushes(self.threads, self.counters, self.clocks).run, self.partitions.due),
            1 << 20,
            self.counters.topic(topic),
            FreeSpace(self.directory.path),
            self.cluster,
            self.clocks,
        )
        self.partitions.add(partition)
        return partition

    def follow(self, partition: Partition, epoch: int | None = None, leader_id: int = LEADER) -> NotedFollower:
        """Take the role in the leader's epoch, unless another is given."""
        known = self.led(partition.topic, partition.index).epoch if epoch is None else epoch
        follower = NotedFollower(leader_id, known)
        partition.follow(follower)
        self.fetchers.partition_followed(partition)
        return follower

    def change_image(self, image: Image) -> None:
        before, self.image = self.image, image
        self.fetchers.image_changed(diff(before, image))

    # Waiting

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = self.loop.time() + 20
        while not holds():
            assert self.loop.time() < deadline, "it never came true"
            await asyncio.sleep(0.001)

    async def caught_up(self, partition: Partition) -> None:
        """Until the partition holds what its leader does."""
        led = self.led(partition.topic, partition.index)
        self.leader.grown()
        log = led.builder.log
        await self.until(
            lambda: (
                partition.log.log_end_offset == log.log_end_offset
                and partition.high_watermark == led.bound
                and partition.log.log_start_offset >= log.log_start_offset
            )
        )


def with_broker(image: Image, broker_id: int, port: int, epoch: int) -> Image:
    broker = Broker(broker_id, {"BROKERS": Listener("BROKERS", "PLAINTEXT", "broker.test", port)}, epoch=epoch)
    return replace(image, brokers={**image.brokers, broker_id: broker})


def without_broker(image: Image, broker_id: int) -> Image:
    return replace(image, brokers={key: broker for key, broker in image.brokers.items() if key != broker_id})
