"""What the partitions of this broker know of their cluster, and what they ask of it.

One object for all of them: who this broker is, which others can serve, whether this broker's session is proven, and to
whom a wanted change of an in-sync set is given. Holds the image that this broker serves; ``publisher``
replaces it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from lamina.image.image import Image

if TYPE_CHECKING:
    from lamina.broker.partitions.leader import InSyncProposal
    from lamina.broker.partitions.partition import Partition


class Lease(Protocol):
    """Whether this broker may still take itself for a member: others take its roles once its session has ended."""

    def is_proven(self) -> bool: ...

    def was_proven(self) -> bool:
        """Whether it ever was: a broker that has only just started has lost nothing."""
        ...


class OwnCluster:
    """The lease of a broker that is the whole cluster: nobody can take anything from it."""

    def is_proven(self) -> bool:
        return True

    def was_proven(self) -> bool:
        return True


class Cluster:
    def __init__(self, node_id: int, lag_time_max_ms: int, lease: Lease) -> None:
        self.node_id = node_id
        self.lag_time_max_ms = lag_time_max_ms
        """How long an in-sync follower may go without having caught up."""
        self.lease = lease
        self.broker_epoch = -1
        """Of this broker's registration; -1 for one that is the whole cluster."""
        self.image = Image("")
        """What clients are told: a topic is in it once it can be written to, and no longer when it is to go."""
        self.change_in_sync: Callable[[Partition, InSyncProposal], None] | None = None
        """Given each change of an in-sync set that a partition's leader wants; without it, none is ever wanted.

        Set once the way to the controller is built, which needs this object."""

    def is_registered_in(self, image: Image) -> bool:
        """Whether an image knows this broker as it is registered now. An older one tells the roles of another life."""
        mine = image.brokers.get(self.node_id)
        return mine is not None and mine.epoch == self.broker_epoch

    def is_being_added(self, topic: str, index: int) -> bool:
        """Whether this broker was no replica of a partition before the reassignment that is under way."""
        known = self.image.topics.get(topic)
        return known is not None and index < len(known.partitions) and self.node_id in known.partitions[index].adding

    def broker_epoch_of(self, broker_id: int, topic: str, index: int) -> int | None:
        """The epoch of a broker's registration, if it can serve its replica of this partition."""
        image = self.image
        return image.brokers[broker_id].epoch if image.is_online(broker_id, topic, index) else None
