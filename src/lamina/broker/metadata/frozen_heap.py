"""What a broker holds for long, out of the sight of Python's cycle collector.

A collection walks every object that may be part of a cycle, in one turn of the loop: with thousands of partitions it
takes longer than any turn may. So what came with many partitions is frozen: it is not walked again, and still goes when
nobody refers to it. Garbage in cycles at that moment stays for good, so it is not done often. Must not know partitions.
"""

import gc

from lamina.broker.metadata.publisher import MetadataListener
from lamina.image.diff import Changes

PARTITIONS_AT_A_TIME = 250
"""How many are walked with every collection, at most: a few milliseconds."""


class FrozenHeap(MetadataListener):
    def __init__(self) -> None:
        self._came = 0

    def image_changed(self, changes: Changes) -> None:
        self._came += len(changes.partitions_changed)
        self._came += sum(len(topic.partitions) for topic in changes.topics_created)
        self._came += sum(len(added.indexes) for added in changes.partitions_added)
        if self._came >= PARTITIONS_AT_A_TIME:
            self._came = 0
            gc.freeze()
