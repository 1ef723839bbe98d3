"""A topic and its partitions, as the cluster's metadata knows them.

Owns which facts the metadata keeps of a partition. Must not know logs: how far a partition reaches and what is
in it are its log's facts.
"""

from dataclasses import dataclass

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state"})
NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """Who keeps a partition and who leads it.

    ``made_on`` are the brokers that have made its directory. One of them that finds no directory has lost a
    disk and must not make an empty one; a replica that is not among them was interrupted before it made one.
    """

    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    made_on: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """``id`` is 16 bytes, and another one after the topic was deleted and made again."""

    name: str
    id: bytes
    partitions: tuple[Partition, ...]
    is_being_deleted: bool = False

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


def new_partition(replicas: tuple[int, ...]) -> Partition:
    """A partition that is still to be made: its first replica, the preferred one, leads."""
    return Partition(replicas, leader=replicas[0], leader_epoch=0, isr=replicas)
