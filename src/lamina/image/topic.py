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

    ``made_on`` are the brokers that have made its directory and not deleted it. A replica among them that finds no
    directory has lost a disk and must not make an empty one; one that is not among them was interrupted before it made
    one. Another broker among them was a replica once, and is to delete what it has.

    While a partition is reassigned its replicas are the wanted ones, in their order, and then those that will go: of
    all of them ``adding`` were not replicas before, and ``removing`` will not be afterwards (R51).
    """

    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    made_on: tuple[int, ...] = ()
    partition_epoch: int = 0
    """One more with each change of leader, leader epoch, in-sync set or recovery."""
    is_recovering: bool = False
    """Whether its leader was elected uncleanly and has not said yet that it goes on from what it has."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def assignment(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Who keeps it, and what of that is about to change."""
        return self.replicas, self.adding, self.removing

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before its reassignment; without one, those it has."""
        return tuple(broker_id for broker_id in self.replicas if broker_id not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after its reassignment; without one, those it has."""
        return tuple(broker_id for broker_id in self.replicas if broker_id not in self.removing)

    # Thousands change at once when a broker goes, in one turn of the loop; `replace` takes three times as long.

    def led_by(self, leader: int, isr: tuple[int, ...]) -> "Partition":
        """In a new leader epoch."""
        return Partition(
            self.replicas,
            leader,
            self.leader_epoch + 1,
            isr,
            self.made_on,
            self.partition_epoch,
            self.is_recovering,
            self.adding,
            self.removing,
        )

    def with_partition_epoch(self, partition_epoch: int) -> "Partition":
        return Partition(
            self.replicas,
            self.leader,
            self.leader_epoch,
            self.isr,
            self.made_on,
            partition_epoch,
            self.is_recovering,
            self.adding,
            self.removing,
        )


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


def new_partition(replicas: tuple[int, ...], online: tuple[int, ...] | None = None) -> Partition:
    """A partition that is still to be made: its online replicas are in sync, and the first of them leads (R44).

    All are online unless it is said. Where none is, the partition is assigned and has no state yet: its epochs are -1.
    """
    isr = replicas if online is None else online
    if not isr:
        return Partition(replicas, NO_LEADER, leader_epoch=-1, isr=(), partition_epoch=-1)
    return Partition(replicas, leader=isr[0], leader_epoch=0, isr=isr)
