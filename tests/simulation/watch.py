"""What must hold inside the brokers after every step, whatever clients see of it.

Owns these invariants: one leader for each epoch, a high watermark within its log that does not go back, no log that
ends before what was acknowledged, and no log directory offline whose disk is sound. Must not change anything.
"""

from collections.abc import Iterable
from uuid import UUID

from lamina.broker.partitions.leader import Leader
from lamina.broker.partitions.partition import Partition
from tests.simulation.judge import Judge
from tests.simulation.loop import Process
from tests.simulation.node import Node


class Watch:
    """Over the nodes of one cluster."""

    def __init__(self, judge: Judge, nodes: Iterable[Node]) -> None:
        self._judge = judge
        self._nodes = list(nodes)
        self._leaders: dict[tuple[UUID, int, int], Process] = {}
        self._seen: dict[Partition, tuple[Leader | None, int, int]] = {}
        """Each partition's role, high watermark and end at the last look."""

    def look(self) -> None:
        for node in self._nodes:
            if node.parts is not None:
                if (failure := node.baseless_failure()) is not None:
                    raise self._judge.violated(failure)
                for partition in node.parts.partitions:
                    found = (partition.leader, partition.high_watermark, partition.log.log_end_offset)
                    before = self._seen.get(partition)
                    if found != before:
                        self._seen[partition] = found
                        self._look_at(node, partition, 0 if before is None else before[1])

    def _look_at(self, node: Node, partition: Partition, high_watermark_before: int) -> None:
        log, high_watermark = partition.log, partition.high_watermark
        if not high_watermark_before <= high_watermark <= log.log_end_offset:
            raise self._judge.violated(
                f"the high watermark of {log.name} went from {high_watermark_before} to {high_watermark}, and its end "
                f"is {log.log_end_offset}"
            )
        if partition.leader is None:
            return
        key = (partition.topic_id, partition.index, partition.leader.epoch)
        if self._leaders.setdefault(key, node.process) is not node.process:
            raise self._judge.violated(f"{log.name} has two leaders in epoch {partition.leader.epoch}")
        acknowledged_end = self._judge.acknowledged_end((partition.topic, partition.index))
        if log.log_end_offset < acknowledged_end:
            raise self._judge.violated(
                f"{log.name} ends at {log.log_end_offset} on {node.machine}, {acknowledged_end} were acknowledged"
            )
