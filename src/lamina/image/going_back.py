"""Whether an image is older than one that was known before: epochs that only grow are smaller in it.

Owns what never goes back in the life of a topic. A broker that believed such an image would give epochs a second time,
or count replicas as in sync that are not. Must not know what anybody does about it.
"""

from lamina.image.image import Image
from lamina.image.topic import Partition, Topic


def gone_back(old: Image, new: Image) -> str | None:
    """What shows that ``new`` is not what became of ``old``, in words; ``None`` where nothing does.

    A topic that is missing shows nothing: it may have been deleted.
    """
    for before in old.topics.values():
        after = new.topics.get(before.name)
        if after is not None and after is not before and after.id == before.id:
            found = _gone_back(before, after)
            if found is not None:
                return found
    return None


def _gone_back(old: Topic, new: Topic) -> str | None:
    if len(new.partitions) < len(old.partitions):
        return f"topic {old.name} had {len(old.partitions)} partitions and ZooKeeper has {len(new.partitions)} of them"
    # Not strict: those that were added have no counterpart.
    for index, (before, after) in enumerate(zip(old.partitions, new.partitions, strict=False)):
        name = f"{old.name}-{index}"
        if after.leader_epoch < before.leader_epoch:
            return f"{name} was at leader epoch {before.leader_epoch} and ZooKeeper has it at {after.leader_epoch}"
        if after.partition_epoch < before.partition_epoch:
            known, stored = before.partition_epoch, after.partition_epoch
            return f"{name} was at partition epoch {known} and ZooKeeper has it at {stored}"
        if after.partition_epoch == before.partition_epoch and _state(after) != _state(before):
            return f"{name} is at partition epoch {after.partition_epoch} and was in another state in that epoch"
    return None


def _state(partition: Partition) -> tuple[object, ...]:
    """What each partition epoch has one of."""
    return partition.leader, partition.leader_epoch, partition.isr, partition.is_recovering
