"""Which partitions of a follower's session may have something new for it: only these are looked at.

A follower of thousands of partitions fetches with every record, and nearly all of them have nothing for it: it has all
of their log, was told all, and is in sync. Such a partition is left alone until it says that it has changed. Meanwhile
each fetch of the session counts as one of this partition, too (R6): that is made up for when it changes. What a
partition does not say, that its log starts elsewhere, is found by a look at all of them now and then.

Owns which are looked at, and the wait for them. Must not know how they are read, nor what of it is told.
"""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from lamina.broker.partitions.parked_fetch import Parked
from lamina.broker.partitions.partition import Partition

TopicKey = tuple[str | None, UUID | None]
PartitionKey = tuple[TopicKey, int]

HoldsBack = Callable[[Partition, int], bool]
"""Whether a throttle keeps the records of a partition from a replica now: then they are not worth an answer."""

LOOK_AT_ALL_MS = 5000


class _Marks(Protocol):
    """The feed, as its partitions see it."""

    def changed(self, one: "FollowedPartition", size_bytes: int) -> None: ...

    def interrupted(self, one: "FollowedPartition") -> None: ...


class FollowedPartition:
    """Stays parked at its partition, from the first look at it on."""

    __slots__ = ("_feed", "has_changed", "key", "partition")

    def __init__(self, feed: _Marks, key: PartitionKey, partition: Partition) -> None:
        self._feed = feed
        self.key = key
        self.partition = partition
        self.has_changed = False
        """Since it was looked at last."""
        partition.park(self, is_replica=True)

    def changed(self, size_bytes: int) -> None:
        self._feed.changed(self, size_bytes)

    def look_again(self) -> None:
        self._feed.changed(self, 0)

    def stop_waiting(self) -> None:
        self._feed.interrupted(self)

    def leave(self) -> None:
        self.partition.unpark(self)


class ReplicaFeed:
    def __init__(
        self, replica_id: int, replica_epoch: int, client_id: str | None, now_ms: int, holds_back: HoldsBack
    ) -> None:
        self._holds_back = holds_back
        self.replica_id = replica_id
        self.client_id = client_id
        """Which of the broker's fetchers it is."""
        self.replica_epoch = replica_epoch
        """Of the registration under which it fetched last."""
        self.pending: dict[PartitionKey, None] = {}
        """What the next look is at, in order."""
        self._followed: dict[PartitionKey, FollowedPartition] = {}
        self._fetched_ms = self._looked_at_all_ms = now_ms
        self._came_bytes = 0
        self._is_interrupted = False
        self._is_closed = False
        self._parked: Parked | None = None

    # Requests

    def arrived(self, replica_epoch: int, now_ms: int) -> None:
        """The session's next request has come."""
        if replica_epoch != self.replica_epoch or now_ms - self._looked_at_all_ms >= LOOK_AT_ALL_MS:
            self.replica_epoch = replica_epoch
            self._looked_at_all_ms = now_ms
            self.pending |= dict.fromkeys(self._followed)
        self._fetched_ms = now_ms
        self._came_bytes = 0
        self._is_interrupted = False

    def ask(self, key: PartitionKey) -> None:
        """The follower asks for something else of a partition; those that have waited longer come first."""
        self.pending.pop(key, None)
        self.pending[key] = None

    def forget(self, key: PartitionKey) -> None:
        self.pending.pop(key, None)
        followed = self._followed.pop(key, None)
        if followed is not None:
            followed.leave()

    def replaces(self, other: "ReplicaFeed") -> bool:
        """Whether the follower has left the other one: it has registered again, or its fetcher has begun anew (R2)."""
        if self.replica_id != other.replica_id:
            return False
        is_same_fetcher = self.client_id is not None and self.client_id == other.client_id
        return is_same_fetcher or self.replica_epoch > other.replica_epoch

    def close(self) -> None:
        """Leave all partitions; whoever still waits gets what was seen."""
        self._is_closed = True
        self.pending.clear()
        for key in list(self._followed):
            self.forget(key)
        if self._parked is not None:
            self._parked.stop_waiting()

    # Looking

    def looked_at(self, key: PartitionKey, partition: Partition) -> None:
        """What it says from now on was not seen."""
        if self._is_closed or key not in self.pending:
            return  # It was forgotten meanwhile.
        followed = self._followed.get(key)
        if followed is None or followed.partition is not partition:
            if followed is not None:
                followed.leave()
            followed = self._followed[key] = FollowedPartition(self, key, partition)
        followed.has_changed = False

    def told(self, key: PartitionKey, fetch_offset: int) -> None:
        """The follower is told all that was seen; it is left alone if there can be nothing more."""
        followed = self._followed.get(key)
        if followed is None or followed.has_changed:
            return
        if followed.partition.is_in_sync_at(self.replica_id, fetch_offset):
            self.pending.pop(key, None)

    # Partitions change

    def changed(self, one: FollowedPartition, size_bytes: int) -> None:
        self._mark(one)
        if size_bytes and not self._holds_back(one.partition, self.replica_id):
            self._came_bytes += size_bytes
            if self._parked is not None:
                self._parked.changed(size_bytes)

    def interrupted(self, one: FollowedPartition) -> None:
        self._mark(one)
        self._is_interrupted = True
        if self._parked is not None:
            self._parked.stop_waiting()

    def _mark(self, one: FollowedPartition) -> None:
        one.has_changed = True
        if one.key not in self.pending:
            self.pending[one.key] = None
            one.partition.replica_stayed(self.replica_id, self._fetched_ms)

    # Waiting

    def park(self, parked: Parked) -> None:
        """Have a fetch told of what comes; what came since the request did counts."""
        self._parked = parked
        if self._is_interrupted:
            parked.stop_waiting()
        elif self._came_bytes:
            parked.changed(self._came_bytes)

    def unpark(self) -> None:
        self._parked = None
