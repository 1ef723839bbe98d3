"""How many groups there are, in which states, with how many members and offsets.

Owns that many groups do not hold up the loop while they are counted: a few hundred a turn. Groups that come and go
meanwhile may be counted or not. Must not know any metric.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

from lamina.broker.coordination.group_coordinator import GroupCoordinator

GROUPS_AT_A_TIME = 500
"""About half a millisecond's work."""


@dataclass(slots=True)
class GroupTally:
    states: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the groups' type and state."""
    members: Counter[str] = field(default_factory=Counter)
    """By the groups' type."""
    offsets: int = 0


async def tally_groups(coordinator: GroupCoordinator) -> GroupTally:
    """Of those that are loaded."""
    tally = GroupTally()
    for shard in list(coordinator.runtime):
        machine = shard.machine
        if machine is None:
            continue
        listings = machine.listings()
        while some := list(islice(listings, GROUPS_AT_A_TIME)):
            for group in some:
                tally.states[group.type, group.state] += 1
                tally.members[group.type] += group.member_count
                tally.offsets += machine.offsets.count(group.group_id)
            await asyncio.sleep(0)
    return tally
