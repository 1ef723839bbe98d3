"""Where replicas are while a plan is made, and which of them is best moved.

Owns the counts by broker and by topic, and the rule for racks: a move never puts the replicas of a partition into fewer
racks. Racks count only if every broker has one, as in Kafka (R61). Must not know what the moves are for.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby

from lamina.planning.moves import Assignments, Replicas
from lamina.topic_partition import TopicPartition

Racks = Mapping[int, str | None]
"""The brokers that may keep replicas, each with its rack."""


class Spread:
    def __init__(self, before: Assignments, racks: Racks, sizes: Mapping[TopicPartition, int]) -> None:
        self.brokers = sorted(racks)
        self.before = before
        self._sizes = sizes
        self._racks = dict(racks) if all(rack is not None for rack in racks.values()) else {}
        self._replicas = dict(before)
        self.loads: Counter[int] = Counter()
        self._on: defaultdict[int, defaultdict[str, set[TopicPartition]]] = defaultdict(lambda: defaultdict(set))
        """What a broker has, by topic."""
        self._came: defaultdict[int, set[TopicPartition]] = defaultdict(set)
        """What a broker has and had not before."""
        self._left: defaultdict[int, set[TopicPartition]] = defaultdict(set)
        """What a broker had before and has not now."""
        for key, replicas in before.items():
            for broker_id in replicas:
                self._on[broker_id][key[0]].add(key)
                self.loads[broker_id] += 1

    @property
    def after(self) -> dict[TopicPartition, Replicas]:
        return dict(self._replicas)

    def move(self, key: TopicPartition, source: int, target: int) -> None:
        """The new replica gets the place of the old one in the order."""
        self._replicas[key] = _replaced(self._replicas[key], source, target)
        self._on[source][key[0]].discard(key)
        self._on[target][key[0]].add(key)
        self.loads[source] -= 1
        self.loads[target] += 1
        self._came[source].discard(key)
        self._left[target].discard(key)
        if source in self.before[key]:
            self._left[source].add(key)
        if target not in self.before[key]:
            self._came[target].add(key)

    def lightest(self, key: TopicPartition, source: int, among: Iterable[int]) -> int:
        """Which of these brokers is best to take over a replica: in most racks, then with the fewest replicas."""
        replicas = self._replicas[key]
        return min(
            (one for one in among if one not in replicas),
            key=lambda one: (
                -self._rack_count(_replaced(replicas, source, one)),
                self.loads[one],
                len(self._on[one][key[0]]),
                one,
            ),
        )

    def cheapest(self, source: int, target: int, but: frozenset[TopicPartition]) -> TopicPartition | None:
        """The replica that is best moved between two brokers; ``None`` where none can be.

        What was moved already, or goes back, is moved on at no cost. Of the rest, topics come apart, and small
        partitions move rather than large ones.
        """
        moved = self._came[source] | {key for key in self._left[target] if source in self._replicas[key]}
        best = self._smallest(moved, source, target, but)
        if best is not None:
            return best
        here, there = self._on[source], self._on[target]
        surplus = sorted((len(there[topic]) - len(keys), topic) for topic, keys in here.items() if keys)
        for _, topics in groupby(surplus, lambda one: one[0]):
            best = self._smallest((key for _, topic in topics for key in here[topic]), source, target, but)
            if best is not None:
                return best
        return None

    def crowded(self) -> list[tuple[TopicPartition, int]]:
        """Replicas that share a rack with one before them although there are more racks, each with its broker."""
        rack_count = len(set(self._racks.values()))
        found = []
        for key, replicas in sorted(self._replicas.items()):
            spare = min(len(replicas), rack_count) - self._rack_count(replicas)
            racks = [self._racks.get(one) for one in replicas]
            sharing = [one for place, one in enumerate(replicas) if racks[place] in racks[:place]]
            found += [(key, one) for one in sharing[: max(spare, 0)]]
        return found

    def _smallest(
        self, keys: Iterable[TopicPartition], source: int, target: int, but: frozenset[TopicPartition]
    ) -> TopicPartition | None:
        """A follower rather than a leader: nobody has to be elected."""
        return min(
            (key for key in keys if key not in but and self._can_move(key, source, target)),
            key=lambda key: (self._sizes.get(key, 0), self._replicas[key][0] == source, key),
            default=None,
        )

    def _can_move(self, key: TopicPartition, source: int, target: int) -> bool:
        replicas = self._replicas[key]
        if target in replicas:
            return False
        return not self._racks or self._rack_count(_replaced(replicas, source, target)) >= self._rack_count(replicas)

    def _rack_count(self, replicas: Replicas) -> int:
        return len({self._racks[one] for one in replicas if one in self._racks})


def _replaced(replicas: Replicas, source: int, target: int) -> Replicas:
    return tuple(target if one == source else one for one in replicas)
