"""How long a follower's fetch may wait for records.

As long as it wants to, but not while this broker comes to lead partitions that the follower has to fetch as well: it
can only ask for them with its next request, and an acks=all produce waits for that. Owns who waits. Must not know what
they read.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from lamina.broker.metadata.publisher import MetadataListener
from lamina.broker.partitions.parked_fetch import Parked
from lamina.broker.partitions.partition import Partition
from lamina.clocks import Clocks

BRIEF_MS = 20
"""A longest wait, while followers are awaited."""
AWAITED_MS = 1000
"""How long a new leader's followers are: they hear of it at most so much later."""


class FollowerWaits(MetadataListener):
    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._awaited_until_ms: dict[int, int] = {}
        self._waiting: defaultdict[int, set[Parked]] = defaultdict(set)

    def partition_led(self, partition: Partition) -> None:
        until_ms = self._clocks.monotonic_ms() + AWAITED_MS
        for replica_id in partition.require_leader().followers:
            self._awaited_until_ms[replica_id] = until_ms
            for parked in self._waiting[replica_id]:
                parked.stop_waiting()

    def longest_ms(self, replica_id: int, wanted_ms: int) -> int:
        is_awaited = self._clocks.monotonic_ms() < self._awaited_until_ms.get(replica_id, 0)
        return min(wanted_ms, BRIEF_MS) if is_awaited else wanted_ms

    @contextmanager
    def waiting(self, replica_id: int, parked: Parked) -> Iterator[None]:
        """While it waits; others than followers may wait as they like."""
        if replica_id < 0:
            yield
            return
        self._waiting[replica_id].add(parked)
        try:
            yield
        finally:
            self._waiting[replica_id].discard(parked)
