"""Which replicas a throttle has to name while partitions move (R77, R79).

The replicas from before are throttled as leaders, those that are added as followers. Must not know rates.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lamina.planning.moves import Move


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Of one topic, as its settings have them: ``0:1,0:2``, each a partition and a broker."""

    leaders: str
    followers: str


def throttled_replicas(moves: Iterable[Move]) -> Mapping[str, ThrottledReplicas]:
    """By topic; those of which nothing is copied are left out."""
    by_topic: defaultdict[str, list[Move]] = defaultdict(list)
    for move in moves:
        if move.added:
            by_topic[move.key[0]].append(move)
    return {
        topic: ThrottledReplicas(
            _joined((move.key[1], one) for move in copying for one in move.before),
            _joined((move.key[1], one) for move in copying for one in move.added),
        )
        for topic, copying in sorted(by_topic.items())
    }


def throttled_brokers(moves: Iterable[Move]) -> frozenset[int]:
    """All that send or fetch what is copied."""
    return frozenset(one for move in moves if move.added for one in (*move.before, *move.added))


def _joined(replicas: Iterable[tuple[int, int]]) -> str:
    return ",".join(f"{partition}:{broker_id}" for partition, broker_id in sorted(replicas))
