"""A broker that is the whole cluster: it decides what the metadata is, and follows it.

Owns the order: a change is decided from the stored image, made durable on a thread, applied by the publisher, and what
that reports is made durable too. One change at a time. Must not know any API.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.applied import Applied
from lamina.broker.metadata.metadata import Change
from lamina.broker.metadata.publisher import Publisher
from lamina.broker.tasks import Tasks
from lamina.broker.threads import Threads
from lamina.controller.election import NO_FACTS, LogEnd
from lamina.errors import BrokerIdNotRegistered, InvalidRequest, StorageError
from lamina.image.changes import begin_leader_epochs, register_broker, set_controller
from lamina.image.diff import Changes
from lamina.image.features import finalize_new, why_unsupported
from lamina.image.image import Broker, Image
from lamina.store.interface import StoreError
from lamina.store.metadata import MetadataStore
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Alone:
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
        self._node_id = node_id
        self.decided = store.image
        self.facts = NO_FACTS
        self._broker: Broker | None = None
        self._store = store
        self._publisher = publisher
        self._threads = threads
        self._counters = counters
        self._on_fatal = on_fatal
        self._changing = asyncio.Lock()
        self._changes = Tasks()

    async def start(self, broker: Broker, opened: Callable[[int, int], None] | None = None) -> Applied:
        """Apply what is stored to a broker that has nothing yet. It leads nothing before ``serve``.

        Raises :class:`StoreError` for what another version of Lamina has stored, and this one does not support.
        """
        unsupported = why_unsupported(self.decided.features, broker.features)
        if unsupported is not None:
            raise StoreError(unsupported)
        self._broker = broker
        applied = await self._publisher.apply(None, self.decided, opened)
        await self._report(applied)
        return applied

    async def serve(self, ends: Mapping[TopicPartition, LogEnd]) -> None:
        """Register: this broker is the controller, and leads all partitions in new epochs, above those in its logs."""
        epochs = {key: end.last_epoch for key, end in ends.items()}
        broker = self._broker
        assert broker is not None, "start comes first"

        def elect(image: Image) -> Image:
            image = set_controller(register_broker(image, broker), broker.id)
            return finalize_new(begin_leader_epochs(image, epochs), [broker])

        # It looks at every partition.
        await self.change(lambda image: self._threads.compute(partial(elect, image)))

    async def change(self, change: Change) -> Image:
        return await self._changes.finish(self._change_in_turn(change))

    async def finish_changes(self) -> None:
        """Wait until every change that has begun is done."""
        await self._changes.wait()

    async def _change_in_turn(self, change: Change) -> Image:
        async with self._changing:
            old, new = self.decided, change(self.decided)
            if isinstance(new, Awaitable):
                new = await new
            try:
                is_changed = await self._write(lambda _: new)
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
            return self._publisher.image

    async def unregister_broker(self, broker_id: int) -> None:
        if broker_id != self._node_id:
            raise BrokerIdNotRegistered(f"there is no broker {broker_id}")
        raise InvalidRequest(f"broker {broker_id} is the whole cluster")

    async def wait_until(self, _holds: Callable[[Image], bool]) -> None:
        """A change is served when it has been made."""

    async def make_waiting(self) -> None:
        """Open new partitions for which descriptors were missing, as far as there are some now."""
        async with self._changing:
            await self._report(await self._publisher.make_waiting(self.decided))

    async def _report(self, applied: Applied) -> None:
        """Make durable what this broker did: nothing but the image follows from that."""
        old = self.decided
        if (applied.made or applied.deleted) and await self._write(
            lambda image: applied.reported(image, self._node_id)
        ):
            await self._publisher.apply(old, self.decided)

    async def _write(self, decide: Callable[[Image], Image]) -> bool:
        """Store the image that follows from the one that is stored, if they differ."""
        old = self.decided

        def write() -> tuple[Image, Changes]:
            new = decide(old)
            return new, self._store.write(old, new)

        self.decided, changes = await self._threads.compute(write)
        return bool(changes)
