"""The range assignor: of each topic every subscriber gets a run of neighbouring partitions.

Runs of one topic differ in length by at most one. Topics with the same subscribers and as many partitions are cut
alike, so that whoever reads partition 3 of one reads partition 3 of the other: what joins of streams rely on.
"""

from collections.abc import Mapping

from lamina.coordinators.assignors.subscription import MemberSubscription
from lamina.coordinators.records.group_records import TopicIdPartitions


def assign(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]
) -> dict[str, TopicIdPartitions]:
    subscribers: dict[bytes, list[str]] = {}
    for member in sorted(members, key=lambda member: _place(member, members[member])):
        for topic in members[member].topics:
            subscribers.setdefault(topic, []).append(member)
    assignment: dict[str, dict[bytes, tuple[int, ...]]] = {member: {} for member in members}
    for topic in sorted(subscribers):
        quota, extra = divmod(partition_counts[topic], len(subscribers[topic]))
        begin = 0
        for number, member in enumerate(subscribers[topic]):
            end = begin + quota + (number < extra)
            if begin < end:
                assignment[member][topic] = tuple(range(begin, end))
            begin = end
    return dict(assignment)


def _place(member: str, subscription: MemberSubscription) -> tuple[bool, str]:
    """Static members come first, in an order that a restart does not change."""
    instance_id = subscription.instance_id
    return (True, member) if instance_id is None else (False, instance_id)
