"""Whole plans: an even cluster, brokers without replicas, leaders evened out where replicas stay.

Must not know how a plan is carried out.
"""

from collections.abc import Collection, Mapping

from lamina.planning.leaders import even_leaders
from lamina.planning.moves import Assignments, Replicas
from lamina.planning.replicas import evacuate, even_replicas, separate_racks
from lamina.planning.spread import Racks, Spread
from lamina.topic_partition import TopicPartition

Plan = dict[TopicPartition, Replicas]
"""The replicas that every partition should have; of many the same as before."""


def rebalance(before: Assignments, racks: Racks, sizes: Mapping[TopicPartition, int]) -> Plan:
    """As many replicas, and as many leaders, on one broker as on another; racks apart; few moves, and little copied.

    Brokers that are not among ``racks`` keep nothing. Raises `NotEnoughBrokers`.
    """
    spread = Spread(before, racks, sizes)
    evacuate(spread, {one for replicas in before.values() for one in replicas} - racks.keys())
    separate_racks(spread)
    even_replicas(spread)
    return even_leaders(before, spread.after, racks)


def rebalance_leaders(before: Assignments, brokers: Collection[int]) -> Plan:
    """As many leaders on one broker as on another, as far as replicas allow: nothing is copied."""
    return even_leaders(before, before, brokers)


def decommission(before: Assignments, racks: Racks, leaving: Collection[int]) -> Plan:
    """Nothing on the brokers ``leaving``, and all of it on those of ``racks``; no other replica moves.

    Raises `NotEnoughBrokers`.
    """
    spread = Spread(before, racks, {})
    evacuate(spread, leaving)
    moved = [key for key, replicas in before.items() if not set(replicas).isdisjoint(leaving)]
    return even_leaders(before, spread.after, racks, moved)
