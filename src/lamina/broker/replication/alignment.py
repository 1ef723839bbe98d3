"""Bringing a follower's log to where its leader's goes on: what to ask, then where to truncate.

Owns the order of the steps, and that a log is not touched for a role that is gone by then. What to do is the follower's
decision. Each method says whether it changed anything: if not, the next fetch would be answered as the last one. Must
not know fetches.
"""

from lamina.broker.partitions.follower import (
    Follower,
    first_offset,
    offset_of_shorter_leader,
    offset_to_start_anew,
    truncation_offset,
)
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.truncations import Truncations
from lamina.broker.replication.broker_links import AskBroker
from lamina.errors import MalformedResponse, NotLeaderOrFollower, error_from_code
from lamina.log.epochs import EpochStart
from lamina.peer.listing import EARLIEST, LATEST, list_one, listed, partition_listed
from lamina.wire.fetch_request import READ_UNCOMMITTED

_UNDEFINED = -1


class Alignment:
    def __init__(self, node_id: int, ask: AskBroker, truncations: Truncations) -> None:
        self._node_id = node_id
        self._ask = ask
        self._truncations = truncations

    def is_needed(self, partition: Partition) -> bool:
        """Whether there is anything to do before a new follower's first fetch."""
        log = partition.log
        return (
            self._truncations.is_pending(partition) or first_offset(log, partition.high_watermark) < log.log_end_offset
        )

    async def begin(self, partition: Partition, follower: Follower) -> bool:
        """Before the first fetch (R21). What another role began to truncate is truncated first."""
        await self._truncations.finish(partition)
        await self._truncate(partition, follower, first_offset(partition.log, partition.high_watermark))
        return True

    async def diverged(self, partition: Partition, follower: Follower, leader_end: EpochStart) -> bool:
        """The leader says where its log parts from this one (R27). Nothing else of its answer counts (R28, R85)."""
        log = partition.log
        if leader_end.start_offset < _UNDEFINED:
            raise _malformed(partition, leader_end.start_offset)
        before = (log.log_end_offset, log.epochs.latest)
        await self._truncate(partition, follower, truncation_offset(log, partition.high_watermark, leader_end))
        return before != (log.log_end_offset, log.epochs.latest)

    async def out_of_range(self, partition: Partition, follower: Follower) -> bool:
        """The leader has nothing at this log's end (R29)."""
        shorter = offset_of_shorter_leader(partition.log, await self._offset(partition, follower, LATEST))
        if shorter is not None:
            await self._truncate(partition, follower, shorter)
            return True
        anew = offset_to_start_anew(partition.log, await self._offset(partition, follower, EARLIEST))
        if anew is not None:
            await self.start_anew(partition, follower, anew)
        return anew is not None

    async def start_anew(self, partition: Partition, follower: Follower, offset: int) -> None:
        _require(partition, follower)
        await self._truncations.start_anew(partition, offset)
        _require(partition, follower)

    async def _truncate(self, partition: Partition, follower: Follower, offset: int) -> None:
        _require(partition, follower)
        await self._truncations.truncate(partition, offset)
        _require(partition, follower)

    async def _offset(self, partition: Partition, follower: Follower, timestamp_ms: int) -> int:
        """Where the leader's log starts or ends; as a replica, beyond the high watermark (R37)."""
        call = list_one(partition.topic, partition.index, follower.epoch, timestamp_ms, READ_UNCOMMITTED, self._node_id)
        told = partition_listed(await self._ask(follower.leader_id, call))
        if told.error_code:
            raise error_from_code(int(told.error_code), f"{partition.log.name}: its leader does not tell its offsets")
        offset = listed(told).offset
        if offset < 0:
            raise _malformed(partition, offset)
        return offset


def _malformed(partition: Partition, offset: int) -> MalformedResponse:
    return MalformedResponse(f"{partition.log.name}: its leader answered with offset {offset}")


def _require(partition: Partition, follower: Follower) -> None:
    if partition.follower is not follower:
        raise NotLeaderOrFollower(
            f"this broker does not follow {partition.log.name} in epoch {follower.epoch} any more"
        )
