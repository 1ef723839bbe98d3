"""What rooms that are not divided yet see of the other parts. Must not own anything."""

import asyncio
from typing import TYPE_CHECKING, Any

from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.commits import all_committed
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.image.image import Image

if TYPE_CHECKING:
    from lamina.broker.parts import Parts


class Node:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        threads: Threads,
        counters: Counters,
        directories: LogDirectories,
        partitions: Partitions,
        metadata: Metadata,
        producer_ids: ProducerIdBlock,
    ) -> None:
        self.loop = loop
        self.clocks = clocks
        self.threads = threads
        self.counters = counters
        self.directories = directories
        self.partitions = partitions
        self.metadata = metadata
        self.producer_ids = producer_ids
        self.id = metadata.node_id
        self.started_at_ms = clocks.now_ms()
        self.now_ms = clocks.now_ms
        self.monotonic_ms = clocks.monotonic_ms
        self.config_of = metadata.config_of
        self.change = metadata.change
        self.checkpoint = directories.checkpoint
        self.partition_failed = partitions.failed
        self.listening: Any = None

    def attach(self, parts: "Parts") -> None:
        self.parts = parts
        self.groups = parts.groups
        self.transactions = parts.transactions
        self.cleaner = parts.cleaner
        self.request_watch = parts.request_watch
        self.kernel_loading = parts.kernel_loading
        self.fetch_sessions = parts.fetch_sessions
        self.router = parts.router
        self.actual_values = parts.actual_values

    @property
    def settings(self) -> Any:
        return self.metadata.settings

    @property
    def image(self) -> Image:
        return self.metadata.image

    @property
    def decided(self) -> Image:
        return self.metadata.decided

    @property
    def rooms(self) -> Any:
        return self.directories.free_space

    @property
    def is_stopping(self) -> bool:
        return self.parts.readiness.is_stopping

    def count_unexpected(self, place: Place) -> None:
        self.counters.count_unexpected(place)

    @property
    def unexpected_errors(self) -> int:
        return self.counters.unexpected.total()

    async def flushed(self, partitions: Any) -> Any:
        return await all_committed(partitions, self.clocks)
