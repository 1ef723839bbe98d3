"""What an assignor is told and what it answers."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lamina.coordinators.records.group_records import TopicIdPartitions


class MemberSubscription(NamedTuple):
    topics: frozenset[bytes]
    """Ids of topics that exist."""
    instance_id: str | None
    rack_id: str | None
    assigned: TopicIdPartitions
    """What the member shall have until now."""


Assignor = Callable[[Mapping[str, MemberSubscription], Mapping[bytes, int]], Mapping[str, TopicIdPartitions]]
"""Members and the number of partitions of each topic → partitions of each member. Every partition of a topic that
anybody subscribes to has exactly one owner, who subscribes to it."""
