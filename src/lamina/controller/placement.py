"""Which brokers keep the partitions of a new topic, and of one that grows (R60-R63).

Owns Kafka's algorithm: leaders go round the brokers, followers go round them at a distance that grows with each round,
and where brokers have racks, replicas are in different ones as far as there are any. The random numbers are arguments.
Must not know what is on the brokers.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest

from lamina.errors import UnknownServerError
from lamina.image.assignments import check_partition_count, check_replication_factor
from lamina.image.image import Broker, Image
from lamina.image.topic import Topic

Assignments = tuple[tuple[int, ...], ...]
"""Replicas by partition."""


def place(
    brokers: Collection[Broker],
    partition_count: int,
    replication_factor: int,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> Assignments:
    """Replicas of ``partition_count`` partitions, numbered from ``first_partition``.

    ``start`` is where the first leader is and ``shift`` how far its first follower is from it; both are random for a
    new topic.
    """
    check_partition_count(partition_count)
    check_replication_factor(len(brokers), replication_factor)
    by_id = sorted(brokers, key=lambda broker: broker.id)
    racks = {broker.id: broker.rack for broker in by_id if broker.rack is not None}
    if not racks:
        order, rack_count = [broker.id for broker in by_id], 1
    elif len(racks) == len(by_id):
        order, rack_count = _alternate_racks(racks), len(set(racks.values()))
    else:
        without = next(broker.id for broker in by_id if broker.rack is None)
        raise UnknownServerError(f"broker {without} has no rack and others have one: all of them must, or none")
    # Followers move on by one whenever the leaders have gone round; with racks, by one broker of each.
    rounds_before = max(first_partition - 1, 0) // len(order)
    return tuple(
        _replicas(
            order,
            racks,
            rack_count,
            replication_factor,
            (partition + start) % len(order),
            (shift + partition // len(order) - rounds_before) * rack_count,
        )
        for partition in range(first_partition, first_partition + partition_count)
    )


def place_more(image: Image, topic: Topic, total_count: int) -> Assignments:
    """Replicas of the partitions that a topic gets in addition (R63): where its first ones lead to."""
    first = topic.partitions[0].replicas
    ids = sorted(image.brokers)
    start = next((position for position, broker_id in enumerate(ids) if broker_id >= first[0]), 0)
    current = len(topic.partitions)
    return place(image.brokers.values(), total_count - current, len(first), start, start, current)


def _alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """One broker of each rack in turn; racks by their name, brokers of a rack by their id."""
    by_rack: defaultdict[str, list[int]] = defaultdict(list)
    for broker_id, rack in racks.items():
        by_rack[rack].append(broker_id)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker_id for one in rounds for broker_id in one if broker_id is not None]


def _replicas(
    order: Sequence[int], racks: Mapping[int, str], rack_count: int, replication_factor: int, first: int, shift: int
) -> tuple[int, ...]:
    chosen = [order[first]]
    used_racks = {racks.get(order[first])}
    position = shift
    while len(chosen) < replication_factor:
        broker_id = order[(first + 1 + position % (len(order) - 1)) % len(order)]
        position += 1
        is_rack_free = racks.get(broker_id) not in used_racks or len(used_racks) == rack_count
        if is_rack_free and broker_id not in chosen:
            chosen.append(broker_id)
            used_racks.add(racks.get(broker_id))
    return tuple(chosen)
