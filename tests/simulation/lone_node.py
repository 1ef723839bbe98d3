"""A node that is a cluster by itself: its metadata is in a store of its own."""

from collections.abc import Callable, Mapping
from random import Random

from lamina.log.identity import new_id
from lamina.storage import Storage
from lamina.store.metadata import MetadataStore
from tests.simulation.loop import VirtualLoop
from tests.simulation.memory_store import MemoryStore
from tests.simulation.network import Network
from tests.simulation.node import Node
from tests.simulation.story import Story


class LoneNode(Node):
    def __init__(
        self,
        loop: VirtualLoop,
        rng: Random,
        network: Network,
        story: Story,
        node_id: int,
        settings: Mapping[str, str],
        on_fatal: Callable[[str], None],
        disk_count: int = 1,
    ) -> None:
        super().__init__(loop, rng, network, story, node_id, settings, on_fatal, disk_count)
        self._store = MemoryStore()

    def _open_storage(self) -> Storage:
        store = self._store.open()
        metadata = MetadataStore(store, new_id())
        return Storage("/data", self.id, self.disks.open(self.id, metadata.image.cluster_id), store, metadata)
