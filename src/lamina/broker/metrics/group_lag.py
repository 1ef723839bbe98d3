"""How far groups are behind: committed offsets against the high watermarks of the partitions that are here.

Owns that there are few, however many groups clients make: those with the most lag. Counting them does not hold up the
loop. Must not know any metric.
"""

from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import NamedTuple

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.turns import Turns
from lamina.clocks import Clocks

MOST_LAGS = 1000
"""Series that a monitor is given at most."""


class GroupLag(NamedTuple):
    """By lag first."""

    lag: int
    group_id: str
    topic: str
    partition: int


@dataclass(slots=True)
class GroupLags:
    most: list[GroupLag] = field(default_factory=list)
    omitted: int = 0

    def add(self, lag: GroupLag) -> None:
        if len(self.most) < MOST_LAGS:
            heappush(self.most, lag)
        else:
            heappushpop(self.most, lag)
            self.omitted += 1


async def find_group_lags(coordinator: GroupCoordinator, partitions: Partitions, clocks: Clocks) -> GroupLags:
    """Of groups that are loaded here, and of partitions that are on this broker."""
    lags, turns = GroupLags(), Turns(clocks)
    for shard in list(coordinator.runtime):
        machine = shard.machine
        for group_id in [] if machine is None else list(machine.group_ids()):
            assert machine is not None
            for one in machine.offsets.fetch(group_id, None, require_stable=False):
                partition = partitions.find(one.topic, one.partition)
                if partition is not None and one.offset >= 0:
                    lag = max(partition.high_watermark - one.offset, 0)
                    lags.add(GroupLag(lag, group_id, one.topic, one.partition))
                await turns.step()
    return lags
