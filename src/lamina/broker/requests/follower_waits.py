"""How long a follower's fetch may wait for records.

As long as it wants to, but not while this broker comes to lead partitions that the follower has to fetch as well: it
can only ask for them with its next request, and an acks=all produce waits for that. Owns who waits, and who is awaited.
Must not know what they read.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.partitions.follower_progress import FollowerProgress
from lamina.broker.partitions.leader import Leader
from lamina.broker.partitions.parked_fetch import Parked
from lamina.broker.partitions.partition import Partition
from lamina.clocks import Clocks

BRIEF_MS = 20
"""A longest wait, while followers are awaited."""
AWAITED_MS = 1000
"""How long a new leader's followers are, unless they fetch earlier: they hear of it at most so much later."""


class _Awaited(NamedTuple):
    """A follower of a partition that this broker came to lead."""

    partition: Partition
    leader: Leader
    progress: FollowerProgress
    until_ms: int

    def is_over(self, now_ms: int) -> bool:
        return self.progress.has_fetched or self.partition.leader is not self.leader or now_ms >= self.until_ms


class FollowerWaits(MetadataListener):
    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._awaited: defaultdict[int, deque[_Awaited]] = defaultdict(deque)
        """In the order in which they are awaited no longer."""
        self._waiting: defaultdict[int, dict[Parked, None]] = defaultdict(dict)
        """In the order in which they came."""

    def partition_led(self, partition: Partition) -> None:
        now_ms = self._clocks.monotonic_ms()
        leader = partition.require_leader()
        for replica_id, progress in leader.followers.items():
            awaited = self._awaited[replica_id]
            # A broker that is away never asks how long it may wait.
            while awaited and now_ms >= awaited[0].until_ms:
                awaited.popleft()
            awaited.append(_Awaited(partition, leader, progress, now_ms + AWAITED_MS))
            for parked in self._waiting[replica_id]:
                parked.stop_waiting()

    def longest_ms(self, replica_id: int, wanted_ms: int) -> int:
        awaited, now_ms = self._awaited.get(replica_id), self._clocks.monotonic_ms()
        while awaited and awaited[-1].is_over(now_ms):
            awaited.pop()
        return min(wanted_ms, BRIEF_MS) if awaited else wanted_ms

    def begin(self, replica_id: int, parked: Parked) -> None:
        """It waits from now on."""
        self._waiting[replica_id][parked] = None

    def end(self, replica_id: int, parked: Parked) -> None:
        del self._waiting[replica_id][parked]

    @contextmanager
    def waiting(self, replica_id: int, parked: Parked) -> Iterator[None]:
        """While it waits; others than followers may wait as they like."""
        if replica_id < 0:
            yield
            return
        self.begin(replica_id, parked)
        try:
            yield
        finally:
            self.end(replica_id, parked)
