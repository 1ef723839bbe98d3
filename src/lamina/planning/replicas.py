"""Which brokers keep the replicas: emptying brokers, racks apart, as many on one broker as on another.

Must not know leaders.
"""

from collections.abc import Collection, Iterable

from lamina.planning.levelling import level
from lamina.planning.spread import Spread
from lamina.topic_partition import TopicPartition


class NotEnoughBrokers(ValueError):
    """Replicas have nowhere to go: every broker that could take them keeps the partition already."""

    def __init__(self, keys: Iterable[TopicPartition], broker_count: int) -> None:
        self.keys = sorted(keys)
        self.broker_count = broker_count
        super().__init__(f"{len(self.keys)} partitions have more replicas than {broker_count} brokers can keep")


def evacuate(spread: Spread, leaving: Collection[int]) -> None:
    """Move every replica away from the brokers ``leaving``. Raises `NotEnoughBrokers`."""
    moving = {key: found for key, ids in spread.before.items() if (found := [one for one in ids if one in leaving])}
    takers = frozenset(spread.brokers)
    too_many = [key for key, going in moving.items() if len(takers - set(spread.before[key])) < len(going)]
    if too_many:
        raise NotEnoughBrokers(too_many, len(takers))
    for key, going in sorted(moving.items()):
        for broker_id in going:
            spread.move(key, broker_id, spread.lightest(key, broker_id, takers))


def separate_racks(spread: Spread) -> None:
    """Put the replicas of each partition into as many racks as possible."""
    for key, broker_id in spread.crowded():
        spread.move(key, broker_id, spread.lightest(key, broker_id, spread.brokers))


def even_replicas(spread: Spread) -> None:
    """As many replicas on one broker as on another, or one more, as far as racks allow."""
    level(spread.brokers, spread.loads, spread.cheapest, spread.move)
