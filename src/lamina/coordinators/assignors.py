"""Which member of a consumer group reads which partition: pure functions of subscriptions and what is assigned now.

Must not know how members get there.
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heapreplace
from typing import NamedTuple

from lamina.coordinators.records.group_records import TopicIdPartitions

_Partition = tuple[bytes, int]


class MemberSubscription(NamedTuple):
    topics: frozenset[bytes]
    """Ids of topics that exist."""
    instance_id: str | None
    rack_id: str | None
    assigned: TopicIdPartitions
    """What the target assignment before this one gives the member."""


Assignor = Callable[[Mapping[str, MemberSubscription], Mapping[bytes, int]], Mapping[str, TopicIdPartitions]]
"""Members and the number of partitions of each topic → partitions of each member. Every partition of a topic that
anybody subscribes to has exactly one owner, who subscribes to it."""


# Uniform


def assign_uniform(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]
) -> dict[str, TopicIdPartitions]:
    """Every member gets the same number of partitions, as nearly as possible, and keeps what it has.

    When all members subscribe to the same topics, their numbers of partitions differ by at most one and as few
    partitions move as that allows. Otherwise a free partition goes to the subscriber that has
    fewest, and then partitions move from the member with most to the one with fewest while that evens them out.
    """
    held = _keep(members, partition_counts)
    topics = sorted({topic for subscription in members.values() for topic in subscription.topics})
    taken = {partition for partitions in held.values() for partition in partitions}
    free = [
        (topic, index) for topic in topics for index in range(partition_counts[topic]) if (topic, index) not in taken
    ]
    if len({subscription.topics for subscription in members.values()}) <= 1:
        _share_alike(held, free)
    else:
        _share_by_subscription(held, free, members)
    return {member: _by_topic(partitions) for member, partitions in held.items()}


def _keep(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]
) -> dict[str, list[_Partition]]:
    """What every member has and may still have; a partition that two claim stays with the first."""
    taken: set[_Partition] = set()
    held: dict[str, list[_Partition]] = {}
    for member in sorted(members):
        subscription = members[member]
        mine = held[member] = []
        for topic in sorted(subscription.assigned.keys() & subscription.topics):
            for index in subscription.assigned[topic]:
                if index < partition_counts[topic] and (topic, index) not in taken:
                    taken.add((topic, index))
                    mine.append((topic, index))
    return held


def _share_alike(held: dict[str, list[_Partition]], free: list[_Partition]) -> None:
    if not held:
        return
    quota, extra = divmod(len(free) + sum(map(len, held.values())), len(held))
    # Members that have most may keep one more, so that it need not move.
    ordered = sorted(held, key=lambda member: -len(held[member]))
    quotas = {member: quota + (number < extra) for number, member in enumerate(ordered)}
    pool = list(free)
    for member in ordered:
        pool += held[member][quotas[member] :]
        del held[member][quotas[member] :]
    pool.sort()
    # From the one who has least, in turns, so that a topic is spread over many.
    loads = [(len(held[member]), member) for member in held if len(held[member]) < quotas[member]]
    heapify(loads)
    for partition in pool:
        load, member = loads[0]
        held[member].append(partition)
        if load + 1 < quotas[member]:
            heapreplace(loads, (load + 1, member))
        else:
            loads[0] = loads[-1]
            loads.pop()
            heapify(loads)


def _share_by_subscription(
    held: dict[str, list[_Partition]], free: list[_Partition], members: Mapping[str, MemberSubscription]
) -> None:
    subscribers: dict[bytes, list[str]] = {}
    for member in sorted(members):
        for topic in members[member].topics:
            subscribers.setdefault(topic, []).append(member)
    # Those that few may have come first: the others can still make up for it.
    for topic, index in sorted(free, key=lambda partition: (len(subscribers[partition[0]]), partition)):
        least = min(subscribers[topic], key=lambda member: len(held[member]))
        held[least].append((topic, index))
    moved = True
    while moved:
        moved = False
        for topic in sorted(subscribers):
            moved |= _level(held, topic, subscribers[topic])


def _level(held: dict[str, list[_Partition]], topic: bytes, subscribers: Iterable[str]) -> bool:
    """Move partitions of one topic from those who have most to those who have least; True if any moved."""
    order = sorted(subscribers, key=lambda member: len(held[member]))
    owners = [member for member in order if any(held_topic == topic for held_topic, _ in held[member])]
    moved = False
    while owners:
        giver = max(owners, key=lambda member: len(held[member]))
        taker = min(order, key=lambda member: len(held[member]))
        if len(held[giver]) - len(held[taker]) < 2:
            break
        partition = max(partition for partition in held[giver] if partition[0] == topic)
        held[giver].remove(partition)
        held[taker].append(partition)
        owners = [member for member in order if any(held_topic == topic for held_topic, _ in held[member])]
        moved = True
    return moved


def _by_topic(partitions: list[_Partition]) -> TopicIdPartitions:
    assigned: dict[bytes, list[int]] = {}
    for topic, index in sorted(partitions):
        assigned.setdefault(topic, []).append(index)
    return {topic: tuple(indexes) for topic, indexes in assigned.items()}


# Range


def assign_ranges(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]
) -> dict[str, TopicIdPartitions]:
    """Of each topic every subscriber gets a run of neighbouring partitions.

    Runs of one topic differ in length by at most one. Topics with the same subscribers and as many partitions are cut
    alike, so that the member that reads partition 3 of one reads partition 3 of the other: stream joins rely on it.
    """
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


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_ranges}
"""By the names that members and settings use."""
