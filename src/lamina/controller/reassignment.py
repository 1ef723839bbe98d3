"""Reassignment: a partition gets other replicas while it is read and written (R51, R52).

It begins when the wanted replicas are assigned beside those it has; these copy, and join the in-sync set one by one;
it is complete when those that are not wanted are assigned no more. What is under way is in the image and nowhere else,
so that any controller goes on with it. Whenever replicas go they leave the in-sync set, and the leader epoch grows,
which shuts them out. Owns these steps for one partition. Must not know what brokers do about it.
"""

from collections.abc import Sequence
from dataclasses import replace

from lamina.controller.election import ElectionFacts, elect
from lamina.errors import InvalidReplicaAssignment, NoReassignmentInProgress
from lamina.image.assignments import check_reassignment
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER, Partition
from lamina.topic_partition import TopicPartition, name_of


def reassign(
    image: Image, key: TopicPartition, replicas: Sequence[int], facts: ElectionFacts, *, may_change_factor: bool = True
) -> Partition:
    """The partition on its way to these replicas, or there already. Raises Kafka's error for those it cannot have.

    One that is reassigned already begins again from where it was before that: replicas that were to be added and are
    not wanted any more go at once.
    """
    partition = image.partition(*key)
    wanted = check_reassignment(image, partition, replicas, may_change_factor=may_change_factor)
    if not partition.isr:
        # It has no state yet: nobody has anything of it.
        return elect(image, key, replace(partition, replicas=wanted, adding=(), removing=()), facts)
    origin = partition.origin
    removing = tuple(broker_id for broker_id in origin if broker_id not in wanted)
    begun = replace(
        partition,
        replicas=wanted + removing,
        adding=tuple(broker_id for broker_id in wanted if broker_id not in origin),
        removing=removing,
    )
    return _as_far_as_it_goes(image, key, partition, begun, facts)


def cancel(image: Image, key: TopicPartition, facts: ElectionFacts) -> Partition:
    """The partition with the replicas that it had before its reassignment, perhaps in another order."""
    partition = image.partition(*key)
    if not partition.is_reassigning:
        raise NoReassignmentInProgress(f"{name_of(key)} is not being reassigned")
    before = replace(partition, replicas=partition.origin, adding=(), removing=())
    return _without_dropped(image, key, partition, before, facts)


def complete(image: Image, key: TopicPartition, partition: Partition, facts: ElectionFacts) -> Partition:
    """The partition with its wanted replicas alone, if it may have come to that; else the same one."""
    return _as_far_as_it_goes(image, key, partition, partition, facts) if partition.is_reassigning else partition


def _as_far_as_it_goes(
    image: Image, key: TopicPartition, old: Partition, begun: Partition, facts: ElectionFacts
) -> Partition:
    """The wanted replicas alone, if the reassignment may be complete.

    All that are added have to be in sync. Of the others one may be sick: what goes was worth no more (R95). But where
    more go than come, all that stay have to be in sync, or the in-sync set would shrink.
    """
    if begun.is_reassigning and begun.leader != NO_LEADER:
        awaited = begun.target if len(begun.adding) < len(begun.removing) else begun.adding
        suspect = facts.ends.get(key, {})
        if all(one in begun.isr and one not in suspect and image.is_online(one, *key) for one in awaited):
            begun = replace(begun, replicas=begun.target, adding=(), removing=())
    return _without_dropped(image, key, old, begun, facts)


def _without_dropped(
    image: Image, key: TopicPartition, old: Partition, new: Partition, facts: ElectionFacts
) -> Partition:
    """The partition as it is to be, with nobody in sync who is dropped, and in a leader epoch that shuts those out.

    While it has a leader, a member that has restarted uncleanly and not been taken in again is not in sync either.
    """
    if set(old.replicas) <= set(new.replicas):
        return new
    suspect = facts.ends.get(key, {}) if old.leader != NO_LEADER else {}
    isr = tuple(broker_id for broker_id in new.replicas if broker_id in old.isr and broker_id not in suspect)
    left = elect(image, key, replace(new, isr=isr or old.isr), facts)
    if not isr and left.leader in (NO_LEADER, *old.isr):
        raise InvalidReplicaAssignment(
            f"of {name_of(key)} only replicas are in sync that would go: {list(old.isr)} of {list(old.replicas)}"
        )
    return left if left.leader_epoch > old.leader_epoch else left.led_by(left.leader, left.isr)
