"""How many partitions this broker leads, and how many of them lack replicas, as the metadata has it.

Owns that many partitions do not hold up the loop while they are counted. Must not know any metric.
"""

from dataclasses import dataclass

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.image.image import Image
from lamina.image.topic import Partition


@dataclass(slots=True)
class ReplicationTally:
    is_controller: bool = False
    led: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    reassigning: int = 0
    without_leader: int = 0
    """In the whole cluster."""
    led_by_others: int = 0
    """Of all partitions of the cluster, those that their preferred replica does not lead."""


async def tally_replication(metadata: Metadata, partitions: Partitions, clocks: Clocks) -> ReplicationTally:
    """Of one image, even when another one is published meanwhile."""
    image, node_id, turns = metadata.image, metadata.node_id, Turns(clocks)
    tally = ReplicationTally(image.controller_id == node_id)
    for name, topic in image.topics.items():
        if topic.is_being_deleted:
            continue
        for index, partition in enumerate(topic.partitions):
            if partition.leader == node_id:
                served = partitions.find(name, index)
                _count_led(tally, partition, 1 if served is None else served.log.config.min_insync_replicas)
            tally.led_by_others += partition.leader != partition.replicas[0]
            tally.without_leader += _is_without_leader(image, name, index, partition)
            await turns.step()
    return tally


def _count_led(tally: ReplicationTally, partition: Partition, min_insync_replicas: int) -> None:
    """R12: a topic with fewer replicas than ``min.insync.replicas`` needs all of them, also those being added (R52)."""
    in_sync, needed = len(partition.isr), min(min_insync_replicas, len(partition.replicas))
    tally.led += 1
    tally.under_replicated += in_sync < len(partition.replicas) - len(partition.adding)
    tally.reassigning += partition.is_reassigning
    tally.under_min_isr += in_sync < needed
    tally.at_min_isr += in_sync == needed


def _is_without_leader(image: Image, topic: str, index: int, partition: Partition) -> bool:
    """One that was never elected a leader is new, and not counted (R44)."""
    if partition.leader_epoch < 0:
        return False
    leader = image.brokers.get(partition.leader)
    return leader is None or (topic, index) in leader.offline
