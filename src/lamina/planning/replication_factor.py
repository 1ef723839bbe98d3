"""More replicas of partitions, or fewer: which brokers are added or left out.

What stays keeps its place, so that leaders stay. Must not know leaders, nor even anything out.
"""

from collections import Counter

from lamina.planning.moves import Assignments, Replicas
from lamina.planning.replicas import NotEnoughBrokers
from lamina.planning.spread import Racks
from lamina.topic_partition import TopicPartition


def with_replication_factor(before: Assignments, racks: Racks, factor: int) -> dict[TopicPartition, Replicas]:
    """Each partition with so many; those on brokers not among ``racks`` go first. Raises `NotEnoughBrokers`."""
    if factor > len(racks):
        raise NotEnoughBrokers(before, len(racks))
    loads = Counter(one for replicas in before.values() for one in replicas)
    after: dict[TopicPartition, Replicas] = {}
    for key, replicas in sorted(before.items()):
        chosen = list(replicas)
        while len(chosen) < factor:
            added = min(
                racks.keys() - set(chosen),
                key=lambda one: (_neighbours(one, chosen, racks), loads[one], one),
            )
            chosen.append(added)
            loads[added] += 1
        while len(chosen) > factor:
            dropped = max(
                reversed(chosen),
                key=lambda one: (one not in racks, one != chosen[0], _neighbours(one, chosen, racks), loads[one]),
            )
            chosen.remove(dropped)
            loads[dropped] -= 1
        after[key] = tuple(chosen)
    return after


def _neighbours(broker_id: int, replicas: list[int], racks: Racks) -> int:
    """How many other replicas are in a broker's rack."""
    rack = racks.get(broker_id)
    return 0 if rack is None else sum(racks.get(one) == rack for one in replicas if one != broker_id)
