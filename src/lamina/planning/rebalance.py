"""Whole plans: an even cluster, brokers without replicas, leaders evened out where replicas stay.

Must not know how a plan is carried out.
"""

from collections.abc import Collection, Mapping

from lamina.planning.leaders import even_leaders
from lamina.planning.moves import Assignments, Replicas
from lamina.planning.replicas import check_factors, evacuate, even_replicas, separate_racks
from lamina.planning.spread import Racks, Spread
from lamina.topic_partition import TopicPartition

Plan = dict[TopicPartition, Replicas]
"""The replicas that every partition should have; of many the same as before."""


def rebalance(before: Assignments, racks: Racks, sizes: Mapping[TopicPartition, int]) -> Plan:
    """As many replicas, and as many leaders, on one broker as on another; racks apart; few moves, and little copied.

    Brokers that are not among ``racks`` keep nothing. Raises `NotEnoughBrokers`.
    """
    check_factors(before, racks)
    spread = Spread(before, racks, sizes)
    evacuate(spread)
    separate_racks(spread)
    even_replicas(spread)
    return even_leaders(before, spread.after, racks)


def rebalance_leaders(before: Assignments, brokers: Collection[int]) -> Plan:
    """As many leaders on one broker as on another, as far as replicas allow: nothing is copied."""
    return even_leaders(before, before, brokers)


def decommission(before: Assignments, racks: Racks) -> Plan:
    """Nothing on brokers that are not among ``racks``; no other replica moves. Raises `NotEnoughBrokers`."""
    moving = {key for key, replicas in before.items() if not racks.keys() >= set(replicas)}
    check_factors({key: before[key] for key in moving}, racks)
    spread = Spread(before, racks, {})
    evacuate(spread)
    return even_leaders(before, spread.after, racks, moving)
