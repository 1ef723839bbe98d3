"""The metadata of the cluster as this broker knows it, and how it is changed: one change at a time, the store first.

Owns the order: a change is decided from the stored image, made durable on a thread, applied by the publisher, and what
that reports is made durable too. Deciding and following never call each other back. Must not know any API.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.publisher import Applied, Publisher
from lamina.broker.threads import Threads
from lamina.errors import StorageError
from lamina.image.changes import begin_leader_epochs, register_broker, set_controller
from lamina.image.features import finalize_new
from lamina.image.image import Broker, Image
from lamina.settings.log_config import LogConfig
from lamina.settings.values import BrokerSettings
from lamina.store.interface import StoreError
from lamina.store.metadata import MetadataStore
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

Change = Callable[[Image], Image | Awaitable[Image]]


class Metadata:
    def __init__(
        self,
        node_id: int,
        store: MetadataStore,
        publisher: Publisher,
        threads: Threads,
        counters: Counters,
        on_fatal: Callable[[str], None],
    ) -> None:
        """``on_fatal`` is told why the broker cannot go on."""
        self.node_id = node_id
        self.decided = store.image
        """The metadata as it is stored; ``image`` follows once this broker serves what is new in it."""
        self._store = store
        self._publisher = publisher
        self._threads = threads
        self._counters = counters
        self._on_fatal = on_fatal
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[Image]] = set()

    @property
    def image(self) -> Image:
        """What clients are told."""
        return self._publisher.image

    @property
    def settings(self) -> BrokerSettings:
        return self._publisher.settings

    def config_of(self, topic: str) -> LogConfig:
        return self._publisher.config_of(self.decided, topic)

    async def start(self, opened: Callable[[int, int], None] | None = None) -> Applied:
        """Apply what is stored to a broker that has nothing yet."""
        applied = await self._publisher.apply(None, self.decided, opened)
        await self._report(applied)
        return applied

    async def lead_alone(self, broker: Broker, epochs: Mapping[TopicPartition, int]) -> None:
        """Register a broker that is the whole cluster: it is the controller, and leads all partitions in new epochs.

        ``epochs`` are the latest ones that its logs know.
        """

        def elect(image: Image) -> Image:
            image = set_controller(register_broker(image, broker), broker.id)
            return finalize_new(begin_leader_epochs(image, epochs))

        await self.change(elect)

    async def change(self, change: Change) -> Image:
        """Make a metadata change durable and do what follows from it. Returns the image after it.

        ``change`` sees the image as it is when its turn comes, and may raise the error to answer. One that takes long
        may await: no other change comes between. What has begun is finished, even if whoever asked for it goes away
        meanwhile.
        """
        task = asyncio.get_running_loop().create_task(self._change_in_turn(change))
        self._changes.add(task)
        task.add_done_callback(self._changed)
        return await asyncio.shield(task)

    def _changed(self, task: "asyncio.Task[Image]") -> None:
        self._changes.discard(task)
        if not task.cancelled():
            # Asked for, so that asyncio does not complain of an error that nobody waits for any more.
            task.exception()

    async def finish_changes(self) -> None:
        """Wait until every change that has begun is done."""
        await asyncio.gather(*self._changes, return_exceptions=True)

    async def _change_in_turn(self, change: Change) -> Image:
        async with self._changing:
            old, new = self.decided, change(self.decided)
            if isinstance(new, Awaitable):
                new = await new
            try:
                is_changed = await self._write(new)
            except StoreError as error:
                # Nothing of it was stored: the metadata is what it was.
                raise StorageError(f"the metadata cannot be written: {error}") from error
            try:
                if is_changed:
                    await self._report(await self._publisher.apply(old, new))
            except Exception as error:
                logger.critical("a metadata change failed", exc_info=error)
                self._counters.count_unexpected(Place.METADATA)
                self._on_fatal(f"a metadata change failed: {error}")
                raise
            return self.image

    async def open_waiting(self) -> None:
        """Open new partitions for which descriptors were missing, as far as there are some now."""
        async with self._changing:
            await self._report(await self._publisher.make_waiting(self.decided))

    async def _report(self, applied: Applied) -> None:
        """Make durable what this broker did: nothing but the image follows from that."""
        old, new = self.decided, applied.reported(self.decided, self.node_id)
        if new is not old and await self._write(new):
            await self._publisher.apply(old, new)

    async def _write(self, new: Image) -> bool:
        """Store an image, if it differs from the one that is stored."""
        old = self.decided
        changes = await self._threads.run(lambda: self._store.write(old, new))
        self.decided = new
        return bool(changes)
