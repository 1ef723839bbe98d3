"""Runs the state machines that live in the partitions of one internal topic.

Owns which of them run here: a partition that this broker begins to lead gets a shard, one that it leads no more loses
it. Must not know how a shard takes its turns, nor what any machine decides.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lamina.broker.coordination.shard import Perform, Shard
from lamina.broker.coordination.shard_log import Encode, ShardLog
from lamina.broker.partitions.partition import Partition
from lamina.coordinators.replaying import Decode, Machine
from lamina.errors import NotCoordinator
from lamina.records.batch import Codec

if TYPE_CHECKING:
    from lamina.broker.node import Node

R = TypeVar("R")
M = TypeVar("M", bound=Machine[Any])


class Runtime(Generic[R, M]):
    """The shards of one internal topic."""

    def __init__(
        self,
        node: "Node",
        topic: str,
        make: Callable[[Partition], M],
        encode: Encode[R],
        decode: Decode[R],
        codec: Codec,
        perform: Perform[R, M],
        base_sequence: int = 0,
    ) -> None:
        self._node = node
        self.topic = topic
        self._make = make
        self._encode = encode
        self._decode = decode
        self._codec = codec
        self._perform = perform
        self._base_sequence = base_sequence
        self._shards: dict[int, Shard[R, M]] = {}

    def __iter__(self) -> Iterator[Shard[R, M]]:
        return iter(self._shards.values())

    def lead(self, partition: Partition) -> None:
        """This broker leads a partition of the topic: load its shard, anew in another epoch."""
        self.resign(partition.index)
        partition.on_marker = self._marker_written(partition.index)
        log = ShardLog(self._node, partition, self._encode, self._decode, self._codec, self._base_sequence)
        shard = self._shards[partition.index] = Shard(self._node, log, self._make, self._perform)
        shard.load()

    def _marker_written(self, index: int) -> Callable[[int, int, bool], None]:
        """A transaction has ended in a partition of this topic: its machine is told as when it loads."""

        def ended(producer_id: int, _epoch: int, is_committed: bool) -> None:
            shard = self._shards.get(index)
            if shard is not None and shard.machine is not None:
                shard.machine.end_transaction(producer_id, is_committed=is_committed)

        return ended

    def resign(self, index: int) -> None:
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.close()

    def close(self) -> None:
        for index in list(self._shards):
            self.resign(index)

    def shard(self, index: int) -> Shard[R, M]:
        shard = self._shards.get(index)
        if shard is None:
            raise NotCoordinator(f"{self.topic}-{index} is not led here")
        return shard
