"""Runs the state machines that live in the partitions of one internal topic.

Owns which of them run here: a partition that this broker begins to lead gets a shard, one that it leads no more loses
it. Must not know how a shard takes its turns, nor what any machine decides.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from lamina.broker.coordination.coordinator_lookup import coordinating_broker, coordinating_partition
from lamina.broker.coordination.shard import Perform, Shard
from lamina.broker.coordination.shard_log import RecordFormat, ShardLog
from lamina.broker.counters import Counters
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.coordinators.replaying import Machine
from lamina.errors import CoordinatorNotAvailable, NotCoordinator

R = TypeVar("R")
M = TypeVar("M", bound=Machine[Any])

COMMIT_TIMEOUT_MS = 5_000
"""Kafka's ``offsets.commit.timeout.ms``."""


class Runtime(Generic[R, M]):
    """The shards of one internal topic."""

    def __init__(
        self,
        topic: str,
        record_format: RecordFormat[R],
        make: Callable[[Partition], M],
        perform: Perform[R, M],
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        threads: Threads,
        counters: Counters,
        partitions: Partitions,
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
    ) -> None:
        """``make`` is the machine of a partition before its log is read; ``perform`` carries its effects out.

        Who asked is told COORDINATOR_NOT_AVAILABLE where nothing is committed within ``commit_timeout_ms``.
        """
        self.topic = topic
        self._format = record_format
        self._make = make
        self._perform = perform
        self._loop = loop
        self._clocks = clocks
        self._threads = threads
        self._counters = counters
        self._partitions = partitions
        self._commit_timeout_ms = commit_timeout_ms
        self._shards: dict[int, Shard[R, M]] = {}

    def __iter__(self) -> Iterator[Shard[R, M]]:
        return iter(self._shards.values())

    def goes_on(self, partition: Partition) -> bool:
        """Whether its shard may go on: this broker leads in a new epoch, and no other has led since it was loaded."""
        shard = self._shards.get(partition.index)
        return shard is not None and shard.log.partition is partition and not shard.is_given_up and shard.log.goes_on()

    def lead(self, partition: Partition) -> None:
        """This broker leads a partition of the topic, which another may have led before: load its shard."""
        self.resign(partition.index)
        partition.on_marker = self._marker_written(partition.index)
        log = ShardLog(partition, self._format, self._threads)
        shard = self._shards[partition.index] = Shard(
            log,
            self._make,
            self._perform,
            self._loop,
            self._clocks,
            self._counters,
            self._partitions,
            self._commit_timeout_ms,
        )
        shard.load()

    def _marker_written(self, index: int) -> Callable[[int, int, bool], None]:
        """A transaction has ended in a partition of this topic: its machine is told as when it loads."""

        def ended(producer_id: int, _epoch: int, is_committed: bool) -> None:
            shard = self._shards.get(index)
            if shard is not None and shard.machine is not None:
                shard.machine.end_transaction(producer_id, is_committed=is_committed)

        return ended

    def resign(self, index: int) -> Shard[R, M] | None:
        """Returns the shard that is not led here any more, if there was one."""
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.log.partition.on_marker = None
            shard.close()
        return shard

    def close(self) -> None:
        for index in list(self._shards):
            self.resign(index)

    def coordinator_of(self, metadata: Metadata, key: str) -> int:
        """The broker whose shard a key lives in; raises CoordinatorNotAvailable while none can be asked."""
        leader = coordinating_broker(metadata.image, self.topic, key)
        if leader == metadata.node_id and coordinating_partition(metadata.image, self.topic, key) not in self._shards:
            raise CoordinatorNotAvailable(f"the log of {key!r} in {self.topic} cannot be used")
        return leader

    def shard(self, index: int) -> Shard[R, M]:
        shard = self._shards.get(index)
        if shard is None:
            raise NotCoordinator(f"{self.topic}-{index} is not led here")
        return shard
