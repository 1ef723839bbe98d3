"""Who leads: the first replica of each partition, chosen among those that it has.

Must not move replicas.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from lamina.planning.levelling import level
from lamina.planning.moves import Assignments, Replicas
from lamina.topic_partition import TopicPartition


def even_leaders(
    before: Assignments,
    after: Assignments,
    brokers: Collection[int],
    only: Collection[TopicPartition] | None = None,
    candidates: Mapping[TopicPartition, Collection[int]] | None = None,
) -> dict[TopicPartition, Replicas]:
    """As many partitions led by one broker as by another, or one more, as far as their replicas allow.

    ``before`` says who led: nobody loses a leader for nothing. With ``only``, the leaders of other partitions stay.
    With ``candidates``, a partition in it is led by one of those.
    """
    ordered = dict(after)
    loads = Counter(replicas[0] for replicas in ordered.values())
    led: defaultdict[int, set[TopicPartition]] = defaultdict(set)
    for key in ordered if only is None else only:
        led[ordered[key][0]].add(key)

    def may_lead(key: TopicPartition, broker_id: int) -> bool:
        return broker_id in ordered[key] and (candidates is None or broker_id in candidates[key])

    def find(source: int, target: int, but: frozenset[TopicPartition]) -> TopicPartition | None:
        found = (key for key in led[source] - but if may_lead(key, target))
        return min(found, key=lambda key: (before[key][0] == source, before[key][0] != target, key), default=None)

    def move(key: TopicPartition, source: int, target: int) -> None:
        ordered[key] = led_by(ordered[key], target)
        led[source].discard(key)
        led[target].add(key)
        loads[source] -= 1
        loads[target] += 1

    level(brokers, loads, find, move)
    return ordered


def lead_elsewhere(
    before: Assignments,
    in_sync: Mapping[TopicPartition, Collection[int]],
    away: Collection[int],
    brokers: Collection[int],
) -> dict[TopicPartition, Replicas]:
    """The partitions of ``in_sync`` led by others than those ``away``, which come last.

    Each of these partitions has another replica in sync.
    """
    after = dict(before)
    candidates = {
        key: [one for one in before[key] if one in members and one not in away] for key, members in in_sync.items()
    }
    loads = Counter(replicas[0] for replicas in before.values())
    for key, may_lead in sorted(candidates.items()):
        leader = min(may_lead, key=lambda one: (loads[one], one))
        loads[before[key][0]] -= 1
        loads[leader] += 1
        others = [one for one in before[key] if one != leader]
        after[key] = (leader, *(one for one in others if one not in away), *(one for one in others if one in away))
    return even_leaders(before, after, [one for one in brokers if one not in away], candidates, candidates)


def led_by(replicas: Replicas, leader: int) -> Replicas:
    """The same replicas with another one first, in whose place the first one goes."""
    place = {replicas[0]: leader, leader: replicas[0]}
    return tuple(place.get(one, one) for one in replicas)
