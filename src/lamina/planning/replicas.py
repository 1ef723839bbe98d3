"""Which brokers keep the replicas: emptying brokers, racks apart, as many on one broker as on another.

Must not know leaders.
"""

from collections.abc import Iterable

from lamina.planning.levelling import level
from lamina.planning.moves import Assignments
from lamina.planning.spread import Racks, Spread
from lamina.topic_partition import TopicPartition


class NotEnoughBrokers(ValueError):
    """Partitions have more replicas than there are brokers to keep them."""

    def __init__(self, keys: Iterable[TopicPartition], broker_count: int) -> None:
        self.keys = sorted(keys)
        self.broker_count = broker_count
        super().__init__(f"{len(self.keys)} partitions have more than {broker_count} replicas")


def check_factors(assignments: Assignments, racks: Racks) -> None:
    """Raises `NotEnoughBrokers`."""
    too_many = [key for key, replicas in assignments.items() if len(replicas) > len(racks)]
    if too_many:
        raise NotEnoughBrokers(too_many, len(racks))


def evacuate(spread: Spread) -> None:
    """Move every replica away that is on a broker which may keep none."""
    allowed = frozenset(spread.brokers)
    for key, before in sorted(spread.before.items()):
        for broker_id in before:
            if broker_id not in allowed:
                spread.move(key, broker_id, spread.lightest(key, broker_id, spread.brokers))


def separate_racks(spread: Spread) -> None:
    """Put the replicas of each partition into as many racks as possible."""
    for key, broker_id in spread.crowded():
        spread.move(key, broker_id, spread.lightest(key, broker_id, spread.brokers))


def even_replicas(spread: Spread) -> None:
    """As many replicas on one broker as on another, or one more, as far as racks allow."""
    level(spread.brokers, spread.loads, spread.cheapest, spread.move)
