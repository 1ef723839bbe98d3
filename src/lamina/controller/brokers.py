"""Brokers come, go, restart and drain, and their replicas with them: what follows for every partition (R42, R48).

Owns the events and which partitions each of them touches; the others stay the same objects. The partition epoch is the
version of what is stored, so an event changes a partition once, whatever it goes through. Must not know how a broker is
seen to come or go.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lamina.controller.deletion import finish_deletions, forget_holder
from lamina.controller.election import ElectionFacts, elect, is_waiting
from lamina.controller.reassignment import complete
from lamina.errors import BrokerIdNotRegistered
from lamina.image.changes import mark_made, remove_broker, set_partitions
from lamina.image.image import Broker, Image
from lamina.image.topic import NO_LEADER, Partition
from lamina.topic_partition import TopicPartition


class Arrival(NamedTuple):
    """A broker that is registered and has reported that its logs are open."""

    broker: Broker
    lost: frozenset[TopicPartition] = frozenset()
    """Replicas whose directories it had made and does not find: offline, until they are out of the in-sync set."""


def take_over(
    image: Image, controller_id: int, controller_epoch: int, arrivals: Iterable[Arrival], facts: ElectionFacts
) -> Image:
    """A controller takes over (R42) with the stored image and the brokers that are there now.

    Brokers that have not reported yet count as away: whoever calls has waited for them.
    """
    every = {arrival.broker.id: arrival for arrival in arrivals}
    stored = replace(image, controller_id=controller_id, controller_epoch=controller_epoch)
    return finish_deletions(_arrive(stored, every, frozenset(image.brokers) - every.keys(), facts, lambda _: True))


def broker_ready(image: Image, arrival: Arrival, facts: ElectionFacts) -> Image:
    """A broker is there (R48). What it told of an unclean stop is among the facts.

    One that was there in another epoch has failed first, unseen: it leaves its in-sync sets. What is reassigned is
    looked at again: it may have waited for this broker.
    """
    broker_id = arrival.broker.id

    def is_touched(partition: Partition) -> bool:
        return partition.leader == NO_LEADER or broker_id in partition.isr or partition.is_reassigning

    return _arrive(image, {broker_id: arrival}, frozenset(), facts, is_touched)


def brokers_gone(image: Image, broker_ids: Collection[int], facts: ElectionFacts) -> Image:
    """Brokers have failed or stopped (R48). Those that went together are told together.

    Where all in-sync members went, each of them may lead when it comes back; had they gone one by one, only the last.
    """
    gone = frozenset(broker_ids) & image.brokers.keys()
    after = image
    for broker_id in gone:
        after = remove_broker(after, broker_id)
    return finish_deletions(_elect(image, [after], facts, lambda partition: not gone.isdisjoint(partition.isr)))


def broker_drains(image: Image, broker_id: int, facts: ElectionFacts) -> Image:
    """A broker is about to stop (R72): others lead what they can, and it leaves their in-sync sets."""
    after = _with_brokers(image, [replace(image.brokers[broker_id], is_draining=True)])
    return _elect(image, [after], facts, lambda partition: broker_id in partition.isr)


def broker_unregistered(image: Image, broker_id: int, facts: ElectionFacts) -> Image:
    """A broker is to leave for good (R73): others lead what they can, and nobody waits for it any more.

    Its replicas stay assigned to it. One that is away is known by those, and by what it may have of others alone.
    """
    known = list(_touched(image, lambda partition: broker_id in {*partition.replicas, *partition.made_on}))
    if broker_id in image.brokers:
        image = broker_drains(image, broker_id, facts)
    elif not known and not any(broker_id in holders for holders in image.deletions.values()):
        raise BrokerIdNotRegistered(f"there is no broker {broker_id}")
    image = replicas_removed(image, broker_id, [key for key, one in known if broker_id not in one.replicas])
    return forget_holder(image, broker_id)


def replicas_offline(
    image: Image,
    broker_id: int,
    offline: frozenset[TopicPartition],
    lost: frozenset[TopicPartition],
    facts: ElectionFacts,
) -> Image:
    """A broker tells which of its replicas it cannot use (R81): all of them, each time.

    Of those, ``lost`` are without a directory. Out of the in-sync set such a replica may be made again and copy.
    """
    broker = image.brokers[broker_id]
    unusable = offline | lost
    changed = broker.offline ^ unusable
    after = _with_brokers(image, [replace(broker, offline=unusable)]) if changed else image
    elected = _elected([after], _states(image, changed | lost), facts)
    after = _with_partitions(after, _without_made(elected, image, broker_id, lost))
    return finish_deletions(after) if changed else after


def replicas_made(image: Image, broker_id: int, partitions: Iterable[TopicPartition]) -> Image:
    """A broker has made directories: from now on a missing one is a loss. What is deleted meanwhile is passed over."""
    made = [
        key
        for key, partition in _states(image, partitions)
        if broker_id in partition.replicas and broker_id not in partition.made_on
    ]
    return mark_made(image, broker_id, made) if made else image


def replicas_removed(image: Image, broker_id: int, partitions: Iterable[TopicPartition]) -> Image:
    """A broker has deleted what it had of partitions that it keeps no more.

    Where it is a replica again it has nothing now, and makes a directory anew.
    """
    return _with_partitions(image, _without_made({}, image, broker_id, partitions))


def elect_waiting(image: Image, facts: ElectionFacts) -> Image:
    """Elect where a leader is missing and can be had now: a wait is over, or unclean elections were allowed (R46)."""
    return _elect(image, [image], facts, lambda partition: partition.leader == NO_LEADER)


def waiting_partitions(image: Image, facts: ElectionFacts) -> frozenset[TopicPartition]:
    """Those that could have a leader and wait for a better one; facts call them overdue when that took too long."""
    return frozenset(key for key, partition in _states(image, facts.ends) if is_waiting(image, key, partition, facts))


def _arrive(
    image: Image,
    arrivals: dict[int, Arrival],
    gone: frozenset[int],
    facts: ElectionFacts,
    is_touched: Callable[[Partition], bool],
) -> Image:
    """Brokers that are there in another epoch have been away in between."""
    bounced = [
        broker_id
        for broker_id, arrival in arrivals.items()
        if broker_id in image.brokers and image.brokers[broker_id].epoch != arrival.broker.epoch
    ]
    left = {broker_id: broker for broker_id, broker in image.brokers.items() if broker_id not in gone}
    come = [replace(one.broker, offline=one.broker.offline | one.lost) for one in arrivals.values()]
    after = _with_brokers(replace(image, brokers=left), come)
    without = {broker_id: broker for broker_id, broker in after.brokers.items() if broker_id not in bounced}
    through = [replace(after, brokers=without), after] if bounced else [after]
    changed = _elected(through, _touched(image, is_touched), facts)
    for broker_id, arrival in arrivals.items():
        changed = _without_made(changed, image, broker_id, arrival.lost)
    return _with_partitions(after, changed)


def _without_made(
    changed: dict[TopicPartition, Partition], image: Image, broker_id: int, gone: Iterable[TopicPartition]
) -> dict[TopicPartition, Partition]:
    """Replicas whose directory is gone count as never made, so that their broker makes them and they copy.

    Not while they are in the in-sync set: an empty log must not stand for one that had what was committed.
    """
    unmade = {}
    for key, stored in _states(image, gone):
        partition = changed.get(key, stored)
        if broker_id in partition.made_on and broker_id not in partition.isr:
            made_on = tuple(one for one in partition.made_on if one != broker_id)
            unmade[key] = replace(partition, made_on=made_on)
    return {**changed, **unmade}


def _elect(
    image: Image, through: Sequence[Image], facts: ElectionFacts, is_touched: Callable[[Partition], bool]
) -> Image:
    return _with_partitions(through[-1], _elected(through, _touched(image, is_touched), facts))


def _elected(
    through: Sequence[Image], partitions: Iterable[tuple[TopicPartition, Partition]], facts: ElectionFacts
) -> dict[TopicPartition, Partition]:
    """Elect as the brokers of one image after another demand; only what comes out is a change."""
    changed = {}
    for key, partition in partitions:
        state = partition
        for image in through:
            state = elect(image, key, state, facts)
        state = complete(through[-1], key, state, facts)
        if state is not partition:
            changed[key] = state
    return changed


def _touched(image: Image, is_touched: Callable[[Partition], bool]) -> Iterator[tuple[TopicPartition, Partition]]:
    for topic in image.topics.values():
        if not topic.is_being_deleted:
            for index, partition in enumerate(topic.partitions):
                if is_touched(partition):
                    yield (topic.name, index), partition


def _states(image: Image, keys: Iterable[TopicPartition]) -> Iterator[tuple[TopicPartition, Partition]]:
    """The partitions that are there."""
    for name, index in keys:
        topic = image.topics.get(name)
        if topic is not None and not topic.is_being_deleted and index < len(topic.partitions):
            yield (name, index), topic.partitions[index]


def _with_brokers(image: Image, brokers: Iterable[Broker]) -> Image:
    return replace(image, brokers={**image.brokers, **{broker.id: broker for broker in brokers}})


def _with_partitions(image: Image, changed: dict[TopicPartition, Partition]) -> Image:
    return set_partitions(image, changed) if changed else image
