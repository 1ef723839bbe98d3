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
    choices = _Choices(before, after, after if only is None else only, candidates)
    level(brokers, choices.loads, choices.find, choices.move)
    return choices.ordered


class _Choices:
    """Which partitions a broker leads that another one could lead: the best ones first, found without a search."""

    def __init__(
        self,
        before: Assignments,
        after: Assignments,
        keys: Collection[TopicPartition],
        candidates: Mapping[TopicPartition, Collection[int]] | None,
    ) -> None:
        self.ordered = dict(after)
        self.loads = Counter(replicas[0] for replicas in after.values())
        self._before = before
        self._candidates = candidates
        self._ranked: defaultdict[tuple[int, int], tuple[dict[TopicPartition, None], ...]] = defaultdict(
            lambda: ({}, {}, {})
        )
        """By who leads and who could, in the order of `_rank`."""
        for key in sorted(keys):
            for target in self._could_lead(key):
                self._ranked[after[key][0], target][self._rank(key, target)][key] = None

    def find(self, source: int, target: int, but: frozenset[TopicPartition]) -> TopicPartition | None:
        ranked = self._ranked.get((source, target), ())
        return next((key for keys in ranked for key in keys if key not in but), None)

    def move(self, key: TopicPartition, source: int, target: int) -> None:
        for other in self._could_lead(key):
            del self._ranked[source, other][self._rank(key, other)][key]
        self.ordered[key] = led_by(self.ordered[key], target)
        for other in self._could_lead(key):
            self._ranked[target, other][self._rank(key, other)][key] = None
        self.loads[source] -= 1
        self.loads[target] += 1

    def _could_lead(self, key: TopicPartition) -> list[int]:
        allowed = self.ordered[key] if self._candidates is None else self._candidates[key]
        return [one for one in self.ordered[key][1:] if one in allowed]

    def _rank(self, key: TopicPartition, target: int) -> int:
        """Who led before leads again; one that has another leader already may get yet another."""
        led_before = self._before[key][0]
        return 0 if led_before == target else 2 if led_before == self.ordered[key][0] else 1


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
